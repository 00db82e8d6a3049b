"""Predictions of targets that are not real numbers with noise of a learned scale, and of classes."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.special import logsumexp
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.inversion import invert_cumulative
from streamgp.likelihoods.quantiles import SLACK, are_few, first_reaching
from streamgp.streams.constants import LEAST_PROBABILITY
from streamgp.streams.observing import Observing, with_counts
from streamgp.streams.predictive import read_levels
from streamgp.streams.state import Said

__all__ = ["ClassForecast", "LatentForecast"]

# Deviations above their mean that counts hardly exceed.
_FAR = 3.0


@final
@dataclass(frozen=True, eq=False)
class LatentForecast:
    """Forecasts of rows: mixtures of what a likelihood makes of Gaussian latent values; a frozen value.

    Attributes:
        location: Means of the latent values, by expert.
        variance_of_latent: Their variances.
        weight: Weights of the experts, which sum to one over a row.
        likelihood: Likelihood in the units of the model.
        counts: Numbers of trials or exposures of the rows; None if they have none.
        target_mean: What zero is in the units of the targets.
        target_scale: What one is more than that.
    """

    location: Float[np.ndarray, "n e"]
    variance_of_latent: Float[np.ndarray, "n e"]
    weight: Float[np.ndarray, "n e"]
    likelihood: AbstractLikelihood
    counts: Float[np.ndarray, " n"] | None = None
    target_mean: float = 0.0
    target_scale: float = 1.0

    @classmethod
    def from_said(
        cls,
        said: Said,
        observing: Observing,
        counts: Float[np.ndarray, " n"],
        *,
        target_mean: float,
        target_scale: float,
    ) -> "LatentForecast":
        """Return what was said in standardized units in those of the targets."""
        return cls(
            said.location,
            said.scale[..., 0],
            _weights(said),
            observing.likelihood,
            counts if observing.has_counts else None,
            target_mean,
            target_scale,
        )

    def said(self) -> Said:
        """Return it as filters said it."""
        scale = self.variance_of_latent[..., None].copy()
        log_weight = np.log(np.maximum(self.weight, 1e-300))[..., None]
        return Said(self.location.copy(), scale, np.full(scale.shape, np.inf), log_weight)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def is_discrete(self) -> bool:
        """Tell whether targets are counts."""
        return self.likelihood.outcome_kind != "real"

    @property
    def mean(self) -> Float[np.ndarray, " n"]:
        """Means."""
        return self.target_mean + self.target_scale * (self.weight * self._means).sum(1)

    @property
    def variance(self) -> Float[np.ndarray, " n"]:
        """Variances, noise included."""
        return self.target_scale**2 * self._variance

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the log density, or probability, of each target."""
        with torch.no_grad():
            each = self._likelihood.log_predictive_density(*self._latent, self._scaled(y))
        return np.asarray(logsumexp(each.numpy(), axis=1, b=self.weight) - np.log(self.target_scale))

    def cumulative(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the probability of at most each target; NaN for likelihoods that do not know it."""
        found = self._cumulative(self._scaled(y))
        return np.full(self.num_rows, np.nan) if found is None else found.numpy()

    def below(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the probability of less than each target."""
        y = np.asarray(y, dtype=float)
        if not self.is_discrete:
            return self.cumulative(y)
        return np.where(y > 0.0, self.cumulative(np.maximum(y - 1.0, 0.0)), 0.0)

    def quantiles(self, probabilities: Any) -> Float[np.ndarray, "n k"]:
        """Return quantiles, by a search in the distribution function of the mixture.

        For likelihoods that do not know theirs, the experts' latent values are first replaced by one Gaussian of the
        same mean and variance.
        """
        levels = torch.from_numpy(read_levels(probabilities))
        likelihood, weight = self._likelihood, torch.from_numpy(self.weight)
        with torch.no_grad():
            if not likelihood.knows_cumulative:
                mean = (self.weight * self.location).sum(1)
                variance = (self.weight * (self.variance_of_latent + (self.location - mean[:, None]) ** 2)).sum(1)
                single = self.likelihood if self.counts is None else with_counts(self.likelihood, self.counts)
                found = single.predictive_quantiles(torch.from_numpy(mean), torch.from_numpy(variance), levels)
                return self.target_mean + self.target_scale * np.asarray(found.numpy())
            center = torch.from_numpy((self.weight * self._means).sum(1))
            deviation = torch.from_numpy(np.sqrt(self._variance))
            few = likelihood.first_cumulatives(*self._latent) if are_few(center + _FAR * deviation) else None
            reached = None if few is None else first_reaching((weight * few).sum(-1), levels[:, None])
            if reached is None:
                reached = invert_cumulative(
                    self._known_cumulative,
                    levels[:, None] - (SLACK if self.is_discrete else 0.0),
                    center=center,
                    deviation=deviation,
                    is_whole=self.is_discrete,
                )
        return self.target_mean + self.target_scale * np.asarray(reached.movedim(0, -1).numpy())

    def by_expert(self, num_experts: int) -> tuple[Float[np.ndarray, "n e"], ...]:
        """Return weights, means and deviations of the experts."""
        deviation = self.target_scale * np.sqrt(self._variances)
        return self.weight, self.target_mean + self.target_scale * self._means, deviation

    def take(self, rows: Int[np.ndarray, " r"]) -> "LatentForecast":
        """Return the forecast of some of the rows."""
        counts = None if self.counts is None else self.counts[rows]
        return replace(
            self,
            location=self.location[rows],
            variance_of_latent=self.variance_of_latent[rows],
            weight=self.weight[rows],
            counts=counts,
        )

    @property
    def _likelihood(self) -> AbstractLikelihood:
        """The likelihood of the rows, with an axis for experts."""
        return self.likelihood if self.counts is None else with_counts(self.likelihood, self.counts[:, None])

    @property
    def _latent(self) -> tuple[Float[Tensor, "n e"], Float[Tensor, "n e"]]:
        return torch.from_numpy(self.location), torch.from_numpy(self.variance_of_latent)

    @cached_property
    def _means(self) -> Float[np.ndarray, "n e"]:
        with torch.no_grad():
            return np.asarray(self._likelihood.predictive_mean(*self._latent).numpy())

    @cached_property
    def _variances(self) -> Float[np.ndarray, "n e"]:
        with torch.no_grad():
            return np.asarray(self._likelihood.predictive_variance(*self._latent).numpy())

    @cached_property
    def _variance(self) -> Float[np.ndarray, " n"]:
        center = (self.weight * self._means).sum(1, keepdims=True)
        return np.asarray((self.weight * (self._variances + (self._means - center) ** 2)).sum(1))

    def _scaled(self, y: Float[np.ndarray, " n"]) -> Float[Tensor, "n 1"]:
        return torch.from_numpy((np.asarray(y, dtype=float) - self.target_mean) / self.target_scale)[:, None]

    def _cumulative(self, y: Float[Tensor, "*k n 1"]) -> Float[Tensor, "*k n"] | None:
        with torch.no_grad():
            found = self._likelihood.predictive_cumulative(*self._latent, y)
        return None if found is None else (torch.from_numpy(self.weight) * found).sum(-1)

    def _known_cumulative(self, y: Float[Tensor, "*k n"]) -> Float[Tensor, "*k n"]:
        found = self._cumulative(y.unsqueeze(-1))
        assert found is not None
        return found


@final
@dataclass(frozen=True, eq=False)
class ClassForecast:
    """Forecasts of rows: probabilities of the classes, which sum to one; a frozen value.

    Attributes:
        probabilities: Probabilities of the classes.
        location: Means of the latent values, by expert and class.
        variance_of_latent: Their variances.
        weight: Weights of the experts.
        by_each: Probabilities of the classes by expert.
    """

    probabilities: Float[np.ndarray, "n k"]
    location: Float[np.ndarray, "n f"]
    variance_of_latent: Float[np.ndarray, "n f"]
    weight: Float[np.ndarray, "n e"]
    by_each: Float[np.ndarray, "n e k"]

    @classmethod
    def from_said(cls, said: Said, observing: Observing, num_classes: int) -> "ClassForecast":
        """Return probabilities as the experts said them."""
        weight = _weights(said)
        each = _probabilities(said, observing, num_classes)
        return cls((weight[..., None] * each).sum(1), said.location, said.scale[..., 0], weight, each)

    @property
    def plain(self) -> Float[np.ndarray, "n k"]:
        """Probabilities as the experts said them, before they were made as sure as they are to be."""
        return np.asarray((self.weight[..., None] * self.by_each).sum(1))

    def said(self) -> Said:
        """Return it as filters said it."""
        scale = self.variance_of_latent[..., None].copy()
        log_weight = np.log(np.maximum(self.weight, 1e-300))[..., None]
        return Said(self.location.copy(), scale, np.full(scale.shape, np.inf), log_weight)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    def log_density(self, y: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the log probability of each label."""
        found = self.probabilities[np.arange(self.num_rows), np.asarray(y, dtype=int)]
        return np.asarray(np.log(np.maximum(found, LEAST_PROBABILITY)))

    def by_expert(self, num_experts: int) -> tuple[Float[np.ndarray, "n e"], ...]:
        """Return weights of the experts, the probabilities that they give to the likeliest class, and deviations."""
        likeliest = self.probabilities.argmax(1)[:, None, None]
        found = np.take_along_axis(self.by_each, likeliest, axis=2)[..., 0]
        return self.weight, found, np.sqrt(found * (1.0 - found))

    def take(self, rows: Int[np.ndarray, " r"]) -> "ClassForecast":
        """Return the forecast of some of the rows."""
        parts = (self.probabilities, self.location, self.variance_of_latent, self.weight, self.by_each)
        return ClassForecast(*(each[rows] for each in parts))


def _probabilities(said: Said, observing: Observing, num_classes: int) -> Float[np.ndarray, "n e k"]:
    """Return probabilities of classes by expert."""
    n, f, q = *said.location.shape, observing.num_questions
    with torch.no_grad():
        mean, variance = torch.from_numpy(said.location), torch.from_numpy(said.scale[..., 0])
        each = observing.likelihood.predictive_mean(mean, variance).numpy().reshape(n, f // q, q)
    if q > 1:
        each = np.maximum(each, LEAST_PROBABILITY)
        return np.asarray(each / each.sum(2, keepdims=True))
    return np.concatenate([1.0 - each, each], axis=2)[..., :num_classes]


def _weights(said: Said) -> Float[np.ndarray, "n e"]:
    log_weight = said.log_weight[..., 0]
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    return np.asarray(weight / weight.sum(1, keepdims=True))
