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


@final
class RobotSimulation:
    """Swimmer-v5 or Hopper-v5, with the observations and rewards of Gymnasium's environment, bit by bit.

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
    """A robot by its name in Gymnasium, `"Swimmer-v5"` or `"Hopper-v5"`."""
    if name not in ("Swimmer-v5", "Hopper-v5"):
        raise UnsupportedError(f"The robots are Swimmer-v5 and Hopper-v5, but {name!r} was asked for.")
    try:
        gymnasium, mujoco = import_module("gymnasium"), import_module("mujoco")
        environment = gymnasium.make(name, disable_env_checker=True).unwrapped
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(
            f"{name} needs Gymnasium with MuJoCo, which is not installed. Install it, in the checkout, "
            f"with: pip install --group paper ({error})"
        ) from error
    return RobotSimulation(environment, mujoco.mj_step, is_hopper=name == "Hopper-v5")
