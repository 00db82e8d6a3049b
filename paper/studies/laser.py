"""Tuning a free-electron laser with exact and sparse models, and with online GPs of few basis vectors."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from torch import Tensor

from paper.baselines.expected_improvement import suggest_point
from paper.baselines.paper_rules import paper_rule
from paper.problems import Laser
from paper.problems.basis_vector_gp import BasisVectorGP
from paper.problems.laser_simulator import PRIOR_MEAN, load_simulator
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.likelihoods import Gaussian
from streamgp.optimizers import Optimizer, Search

__all__ = ["STUDY", "LaserSettings"]


@final
@dataclass(frozen=True)
class LaserSettings:
    """Settings of the loop.

    Attributes:
        num_initial: Rows of the archive that all methods of a seed start with.
        num_evaluations: Evaluations after these, one at a time.
        num_inducing: Most inducing points of the sparse models; the exact ones have one at every input.
        num_basis: Basis vectors of the online GPs.
        num_restarts: Starts of each search.
        raw_samples: Points among which those starts are chosen.
        max_iterations: Most iterations of L-BFGS in a search.
        num_fantasies: Fantasies of knowledge gradient.
        num_samples: Samples of expected improvement.
    """

    num_initial: int
    num_evaluations: int
    num_inducing: int
    num_basis: int
    num_restarts: int
    raw_samples: int
    max_iterations: int
    num_fantasies: int
    num_samples: int


def run(problem: str, method: str, seed: int, settings: LaserSettings) -> UnitOutcome:
    """Tune by a method.

    Returns:
        After the initial rows and each evaluation: `num_evaluations` and `best`, the largest noise-free value so far;
        and `seconds` of the processor for each suggestion.
    """
    laser, generator = Laser(), torch.Generator().manual_seed(seed)
    X, y = laser.initial_design(settings.num_initial, generator)
    suggest = _make_rule(laser, method, seed, settings=settings)
    best, seconds = [float(laser(X).max())], []
    for _ in range(settings.num_evaluations):
        began = time.process_time()
        point = suggest(X, y)
        seconds.append(rounded(time.process_time() - began))
        if method == "random-cube":
            # Outside the bounds, where the simulator is its prior mean.
            value, outcome = PRIOR_MEAN, torch.full((1,), PRIOR_MEAN, dtype=X.dtype)
        else:
            value, outcome = float(laser(point)), laser.observe(point, generator)
        best.append(max(best[-1], value))
        X, y = torch.cat([X, point]), torch.cat([y, outcome])
    counts = list(range(settings.num_initial, len(X) + 1))
    return {"num_evaluations": counts, "best": [rounded(value) for value in best], "seconds": seconds}


def _make_rule(laser: Laser, method: str, seed: int, *, settings: LaserSettings) -> Callable[[Tensor, Tensor], Tensor]:
    """A function that suggests a point from all rows so far."""
    if method in ("random", "random-cube"):
        return _random_rule(laser, seed, is_inside=method == "random")
    if method in ("ogp-ei", "wogp-ei"):
        return _basis_rule(laser, settings.num_basis, is_weighted=method == "wogp-ei")
    return _model_rule(laser, method, seed, settings=settings)


def _random_rule(laser: Laser, seed: int, *, is_inside: bool) -> Callable[[Tensor, Tensor], Tensor]:
    generator = torch.Generator().manual_seed(seed + 1)
    lower, upper = laser.bounds

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        share = torch.rand(1, laser.dim, generator=generator, dtype=X.dtype)
        return lower + (upper - lower) * share if is_inside else share

    return suggest


def _basis_rule(laser: Laser, num_basis: int, *, is_weighted: bool) -> Callable[[Tensor, Tensor], Tensor]:
    simulator = load_simulator()
    gp = BasisVectorGP.empty(
        simulator.kernel,
        noise_variance=simulator.noise_variance,
        max_basis=num_basis,
        prior_mean=PRIOR_MEAN,
        is_weighted=is_weighted,
    )
    num_seen = 0

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        nonlocal gp, num_seen
        gp, num_seen = gp.learn(X[num_seen:], y[num_seen:]), len(X)
        return suggest_point(gp, X, laser.bounds)

    return suggest


def _model_rule(laser: Laser, method: str, seed: int, *, settings: LaserSettings) -> Callable[[Tensor, Tensor], Tensor]:
    model, _, acquisition = method.rpartition("-")
    is_exact = model == "exact"
    base = MaternKernel(2.5, ard_num_dims=laser.dim, lengthscale_prior=GammaPrior(3.0, 6.0))
    optimizer = Optimizer(
        laser.bounds,
        likelihood=Gaussian(laser.noise_variance, is_learned=False),
        acquisition=paper_rule(acquisition, settings.num_fantasies, settings.num_samples),
        num_initial=settings.num_initial,
        num_inducing=settings.num_initial + settings.num_evaluations if is_exact else settings.num_inducing,
        kernel=ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15)).double(),
        refit="always",
        search=Search(
            num_restarts=settings.num_restarts,
            raw_samples=settings.raw_samples,
            max_iterations=settings.max_iterations,
        ),
        seed=seed,
    )
    num_told = 0

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        nonlocal num_told
        optimizer.tell(X[num_told:], y[num_told:])
        num_told = len(X)
        return optimizer.ask(1)

    return suggest


STUDY = Study(
    name="laser",
    problems={"laser": "pulse energy over 16 magnets, noise of standard deviation 0.1, one point at a time"},
    methods={
        "exact-qei": "exact GP, qEI",
        "exact-qnei": "exact GP, qNEI",
        "exact-qkg": "exact GP, qKG",
        "svgp-qei": "SVGP, qEI",
        "svgp-qnei": "SVGP, qNEI",
        "svgp-qkg": "SVGP, qKG",
        "ogp-ei": "OGP, EI",
        "wogp-ei": "WOGP, EI",
        "random": "random in the bounds",
        "random-cube": "random in the unit cube, as the paper's code",
    },
    settings=LaserSettings,
    run=run,
    datasets=("laser",),
)
