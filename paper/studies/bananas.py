"""Bananas in four batches, sorted from left to right: does a classifier adapt without forgetting?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import Tensor

from paper.datasets import load_bananas
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.conditioning import ConditionedGP, SparseGP
from streamgp.likelihoods import Bernoulli
from streamgp.training import fit

__all__ = ["STUDY", "BananasSettings"]

_LIKELIHOOD = Bernoulli()


@final
@dataclass(frozen=True)
class BananasSettings:
    """Settings of the classifier.

    Attributes:
        num_batches: Number of batches.
        num_inducing: Number of inducing points.
        grid_size: Points along each axis at which predictions are kept.
    """

    num_batches: int
    num_inducing: int
    grid_size: int


def run(problem: str, method: str, seed: int, settings: BananasSettings) -> UnitOutcome:
    """Fit the first batch, and learn the others by a method.

    Returns:
        `first` and `second`, the axes of a grid; after each of `num_rows` the maps `probability` of class 1 and latent
        `variance`, by rows of equal `second`, the `accuracy` and `nlpd` on the test set, and, for each strip of the
        plane that a batch came from, `strip_accuracy` and `strip_variance`; `strip_sizes`, its numbers of test rows;
        and the training `inputs` and `classes` in the order of their arrival.
    """
    data = load_bananas()
    batches = data.in_batches(settings.num_batches)
    strips = torch.bucketize(data.X_test[:, 0].contiguous(), _edges(batches))
    axes = [
        torch.linspace(float(column.min()), float(column.max()), settings.grid_size, dtype=torch.float64)
        for column in data.X_test.unbind(-1)
    ]
    grid = torch.stack(torch.meshgrid(axes[0], axes[1], indexing="xy"), -1).reshape(-1, 2)
    outcome: UnitOutcome = {
        "first": rounded(axes[0]),
        "second": rounded(axes[1]),
        "inputs": rounded(torch.cat([X for X, _ in batches]), num_digits=3),
        "classes": torch.cat([y for _, y in batches]).int().tolist(),
        "strip_sizes": torch.bincount(strips, minlength=len(batches)).tolist(),
        **{name: [] for name in ("num_rows", "probability", "variance", "accuracy", "nlpd")},
        **{name: [] for name in ("strip_accuracy", "strip_variance")},
    }
    for number, gp in enumerate(_learn(method, batches, settings), start=1):
        outcome["num_rows"].append(sum(len(targets) for _, targets in batches[:number]))
        _note_maps(outcome, gp, grid, grid_size=settings.grid_size)
        _note_scores(outcome, gp, data.X_test, y=data.y_test, strips=strips)
    return outcome


def _edges(batches: tuple[tuple[Tensor, Tensor], ...]) -> Tensor:
    """Where one strip of the plane ends and the next begins."""
    return torch.stack([(left[-1, 0] + right[0, 0]) / 2 for (left, _), (right, _) in pairwise(batches)])


def _learn(
    method: str, batches: tuple[tuple[Tensor, Tensor], ...], settings: BananasSettings
) -> Iterator[SparseGP | ConditionedGP]:
    """The belief after each batch."""
    gp: SparseGP | ConditionedGP = _fit(*batches[0], settings)
    yield gp
    for number, (X, y) in enumerate(batches[1:], start=2):
        if method == "batch":
            seen = batches[:number]
            gp = _fit(torch.cat([each for each, _ in seen]), torch.cat([each for _, each in seen]), settings)
        elif method == "absorbed":
            assert isinstance(gp, SparseGP)
            gp, _ = gp.absorb(X, y, likelihood=_LIKELIHOOD)
        else:
            sites = "paper" if method == "paper" else "variational"
            gp = gp.condition(X, y, likelihood=_LIKELIHOOD, sites=sites)
        yield gp


def _fit(X: Tensor, y: Tensor, settings: BananasSettings) -> SparseGP:
    kernel = ScaleKernel(RBFKernel())
    return fit(X, y, likelihood=_LIKELIHOOD, kernel=kernel, num_inducing=settings.num_inducing).gp


def _note_maps(outcome: UnitOutcome, gp: SparseGP | ConditionedGP, grid: Tensor, *, grid_size: int) -> None:
    prediction = gp.predict(grid)
    variance = prediction.variance.clamp_min(0.0)
    probability = _LIKELIHOOD.predictive_mean(prediction.mean, variance)
    for name, values in (("probability", probability), ("variance", variance)):
        outcome[name].append(rounded(values.reshape(grid_size, grid_size), num_digits=3))


def _note_scores(outcome: UnitOutcome, gp: SparseGP | ConditionedGP, X: Tensor, *, y: Tensor, strips: Tensor) -> None:
    prediction = gp.predict(X)
    variance = prediction.variance.clamp_min(0.0)
    is_right = ((prediction.mean > 0) == (y > 0.5)).double()
    parts = [strips == strip for strip in range(len(outcome["strip_sizes"]))]
    outcome["accuracy"].append(rounded(float(is_right.mean())))
    outcome["nlpd"].append(rounded(float(-_LIKELIHOOD.log_predictive_density(prediction.mean, variance, y).mean())))
    outcome["strip_accuracy"].append([rounded(float(is_right[part].mean())) for part in parts])
    outcome["strip_variance"].append([rounded(float(variance[part].mean())) for part in parts])


STUDY = Study(
    name="bananas",
    problems={"bananas": "Two classes in the plane, 400 rows in four batches from left to right"},
    methods={
        "conditioned": "conditioned, variational sites",
        "paper": "conditioned, the paper's sites",
        "absorbed": "absorbed: stays at its size",
        "batch": "fit to all rows so far",
    },
    settings=BananasSettings,
    run=run,
    datasets=("bananas",),
)
