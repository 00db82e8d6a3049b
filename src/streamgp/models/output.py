"""One output of a posterior: an affine function of independent Gaussian predictions, computed when it is read."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import Prediction
from streamgp.linalg import apply, cholesky

__all__ = ["Output", "Term", "root_of_variance"]


@final
@dataclass(frozen=True, eq=False)
class Term:
    r"""The Gaussian values $s \, (f + \varepsilon)$.

    Attributes:
        prediction: Of the latent function $f$.
        noise_variance: Variance of $\varepsilon$, for all inputs or for each; None for none.
        scale: $s$, for all inputs (one value on the last axis) or for each; None for one.
    """

    prediction: Prediction
    noise_variance: Float[Tensor, "..."] | None = None
    scale: Float[Tensor, "..."] | None = None

    @property
    def mean(self) -> Float[Tensor, "..."]:
        mean = self.prediction.mean
        return mean if self.scale is None else self.scale * mean

    @property
    def variance(self) -> Float[Tensor, "..."]:
        variance = self.prediction.variance
        if self.noise_variance is not None:
            variance = variance + self.noise_variance
        return variance if self.scale is None else self.scale.square() * variance

    @property
    def covariance(self) -> Float[Tensor, "..."]:
        covariance = self.prediction.covariance
        if self.noise_variance is not None:
            noise, q = self.noise_variance, covariance.shape[-1]
            covariance = covariance + torch.diag_embed(noise.expand(*noise.shape[:-1], q))
        return covariance if self.scale is None else self.scale.unsqueeze(-1) * covariance * self.scale.unsqueeze(-2)

    @property
    def prior_variance(self) -> Float[Tensor, "..."]:
        """Variances before any data: the scale whose rounding the covariance carries."""
        variance = self.prediction.process.prior_variance(self.prediction.inputs)
        if self.noise_variance is not None:
            variance = variance + self.noise_variance
        return variance if self.scale is None else self.scale.square() * variance

    def times(self, weight: Float[Tensor, "..."]) -> "Term":
        """Multiply the values by a number, or by one for each input."""
        weight = weight.unsqueeze(-1) if weight.dim() == 0 else weight
        return replace(self, scale=weight if self.scale is None else weight * self.scale)


@final
@dataclass(frozen=True, eq=False)
class Output:
    """A sum of independent terms and an offset. Moments that fantasies share are computed once for all of them.

    Attributes:
        terms: What is added up.
        shape: Of the values, `(*b, q)`.
        offset: A number, or one for each input; None for zero.
    """

    terms: tuple[Term, ...]
    shape: torch.Size
    offset: Float[Tensor, "..."] | None = None

    @cached_property
    def mean(self) -> Float[Tensor, "..."]:
        """Mean."""
        mean = _sum([term.mean for term in self.terms])
        return (mean if self.offset is None else mean + self.offset).expand(self.shape)

    @cached_property
    def variance(self) -> Float[Tensor, "..."]:
        """Marginal variances; read off the covariance if that is there already."""
        return self._variance.expand(self.shape)

    @cached_property
    def deviation(self) -> Float[Tensor, "..."]:
        """Marginal standard deviations."""
        return root_of_variance(self._variance).expand(self.shape)

    @cached_property
    def _variance(self) -> Tensor:
        if "_covariance" in self.__dict__:
            return self._covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)
        return _sum([term.variance for term in self.terms])

    @property
    def covariance(self) -> Float[Tensor, "..."]:
        """Joint covariance."""
        return self._covariance.expand(*self.shape, self.shape[-1])

    @cached_property
    def _covariance(self) -> Tensor:
        return _sum([term.covariance for term in self.terms])

    @cached_property
    def _factor(self) -> Tensor:
        scale = _sum([term.prior_variance for term in self.terms]).detach()
        factor, _ = cholesky(self._covariance, scale=scale, name="the covariance of the posterior")
        return factor

    def sample(self, base_samples: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Map standard normal base samples `(*s, *b, q)` to samples."""
        if self.shape[-1] == 1:  # spares the covariance where the variance will do
            return self.mean + self.deviation * base_samples
        return self.mean + apply(self._factor, base_samples)

    def affine(self, scale: Float[Tensor, "..."], offset: Float[Tensor, "..."]) -> "Output":
        """The output times a scale, plus an offset."""
        shifted = offset if self.offset is None else scale * self.offset + offset
        return replace(self, terms=tuple(term.times(scale) for term in self.terms), offset=shifted)


def root_of_variance(variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The root, which has no derivative at zero: there the gradient is zero and not NaN."""
    return variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()


def _sum(values: list[Tensor]) -> Tensor:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
