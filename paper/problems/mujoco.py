"""Linear policies of simulated robots: how an episode is played, and the problems that are made of it."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from paper.problems.base import AbstractProblem, Optimum
from paper.problems.robot_simulation import make_simulation
from streamgp.checks import check_choice, keep_count

__all__ = ["Episode", "Hopper", "ObservationScale", "Swimmer", "play_episode"]

_NUM_STEPS = 1000
# Mean and standard deviation of what a trained policy of Hopper-v1 saw, as LA-MCTS has them: knowledge of the answer.
_LEAKED_MEAN = (
    *(1.41599384, -0.05478602, -0.25522216, -0.25404721, 0.27525085, 2.60889529),
    *(-0.0085352, 0.0068375, -0.07123674, -0.05044839, -0.45569644),
)
_LEAKED_DEVIATION = (
    *(0.19805723, 0.07824488, 0.17120271, 0.32000514, 0.62401884, 0.82814161),
    *(1.51915814, 1.17378372, 1.87761249, 3.63482761, 5.7164752),
)


@final
@dataclass(frozen=True, eq=False)
class ObservationScale:
    """Number, mean and sum of squared deviations of observations, by Welford's recursion.

    Attributes:
        count: How many there were.
        mean: Their mean.
        squares: Sum of their squared deviations from it.
    """

    count: int
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]

    @staticmethod
    def empty(num_observed: int) -> "ObservationScale":
        """Nothing was observed."""
        return ObservationScale(0, np.zeros(num_observed), np.zeros(num_observed))

    def add(self, observation: NDArray[np.float64]) -> "ObservationScale":
        """With one more observation."""
        count = self.count + 1
        step = observation - self.mean
        mean = self.mean + step / count
        return ObservationScale(count, mean, self.squares + step * (observation - mean))

    @property
    def deviation(self) -> NDArray[np.float64]:
        """Standard deviations; one where nothing is known or nothing varies."""
        if self.count < 2:
            return np.ones_like(self.mean)
        found = np.sqrt(self.squares / (self.count - 1))
        return np.where(found > 1e-7, found, 1.0)


@final
@dataclass(frozen=True, eq=False)
class Episode:
    """What came of an episode.

    Attributes:
        reward: Sum of rewards.
        num_steps: How long it went.
        scale: Statistics of what was observed, those from before included.
    """

    reward: float
    num_steps: int
    scale: ObservationScale


def play_episode(
    name: str,
    policy: NDArray[np.float64],
    *,
    seed: int,
    scale: ObservationScale,
    is_running: bool = False,
    is_counted: bool = True,
    num_steps: int = _NUM_STEPS,
) -> Episode:
    """Play an episode with actions that are linear in scaled observations, and not clipped.

    Args:
        name: Of the robot, as `make_simulation` takes it.
        policy: A matrix, a row for each action.
        seed: Of the start.
        scale: What observations are scaled by.
        is_running: Whether each observation of this episode changes the scale at once.
        is_counted: Whether observations are added to the scale that is returned.
        num_steps: Most steps.
    """
    simulation = make_simulation(name)
    observation = simulation.reset(seed)
    mean, deviation = scale.mean, scale.deviation
    total, steps = 0.0, 0
    for _ in range(num_steps):
        if is_counted:
            scale = scale.add(observation)
        if is_running:
            mean, deviation = scale.mean, scale.deviation
        observation, reward, is_over = simulation.step(policy @ ((observation - mean) / deviation))
        steps += 1
        if not (math.isfinite(reward) and np.isfinite(observation).all()):
            break  # the simulation has failed: what was earned before counts
        total += reward
        if is_over:
            break
    return Episode(total, steps, scale)


@dataclass(frozen=True)
class _AbstractRobot(AbstractProblem):
    """What both robots share; their fields are described there."""

    _ENVIRONMENT: ClassVar[str]
    _SHAPE: ClassVar[tuple[int, int]]

    scaling: str = "running"
    num_episodes: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.scaling, self._scalings, "scaling")
        keep_count(self, "num_episodes")
        keep_count(self, "seed", minimum=0)

    @property
    @abstractmethod
    def _scalings(self) -> tuple[str, ...]:
        """The names of scalings."""

    @property
    def environment(self) -> str:
        """Name of the robot's simulation."""
        return self._ENVIRONMENT

    @property
    def policy_shape(self) -> tuple[int, int]:
        """Numbers of actions and of observations."""
        return self._SHAPE

    @property
    def bounds(self) -> Tensor:
        num = self._SHAPE[0] * self._SHAPE[1]
        return torch.stack([-torch.ones(num), torch.ones(num)]).double()

    @property
    def optimum(self) -> Optimum:
        """Not known, and not bounded."""
        return Optimum(math.inf, None)

    def play(self, x: Tensor, seeds: Sequence[int]) -> float:
        """The mean reward of episodes from given starts.

        Args:
            x: A policy `(d)`, row by row.
            seeds: Seeds of the starts.
        """
        policy = x.detach().double().cpu().numpy().reshape(self._SHAPE)
        fixed = self._fixed_scale()
        rewards = []
        scale = ObservationScale.empty(self._SHAPE[1]) if fixed is None else fixed
        for seed in seeds:
            is_running = fixed is None
            episode = play_episode(
                self._ENVIRONMENT, policy, seed=seed, scale=scale, is_running=is_running, is_counted=is_running
            )
            rewards.append(episode.reward)
            scale = episode.scale
        return float(np.mean(rewards))

    def _fixed_scale(self) -> ObservationScale | None:
        """What observations are scaled by; None where they are scaled by what was seen so far."""
        return None if self.scaling == "running" else ObservationScale.empty(self._SHAPE[1])

    def _evaluate(self, X: Tensor) -> Tensor:
        seeds = range(self.seed, self.seed + self.num_episodes)
        values = [self.play(x, seeds) for x in X.reshape(-1, X.shape[-1])]
        return X.new_tensor(values).reshape(X.shape[:-1])

    def observe(self, X: Tensor, generator: torch.Generator | None = None) -> Tensor:
        X = self._checked(X)
        values = []
        for x in X.reshape(-1, X.shape[-1]):
            seeds = torch.randint(2**31 - 1, (self.num_episodes,), generator=generator).tolist()
            values.append(self.play(x, seeds))
        return X.new_tensor(values).reshape(X.shape[:-1])


