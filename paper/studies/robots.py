"""Linear policies of simulated robots: trust regions that a tree places, and searches without a model."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from paper.baselines.augmented_random_search import RandomSearchSettings, augmented_random_search
from paper.baselines.evolution_strategy import EvolutionStrategy
from paper.lamcts import LaMCTSOptimizer, PartitionSettings
from paper.problems import Hopper, Swimmer
from paper.problems.mujoco import play_episode
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.acquisition import LookaheadThompson, RegionRules, Thompson

__all__ = ["STUDY", "RobotSettings"]

# Calls between two marks of a curve.
_MARK = 10
# As LA-MCTS sets its trust regions: one point at a time.
_SUCCESS_TOLERANCE = 3
_CANDIDATES_PER_DIM = 100


@final
@dataclass(frozen=True)
class RobotSettings:
    """Settings of the searches.

    Attributes:
        num_evaluations_swimmer: Calls of the swimmer, each the mean of three episodes.
        num_evaluations_hopper: Calls of the hopper.
        objective: For which SVGPs are fitted.
        num_inducing: Most inducing points.
        depth: Depth of the look-ahead.
        num_paths: Number of its paths.
        num_replayed: Episodes in which the best policy is played again at the end, from starts of their own.
    """

    num_evaluations_swimmer: int
    num_evaluations_hopper: int
    objective: str
    num_inducing: int
    depth: int
    num_paths: int
    num_replayed: int


@final
@dataclass(frozen=True)
class _RobotOptions:
    """What LA-MCTS and ARS set by robot.

    Attributes:
        num_initial: Points of the Latin hypercube.
        leaf_size: Of the tree.
        exploration: Of the choice of a leaf.
        gamma: Of the borders.
        priors: Of the SVGPs.
        shift: What ARS takes off the reward of each step.
        scaling: Of rewards for the models.
        refit: When hyperparameters of SVGPs are learned again.
        keeps_samples: Whether a trust region starts with the samples of its leaf; as published it forgets them.
    """

    num_initial: int
    leaf_size: int
    exploration: float
    gamma: str
    priors: str
    shift: float
    scaling: str
    refit: str | int
    keeps_samples: bool


# The hopper's were chosen after four trials of 400 calls with the masses of its year: half-Cauchy priors let
# lengthscales grow to 1e37, and ranks and known samples keep a search on the plateau of robots that stand.
_TASKS = {
    "swimmer": _RobotOptions(40, 10, 20.0, "scale", "dim_scaled", 0.0, "standardize", "always", True),
    "hopper": _RobotOptions(150, 100, 10.0, "auto", "paper", 1.0, "standardize", 5, False),
}


def run(problem: str, method: str, seed: int, settings: RobotSettings) -> UnitOutcome:
    """Search by a method.

    Returns:
        After each ten calls: `num_evaluations`, and `best`, the largest mean reward of three episodes so far; `seconds`
        of the processor for all suggestions between these; `replayed`, the mean reward of the best policy in episodes
        of its own; and `failures`, why suggestions or episodes failed, with the number of the call.
    """
    name, _, scaling = problem.partition("-")
    robot = _make_robot(name, scaling)
    total = settings.num_evaluations_swimmer if name == "swimmer" else settings.num_evaluations_hopper
    if method == "ars":
        return _run_ars(robot, _TASKS[name], total, seed, settings=settings)
    search = _make_search(robot, name, method, seed, settings=settings)
    generator = torch.Generator().manual_seed(seed)
    spare = _UniformSearch(robot.bounds, seed)
    curve = _Curve(total)
    best, policy = -math.inf, None
    while curve.num_calls < total:
        began = time.process_time()
        x = curve.attempt(search.ask, "suggestion")
        x = spare.ask() if x is None else x
        used = time.process_time() - began
        point = x
        y = curve.attempt(lambda: robot.observe(point, generator), "episode")  # noqa: B023 # called at once
        y = x.new_full((1,), math.nan) if y is None else y
        began = time.process_time()
        curve.attempt(lambda: search.tell(point, y), "fit")  # noqa: B023
        if float(y[0]) > best:
            best, policy = float(y[0]), x[0]
        curve.add(best, used + time.process_time() - began)
    replayed = math.nan if policy is None else robot.play(policy, _replay_seeds(seed, settings))
    return curve.outcome(replayed)


@final
class _Curve:
    """What came of a search so far."""

    def __init__(self, total: int) -> None:
        self.num_calls = 0
        self._total = total
        self._counts: list[int] = []
        self._best: list[float] = []
        self._seconds: list[float] = []
        self._used = 0.0
        self._failures: list[str] = []

    def attempt(self, do: Callable[[], Any], what: str) -> Any:
        """Do something that may fail, and go on; None if it did."""
        try:
            return do()
        except Exception as error:
            self._failures.append(f"call {self.num_calls + 1}, {what}: {type(error).__name__}: {str(error)[:200]}")
            return None

    def add(self, best: float, seconds: float) -> None:
        """One more call."""
        self.num_calls += 1
        self._used += seconds
        if self.num_calls % _MARK == 0 or self.num_calls == self._total:
            self._counts.append(self.num_calls)
            # Before any policy is known, what a robot that does nothing earns.
            self._best.append(rounded(best, num_digits=5) if math.isfinite(best) else 0.0)
            self._seconds.append(rounded(self._used))
            self._used = 0.0

    def outcome(self, replayed: float) -> UnitOutcome:
        """As the study reports it."""
        return {
            "num_evaluations": self._counts,
            "best": self._best,
            "seconds": self._seconds,
            "replayed": rounded(replayed, num_digits=5) if math.isfinite(replayed) else None,
            "failures": self._failures,
        }


@final
class _UniformSearch:
    """Points anywhere in a box."""

    def __init__(self, bounds: Tensor, seed: int) -> None:
        self._bounds = bounds
        self._generator = torch.Generator().manual_seed(seed + 1)

    def ask(self) -> Tensor:
        lower, upper = self._bounds
        return lower + (upper - lower) * torch.rand(1, len(lower), generator=self._generator, dtype=lower.dtype)

    def tell(self, X: Tensor, y: Tensor) -> None:
        """Nothing is learned."""


def _make_robot(name: str, scaling: str) -> Swimmer | Hopper:
    if name == "swimmer":
        return Swimmer(scaling=scaling or "none")
    return Hopper(scaling=scaling or "leaked")


def _make_search(
    robot: Swimmer | Hopper, name: str, method: str, seed: int, *, settings: RobotSettings
) -> LaMCTSOptimizer | EvolutionStrategy | _UniformSearch:
    if method == "random":
        return _UniformSearch(robot.bounds, seed)
    if method == "cma":
        return EvolutionStrategy(robot.bounds, seed=seed)
    model, acquisition = method.split("-")
    task, num = _TASKS[name], _CANDIDATES_PER_DIM * robot.dim
    rule = Thompson(num) if acquisition == "ts" else LookaheadThompson(num, settings.depth, settings.num_paths)
    return LaMCTSOptimizer(
        robot.bounds,
        num_initial=task.num_initial,
        partition=PartitionSettings(task.leaf_size, task.exploration, task.gamma, keeps_samples=task.keeps_samples),
        model="exact" if model == "exact" else "sparse",
        acquisition=rule,
        objective=settings.objective,
        num_inducing=settings.num_inducing,
        rules=RegionRules(success_tolerance=_SUCCESS_TOLERANCE),
        priors="dim_scaled" if model == "exact" else task.priors,
        scaling=task.scaling,
        refit="always" if model == "exact" else task.refit,
        seed=seed,
    )


def _run_ars(
    robot: Swimmer | Hopper, task: _RobotOptions, total: int, seed: int, *, settings: RobotSettings
) -> UnitOutcome:
    """Augmented random search; each policy on its way is played three times, which counts as a call."""
    curve, random = _Curve(total), np.random.default_rng([seed, 1])
    best, found = -math.inf, None
    options = RandomSearchSettings(shift=task.shift)

    def play(step: Any, seeds: list[int]) -> float:
        episodes = [play_episode(robot.environment, step.policy, seed=each, scale=step.scale) for each in seeds]
        return float(np.mean([episode.reward for episode in episodes]))

    steps = augmented_random_search(robot.environment, robot.policy_shape, options, seed=seed)
    for num_played, step in enumerate(steps, start=1):
        value = play(step, [int(each) for each in random.integers(2**31 - 1, size=3)])
        num_calls = min(total, math.ceil(step.num_episodes / 3) + num_played)
        while curve.num_calls < num_calls - 1:
            curve.add(best, 0.0)
        if value > best:
            best, found = value, step
        curve.add(best, 0.0)
        if curve.num_calls >= total:
            break
    return curve.outcome(math.nan if found is None else play(found, _replay_seeds(seed, settings)))


def _replay_seeds(seed: int, settings: RobotSettings) -> list[int]:
    random = np.random.default_rng([seed, 2])
    return [int(each) for each in random.integers(2**31 - 1, size=settings.num_replayed)]


STUDY = Study(
    name="robots",
    problems={
        "swimmer": "a swimmer with 16 weights, observations as they are",
        "hopper": "a hopper with 33 weights, observations scaled by a trained policy's statistics",
        "swimmer-running": "the swimmer, observations scaled by what was seen so far",
        "hopper-running": "the hopper, observations scaled by what was seen so far",
    },
    methods={
        "svgp-ts": "LA-MCTS, SVGP, TS",
        "svgp-lts": "LA-MCTS, SVGP, LTS",
        "exact-ts": "LA-MCTS, exact GP, TS",
        "exact-lts": "LA-MCTS, exact GP, LTS",
        "cma": "CMA-ES",
        "ars": "ARS",
        "random": "random",
    },
    settings=RobotSettings,
    run=run,
)
