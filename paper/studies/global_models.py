"""Global models on rover: batches of Thompson sampling and qGIBBON, with exact and sparse GPs."""

from dataclasses import dataclass
from typing import final

from gpytorch.kernels import MaternKernel, ScaleKernel

from paper.baselines.half_thompson import HalfThompson
from paper.problems import Rover
from paper.schema.study import Study, UnitOutcome
from paper.studies.rover import optimize_rover
from streamgp.acquisition import Search
from streamgp.optimizers import Optimizer

__all__ = ["STUDY", "GlobalSettings"]


@final
@dataclass(frozen=True)
class GlobalSettings:
    """Settings of the loop.

    Attributes:
        num_initial: Points of the initial design, which both models of a seed share.
        batch_size: Points of a step, half of them by Thompson sampling.
        num_evaluations: Evaluations in all.
        num_inducing: Most inducing points of the sparse model; the exact one has one at every input.
        num_candidates: Candidates of Thompson sampling.
        num_max_candidates: Points among which qGIBBON samples the maximum.
        num_restarts: Starts of each search of qGIBBON.
        raw_samples: Points among which those starts are chosen.
        max_iterations: Most iterations of L-BFGS in a search.
    """

    num_initial: int
    batch_size: int
    num_evaluations: int
    num_inducing: int
    num_candidates: int
    num_max_candidates: int
    num_restarts: int
    raw_samples: int
    max_iterations: int


def run(problem: str, method: str, seed: int, settings: GlobalSettings) -> UnitOutcome:
    """Optimize with a model of the whole box.

    Returns:
        `num_evaluations` after the initial design and each step, `best`, the largest noise-free reward so far, and
        `seconds` of the processor for each step, fit and suggestion together.
    """
    rover, rule = Rover(), HalfThompson(settings.num_candidates, settings.num_max_candidates)
    optimizer = Optimizer(
        rover.bounds,
        acquisition="random" if method == "random" else rule,
        num_initial=settings.num_initial,
        num_inducing=settings.num_evaluations if method == "exact" else settings.num_inducing,
        kernel=ScaleKernel(MaternKernel(2.5, ard_num_dims=rover.dim)).double(),
        refit="always",
        search=Search(settings.num_restarts, settings.raw_samples, settings.max_iterations),
        seed=seed,
    )
    return optimize_rover(optimizer, seed, settings)


STUDY = Study(
    name="global_models",
    problems={"rover": "A trajectory among obstacles, 60 dimensions, searched as a whole"},
    methods={
        "exact": "exact GP, TS and qGIBBON",
        "svgp": "SVGP, TS and qGIBBON",
        "random": "random",
    },
    settings=GlobalSettings,
    run=run,
)
