"""Thompson sampling with and without look-ahead in a trust region, on rover."""

import time
from dataclasses import dataclass
from typing import Any, final

import torch

from paper.problems import Rover
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.acquisition import LookaheadThompson, Thompson
from streamgp.optimizers import Optimizer, TurboOptimizer

__all__ = ["STUDY", "RoverSettings", "model_options", "optimize_rover"]


@final
@dataclass(frozen=True)
class RoverSettings:
    """Settings of the loop.

    Attributes:
        num_initial: Points of the initial design, which all methods of a seed share.
        batch_size: Points of a step.
        num_evaluations: Evaluations in all.
        num_inducing_large: Most inducing points of the models called large.
        num_inducing_small: Most inducing points of those called small.
        num_candidates: Points among which each step chooses.
        depth: Depth of the look-ahead, where the method does not say another.
        num_paths: Number of its paths.
    """

    num_initial: int
    batch_size: int
    num_evaluations: int
    num_inducing_large: int
    num_inducing_small: int
    num_candidates: int
    depth: int
    num_paths: int


def run(problem: str, method: str, seed: int, settings: RoverSettings) -> UnitOutcome:
    """Optimize by a method.

    Returns:
        `num_evaluations` after the initial design and each step, `best`, the largest noise-free reward so far,
        `seconds` of the processor for each step, fit and suggestion together, and `num_runs`, how often the search
        began.
    """
    optimizer = TurboOptimizer(
        Rover().bounds,
        num_initial=settings.num_initial,
        seed=seed,
        **model_options(method, settings),
    )
    outcome = optimize_rover(optimizer, seed, settings)
    return {**outcome, "num_runs": optimizer.num_runs}


def optimize_rover(optimizer: Optimizer | TurboOptimizer, seed: int, settings: Any) -> UnitOutcome:
    """Evaluate rover where an optimizer suggests it, batch by batch.

    Args:
        optimizer: Without data.
        seed: Of the noise.
        settings: With `num_initial`, `batch_size` and `num_evaluations`.

    Returns:
        `num_evaluations` after the initial design and each step, `best`, the largest noise-free reward so far, and
        `seconds` of the processor for each step, fit and suggestion together.
    """
    rover, generator = Rover(), torch.Generator().manual_seed(seed)
    counts: list[int] = []
    best, seconds, most = [], [], -float("inf")
    while not counts or counts[-1] < settings.num_evaluations:
        began = time.process_time()
        X = optimizer.ask(settings.batch_size if counts else settings.num_initial)
        if counts:
            seconds.append(rounded(time.process_time() - began))
        optimizer.tell(X, rover.observe(X, generator))
        most = max(most, float(rover(X).max()))
        counts.append(len(optimizer.X))
        best.append(rounded(most))
    return {"num_evaluations": counts, "best": best, "seconds": seconds}


def model_options(method: str, settings: RoverSettings) -> dict[str, Any]:
    """Options that the name of a method stands for: `exact-lts`, `svgp-large-pll-lts-depth2`, and the like."""
    model, *words = method.split("-")
    if model == "exact":
        return {"model": "exact", "acquisition": _rule(words[0], settings, settings.depth)}
    size, objective, acquisition, *depth = words
    return {
        "model": "sparse",
        "num_inducing": settings.num_inducing_large if size == "large" else settings.num_inducing_small,
        "objective": objective,
        "acquisition": _rule(acquisition, settings, int(depth[0].removeprefix("depth")) if depth else settings.depth),
    }


def _rule(name: str, settings: RoverSettings, depth: int) -> Thompson | LookaheadThompson:
    if name == "ts":
        return Thompson(settings.num_candidates)
    return LookaheadThompson(settings.num_candidates, depth, settings.num_paths)


STUDY = Study(
    name="rover",
    problems={"rover": "A trajectory among obstacles, 60 dimensions"},
    methods={
        "exact-ts": "exact GP, TS",
        "exact-lts": "exact GP, LTS",
        "svgp-large-elbo-ts": "large SVGP, ELBO, TS",
        "svgp-large-elbo-lts": "large SVGP, ELBO, LTS",
        "svgp-large-pll-ts": "large SVGP, PLL, TS",
        "svgp-large-pll-lts": "large SVGP, PLL, LTS",
        "svgp-small-elbo-ts": "small SVGP, ELBO, TS",
        "svgp-small-elbo-lts": "small SVGP, ELBO, LTS",
        "svgp-small-pll-ts": "small SVGP, PLL, TS",
        "svgp-small-pll-lts": "small SVGP, PLL, LTS",
        "svgp-large-elbo-lts-depth1": "depth 1",
        "svgp-large-elbo-lts-depth2": "depth 2",
        "svgp-large-elbo-lts-depth8": "depth 8",
    },
    settings=RoverSettings,
    run=run,
)
