"""Robots of Gymnasium, stepped in MuJoCo itself."""

from functools import lru_cache
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from streamgp.errors import UnsupportedError

__all__ = ["RobotSimulation", "make_simulation"]

# Hopper-v5: observed velocities are clipped, and an episode ends outside these ranges.
_MOST_VELOCITY, _MOST_STATE = 10.0, 100.0
_LEAST_HEIGHT, _MOST_ANGLE = 0.7, 0.2
# Names here, and environments of Gymnasium that they are made from. Hopper-v2 is the robot of the paper's year; for the
# swimmer the year makes no difference that a published policy shows (350 either way).
_ENVIRONMENTS = {"Swimmer-v5": "Swimmer-v5", "Hopper-v5": "Hopper-v5", "Hopper-v2": "Hopper-v5"}


@final
class RobotSimulation:
    """A swimmer or a hopper, with the observations and rewards of Gymnasium's environment, bit by bit.

    Gymnasium computes contact forces and reports of every step that no policy here looks at; without these, a step
    takes half the time.
    """

    def __init__(self, environment: Any, step: Any, *, is_hopper: bool) -> None:
        """Wrap an environment.

        Args:
            environment: Without wrappers.
            step: The function of MuJoCo that steps its model.
            is_hopper: Whether it is the hopper, or the swimmer.
        """
        self._environment, self._step, self._is_hopper = environment, step, is_hopper
        self._num_hidden = 1 if is_hopper else 2

    def reset(self, seed: int) -> NDArray[np.float64]:
        """Start an episode; returns the first observation."""
        observation: NDArray[np.float64] = self._environment.reset(seed=seed)[0]
        return observation

    def step(self, action: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, bool]:
        """Act; returns the observation, the reward, and whether the episode is over."""
        environment = self._environment
        data = environment.data
        before = data.qpos[0]
        data.ctrl[:] = action
        self._step(environment.model, data, environment.frame_skip)
        position, velocity = data.qpos, data.qvel
        reward = (position[0] - before) / environment.dt
        if not self._is_hopper:
            cost = environment.control_cost(action)
            return np.concatenate([position[self._num_hidden :], velocity]), float(reward - cost), False
        is_healthy = (
            position[1] > _LEAST_HEIGHT
            and abs(position[2]) < _MOST_ANGLE
            and bool((np.abs(position[2:]) < _MOST_STATE).all())
            and bool((np.abs(velocity) < _MOST_STATE).all())
        )
        reward = reward + float(is_healthy) - environment.control_cost(action)
        seen = np.minimum(np.maximum(velocity, -_MOST_VELOCITY), _MOST_VELOCITY)
        return np.concatenate([position[self._num_hidden :], seen]), float(reward), not is_healthy


@lru_cache(maxsize=4)
def make_simulation(name: str) -> RobotSimulation:
    """A robot by its name: `"Swimmer-v5"`, `"Hopper-v5"`, or `"Hopper-v2"` with the masses of the paper's year."""
    if name not in _ENVIRONMENTS:
        raise UnsupportedError(f"The robots are {', '.join(_ENVIRONMENTS)}, but {name!r} was asked for.")
    try:
        gymnasium, mujoco = import_module("gymnasium"), import_module("mujoco")
        environment = gymnasium.make(_ENVIRONMENTS[name], disable_env_checker=True).unwrapped
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            f"{name} needs Gymnasium with MuJoCo, which is not installed. Install it, in the checkout, "
            f"with: pip install --group paper ({error})"
        ) from error
    if name == "Hopper-v2":
        _weigh_as_before(mujoco, environment)
    return RobotSimulation(environment, mujoco.mj_step, is_hopper=name.startswith("Hopper"))


def _weigh_as_before(mujoco: Any, environment: Any) -> None:
    r"""Give capsules the volume $\pi r^2 (L + r)$ that MuJoCo took before version 2.2; it is $\pi r^2 (L + 4r/3)$.

    Masses and inertias shrink by 2 to 4 %, with which policies that were published hop on and without which they fall.
    """
    model = environment.model
    for kind, size, body in zip(model.geom_type, model.geom_size, model.geom_bodyid, strict=True):
        if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            radius, length = size[0], 2.0 * size[1]
            share = (length + radius) / (length + 4.0 / 3.0 * radius)
            model.body_mass[body] *= share
            model.body_inertia[body] *= share
    mujoco.mj_setConst(model, environment.data)
