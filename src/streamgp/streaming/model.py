"""The model of a stream in the user's units."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.likelihoods import AbstractLikelihood
from streamgp.streaming.rows import Rows, likelihood_of
from streamgp.training.scaling import Scaling, find_scaling

__all__ = ["StreamModel", "StreamPrediction", "scaling_of"]

# Below so many rows their spread says little, and the scale of targets is taken wider.
_FEW_ROWS = 10


@final
@dataclass(frozen=True, eq=False)
class StreamPrediction:
    """What the model expects to observe, in the user's units.

    Attributes:
        latent_mean: Mean of the latent function, in the model's units.
        latent_variance: Its variance.
        likelihood: Of observations given the latent function, in the same units.
        shift: What is added to targets of those units, times `scale`, to come back to the user's.
        scale: See `shift`.
    """

    latent_mean: Float[Tensor, " n"]
    latent_variance: Float[Tensor, " n"]
    likelihood: AbstractLikelihood
    shift: Float[Tensor, ""]
    scale: Float[Tensor, ""]

    @property
    def mean(self) -> Float[Tensor, " n"]:
        """Mean of the targets."""
        return self.shift + self.scale * self.likelihood.predictive_mean(self.latent_mean, self.latent_variance)

    @property
    def variance(self) -> Float[Tensor, " n"]:
        """Variance of the targets, noise included."""
        return self.scale.square() * self.likelihood.predictive_variance(self.latent_mean, self.latent_variance)

    def quantiles(self, probabilities: Sequence[float]) -> Float[Tensor, "n k"]:
        """Quantiles of the targets, noise included."""
        levels = self.likelihood.predictive_quantiles(self.latent_mean, self.latent_variance, probabilities)
        return self.shift + self.scale * levels

    def log_density(self, y: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Log predictive density, or probability, of targets."""
        scaled = (y - self.shift) / self.scale
        density = self.likelihood.log_predictive_density(self.latent_mean, self.latent_variance, scaled)
        return density - self.scale.log()

    def observe(self, latent: Float[Tensor, "*s n"], generator: torch.Generator) -> Float[Tensor, "*s n"]:
        """Draw targets for values of the latent function."""
        return self.shift + self.scale * self.likelihood.sample(latent, generator=generator)


@final
@dataclass(frozen=True, eq=False)
class StreamModel:
    """A sparse GP in standardised units, and the way back.

    Attributes:
        gp: The sparse GP.
        likelihood: The fitted likelihood, in the same units.
        scaling: The units.
        lower: Least value of each input when they were chosen, in the user's units.
        upper: Largest value.
    """

    gp: SparseGP
    likelihood: AbstractLikelihood
    scaling: Scaling
    lower: Float[Tensor, " d"]
    upper: Float[Tensor, " d"]

    def scaled(self, rows: Rows) -> Rows:
        """Rows in the model's units."""
        return Rows(self.scaling.inputs(rows.inputs), self.scaling.targets(rows.targets), rows.totals)

    def predict(self, X: Float[Tensor, "n d"], totals: Float[Tensor, " n"] | None = None) -> StreamPrediction:
        """Predict targets at inputs in the user's units."""
        latent = self.gp.predict(self.scaling.inputs(X))
        return StreamPrediction(
            latent.mean,
            latent.variance.clamp_min(0.0),
            likelihood_of(self.likelihood, totals),
            self.scaling.target_shift,
            self.scaling.target_scale,
        )

    def num_outside(self, X: Float[Tensor, "n d"]) -> int:
        """How many inputs lie farther outside the range that the scaling was learned on than this range is wide."""
        width = self.upper - self.lower
        is_outside = ((X - self.lower) < -width) | ((X - self.upper) > width)
        return int(is_outside.any(-1).sum())


def scaling_of(rows: Rows, *, is_target_scaled: bool) -> Scaling:
    """Units in which inputs, and targets if asked for, have zero mean and unit variance."""
    scaling = find_scaling(True, rows.inputs, rows.targets, is_gaussian=is_target_scaled)
    assert scaling is not None
    n = rows.num_rows
    if n >= _FEW_ROWS or not is_target_scaled:
        return scaling
    widened = torch.maximum(scaling.target_scale * (_FEW_ROWS / n) ** 0.5, 0.1 * scaling.target_shift.abs())
    return Scaling(scaling.input_shift, scaling.input_scale, scaling.target_shift, widened)
