"""Outcomes of several outputs for training: checked, and in units that suit it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_finite, check_float
from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.likelihoods.registry import read_likelihood
from streamgp.training.arguments import has_constants

__all__ = ["OutputUnits", "fill_gaps", "read_likelihoods", "read_outcomes"]

# Noise to start with, relative to the variance of an output.
_START_NOISE = 0.1
# Rows whose distances to all others are in work together.
_ROWS_AT_ONCE = 1024


def read_outcomes(X: Any, Y: Any) -> tuple[Tensor, Tensor]:
    """Inputs and outcomes in double precision, without rows in which nothing was observed."""
    X, Y = check_finite(check_float(X, "X"), "X").detach().double().cpu(), check_float(Y, "Y").detach().double().cpu()
    if X.dim() != 2 or Y.dim() != 2 or len(X) != len(Y) or 0 in (*X.shape, *Y.shape):
        raise ShapeError(
            f"X must have shape (n, d) and Y (n, o), one row for each input and one column for each output, but have "
            f"shapes {tuple(X.shape)} and {tuple(Y.shape)}."
        )
    if torch.isinf(Y).any():
        raise ValueRangeError("Y must be finite, or NaN where an output was not observed, but holds infinity.")
    counts = (~torch.isnan(Y)).sum(0)
    if int(counts.min()) < 2:
        raise ValueRangeError(
            f"Each output must have been observed at least twice to be fitted, but output {int(counts.argmin())} was "
            f"observed {int(counts.min())} times. Leave it out."
        )
    is_kept = ~torch.isnan(Y).all(-1)
    return X[is_kept], Y[is_kept]


def read_likelihoods(likelihood: Any, Y: Tensor) -> list[AbstractLikelihood]:
    """One for each output, whose outcomes it admits."""
    o = Y.shape[-1]
    given = list(likelihood) if isinstance(likelihood, list | tuple) else [likelihood] * o
    if len(given) != o:
        raise OptionError(
            f"likelihood must be one for all outputs or one for each of the {o}, but there are {len(given)}."
        )
    read = []
    for index, each in enumerate(given):
        one = Gaussian(_START_NOISE * float(_variance(Y[:, index]))) if each is None else read_likelihood(each)
        if one.num_inputs != 1 or one.num_latents != 1 or has_constants(one):
            raise UnsupportedError(
                "Each output has a likelihood of single inputs and one latent function, without constants for each "
                f"observation, but output {index} has a {type(one).__name__}."
            )
        one.check_targets(Y[:, index][~torch.isnan(Y[:, index])])
        read.append(one)
    return read


def _variance(y: Tensor) -> Tensor:
    variance = (y - y.nanmean()).square().nanmean()
    return torch.where(variance > 0, variance, 1.0)


@final
@dataclass(frozen=True, eq=False)
class OutputUnits:
    """Units in which outputs are trained, and where their means start.

    Attributes:
        center: Subtracted from outcomes whose likelihood has a location and a scale; zero for others.
        scale: Divides them after that; one for others.
        mean: Means of the latent functions to start from, in these units.
        spread: Mean and standard deviation of the outcomes themselves.
    """

    center: Float[Tensor, " o"]
    scale: Float[Tensor, " o"]
    mean: Float[Tensor, " o"]
    spread: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, Y: Tensor, likelihoods: Sequence[AbstractLikelihood]) -> "OutputUnits":
        """Units that suit outcomes."""
        center = Y.nanmean(0)
        scale = (Y - center).square().nanmean(0).sqrt()
        scale = torch.where(scale > 0, scale, 1.0)
        is_scaled = torch.tensor([each.is_location_scale for each in likelihoods])
        starts = [
            torch.zeros(()) if each.is_location_scale else _latent_mean(each, Y[:, j])
            for j, each in enumerate(likelihoods)
        ]
        zero, one = torch.zeros_like(center), torch.ones_like(scale)
        mean = torch.stack([start.double() for start in starts])
        return cls(torch.where(is_scaled, center, zero), torch.where(is_scaled, scale, one), mean, (center, scale))

    def scaled(self, Y: Tensor) -> Tensor:
        """Outcomes in these units."""
        return (Y - self.center) / self.scale

    def standard(self, Y: Tensor) -> Tensor:
        """Outcomes of unit variance, whatever their likelihood."""
        return (Y - self.spread[0]) / self.spread[1]

    def scaled_likelihoods(self, likelihoods: Sequence[AbstractLikelihood], *, is_back: bool = False) -> list[Any]:
        """Likelihoods in these units, or back in the user's."""
        scales = (1.0 / self.scale if is_back else self.scale).tolist()
        return [
            each.rescaled(scale) if each.is_location_scale else each
            for each, scale in zip(likelihoods, scales, strict=True)
        ]


def _latent_mean(likelihood: AbstractLikelihood, y: Tensor) -> Tensor:
    """The latent value whose response is the mean of the outcomes, drawn in a little from the ends of the support."""
    y = y[~torch.isnan(y)]
    lower, upper = likelihood.support
    mean, n = y.mean(), len(y)
    if upper < math.inf and lower > -math.inf:
        mean = (y.sum() + 0.5 * (lower + upper)) / (n + 1.0)
    elif lower > -math.inf:
        mean = (y.sum() + 0.5) / n
    return likelihood.inverse_response(mean)


def fill_gaps(X: Float[Tensor, "n d"], Y: Float[Tensor, "n o"]) -> Float[Tensor, "n o"]:
    """Outcomes with those of the nearest input where an output was observed in place of what is missing.

    Outputs that are seldom observed together, such as tasks, can then be compared.

    Args:
        X: Inputs, in units in which they can be compared.
        Y: Outcomes, NaN where missing; each output was observed somewhere.
    """
    filled = Y.clone()
    for j in range(Y.shape[-1]):
        is_missing = torch.isnan(Y[:, j])
        seen = (~is_missing).nonzero().squeeze(-1)
        for part in is_missing.nonzero().squeeze(-1).split(_ROWS_AT_ONCE):
            filled[part, j] = Y[seen[torch.cdist(X[part], X[seen]).argmin(-1)], j]
    return filled