@final
@dataclass(frozen=True)
class Swimmer(_AbstractRobot):
    """Maximize the mean reward of three episodes of a swimmer, over 16 weights of a linear policy in [-1, 1].

    The environment is Swimmer-v5 of Gymnasium, of the dependency group `paper`. `evaluate` plays from fixed starts,
    `observe` from random ones.

    Attributes:
        scaling: `"none"` takes observations as they are, as in LA-MCTS; `"running"` (the default) scales them by mean
            and standard deviation of those of this evaluation so far, so that nothing is carried over.
        num_episodes: Episodes of an evaluation.
        seed: Of the first start of `evaluate`.
    """

    _ENVIRONMENT: ClassVar[str] = "Swimmer-v5"
    _SHAPE: ClassVar[tuple[int, int]] = (2, 8)

    @property
    def _scalings(self) -> tuple[str, ...]:
        return ("none", "running")


@final
@dataclass(frozen=True)
class Hopper(_AbstractRobot):
    """Maximize the mean reward of three episodes of a hopper, over 33 weights of a linear policy in [-1, 1].

    The robot is the hopper of the paper's year, which weighs 3 % less than Hopper-v5 of Gymnasium, from which it is
    made; that is of the dependency group `paper`. `evaluate` plays from fixed starts, `observe` from random ones.

    Attributes:
        scaling: `"leaked"` scales observations by the statistics of a policy that was trained before, as LA-MCTS does:
            for comparisons with published curves only; `"none"` takes them as they are; `"running"` (the default)
            scales them by mean and standard deviation of those of this evaluation so far.
        num_episodes: Episodes of an evaluation.
        seed: Of the first start of `evaluate`.
    """

    _ENVIRONMENT: ClassVar[str] = "Hopper-v2"
    _SHAPE: ClassVar[tuple[int, int]] = (3, 11)

    @property
    def _scalings(self) -> tuple[str, ...]:
        return ("none", "leaked", "running")

    def _fixed_scale(self) -> ObservationScale | None:
        if self.scaling != "leaked":
            return super()._fixed_scale()
        return ObservationScale(2, np.array(_LEAKED_MEAN), np.square(_LEAKED_DEVIATION))
