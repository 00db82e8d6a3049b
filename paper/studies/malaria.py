"""Where to measure malaria in Nigeria: choices by integrated variance, and at random."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from paper.active_learning.pixels import (
    AbstractSurveyor,
    ExactSurveyor,
    PixelPool,
    SparseSurveyor,
    WiskiSurveyor,
)
from paper.datasets import Malaria, load_malaria
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome

__all__ = ["STUDY", "MalariaSettings"]


@final
@dataclass(frozen=True)
class MalariaSettings:
    """Settings of the survey. Counts larger than the data mean all of it.

    Attributes:
        num_initial: Random pixels that are measured first.
        num_steps: Number of choices.
        batch_size: Pixels of a choice.
        num_test: Held-out pixels on which the error is measured.
        num_pool: Pixels that may be measured.
        num_targets: Pixels over which the variance is integrated.
        num_candidates: Pixels that the exact GP looks at for a choice; the others look at all.
        num_inducing: Most inducing points of the sparse GP.
        grid_size: Grid points of WISKI along each side.
        refit_interval: Choices from one search of hyperparameters to the next.
        noise: Known standard deviations: `"standin"` or `"temporal"`.
        num_pixels: Pixels of the map that is kept of seed 0.
    """

    num_initial: int
    num_steps: int
    batch_size: int
    num_test: int
    num_pool: int
    num_targets: int
    num_candidates: int
    num_inducing: int
    grid_size: int
    refit_interval: int
    noise: str
    num_pixels: int


def run(problem: str, method: str, seed: int, settings: MalariaSettings) -> UnitOutcome:
    """Survey the map by a method, named by its model and its rule.

    All methods of a seed start with the same pixels, and those that choose at random choose the same.

    Returns:
        `num_points`, numbers of measured pixels, and `rmse`, the error on the held-out pixels after these. Of seed 0
        also `chosen`, coordinates of the measured pixels in the order of the choices, and `map`: coordinates
        (`longitude`, `latitude`), `mean` and `deviation` after the last choice.
    """
    data = load_malaria(seed, num_test=settings.num_test, noise=settings.noise)
    generator = torch.Generator().manual_seed(seed)
    members = torch.randperm(len(data.pool_y), generator=generator)[: settings.num_pool]
    pool = _pool(data, members, seed=seed, settings=settings)
    order = torch.randperm(len(members), generator=generator)
    model, rule = method.split("-")
    measured = order[: settings.num_initial]
    surveyor = _start(model, pool, measured, settings)
    errors = [_rmse(surveyor, data)]
    for _ in range(settings.num_steps):
        n, q = len(measured), settings.batch_size
        chosen = order[n : n + q] if rule == "random" else surveyor.choose(q)
        surveyor = surveyor.measure(chosen)
        measured = torch.cat([measured, chosen])
        errors.append(_rmse(surveyor, data))
    numbers = [settings.num_initial + settings.batch_size * step for step in range(settings.num_steps + 1)]
    outcome: UnitOutcome = {"num_points": numbers, "rmse": errors}
    if seed == 0:
        outcome["chosen"] = rounded(data.coordinates[members[measured]], num_digits=5)
        outcome["map"] = _map(surveyor, data, settings.num_pixels)
    return outcome


def _pool(data: Malaria, members: Tensor, *, seed: int, settings: MalariaSettings) -> PixelPool:
    return PixelPool(
        X=data.pool_X[members],
        y=data.pool_y[members],
        noise_variance=data.pool_noise_variance[members],
        targets=torch.arange(min(settings.num_targets, len(members))),  # the order of the members is random
        refit_every=settings.refit_interval * settings.batch_size,
        seed=seed,
    )


def _start(model: str, pool: PixelPool, first: Tensor, settings: MalariaSettings) -> AbstractSurveyor:
    if model == "svgp":
        return SparseSurveyor.start(pool, first, num_inducing=settings.num_inducing)
    if model == "exact":
        return ExactSurveyor.start(pool, first, num_candidates=settings.num_candidates)
    return WiskiSurveyor.start(pool, first, grid_size=settings.grid_size)


def _rmse(surveyor: AbstractSurveyor, data: Malaria) -> float:
    return rounded(float((surveyor.mean(data.test_X) - data.test_y).square().mean().sqrt()))


def _map(surveyor: AbstractSurveyor, data: Malaria, num_pixels: int) -> UnitOutcome:
    """Predictions at some of the held-out pixels, all over the country."""
    shown = torch.randperm(len(data.test_y), generator=torch.Generator().manual_seed(0))[:num_pixels]
    mean, variance = surveyor.predict(data.test_X[shown])
    coordinates = data.test_coordinates[shown]
    return {
        "longitude": rounded(coordinates[:, 0], num_digits=5),
        "latitude": rounded(coordinates[:, 1], num_digits=5),
        "mean": rounded(mean, num_digits=3),
        "deviation": rounded(variance.sqrt(), num_digits=3),
    }


STUDY = Study(
    name="malaria",
    problems={"nigeria": "Plasmodium falciparum rate in Nigeria, 43 111 pixels, known noise"},
    methods={
        "svgp-nipv": "SVGP, integrated variance",
        "svgp-random": "SVGP, random",
        "exact-nipv": "exact GP, integrated variance",
        "exact-random": "exact GP, random",
        "wiski-nipv": "WISKI, integrated variance",
        "wiski-random": "WISKI, random",
    },
    settings=MalariaSettings,
    run=run,
    datasets=("malaria",),
)
