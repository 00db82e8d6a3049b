"""Targets that are not real numbers with Gaussian noise, and what they say of latent values."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float

from streamgp.likelihoods import AbstractLikelihood, Bernoulli, Binomial, NegativeBinomial, Poisson, StudentT
from streamgp.streams.compiled_sites import BINOMIAL, NEGATIVE_BINOMIAL, POISSON, PROBIT, STUDENT_T, Densities
from streamgp.streams.constants import GRID_DEVIATIONS, GRID_NODES, GRID_STEPS, LEAST_VARIANCE

__all__ = ["Moments", "Observing", "with_counts"]

_GRID = np.linspace(-1.0, 1.0, GRID_NODES)
_STEP = _GRID[1] - _GRID[0]


class Moments(NamedTuple):
    """Beliefs about latent values after a target each.

    Attributes:
        log_evidence: Log densities of the targets before.
        mean: Means after them.
        variance: Variances after them.
    """

    log_evidence: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    variance: Float[np.ndarray, " n"]


@final
@dataclass(frozen=True, eq=False)
class Observing:
    """Likelihood of one latent function, or of one for each class, and what latent values are expected to be.

    Attributes:
        likelihood: Likelihood of a target given its latent value; of several classes that of one against the others.
        offsets: Means of the latent values before anything is known; one for each class if there are more than two.
    """

    likelihood: AbstractLikelihood
    offsets: Float[np.ndarray, " q"] = field(default_factory=lambda: np.zeros(1))

    @property
    def num_questions(self) -> int:
        """Number of latent functions."""
        return len(self.offsets)

    @property
    def has_counts(self) -> bool:
        """True if rows have numbers of trials or exposures."""
        return self.likelihood.row_data is not None and self.likelihood.outcome_kind == "count"

    @property
    def usual_count(self) -> float:
        """Number of trials, or exposure, of rows that come without one."""
        return float(self.likelihood.constants()[self.likelihood.row_data or ""]) if self.has_counts else 1.0

    @cached_property
    def compiled(self) -> Densities | None:
        """Densities for the compiled functions; None for likelihoods that they do not know."""
        likelihood, offsets = self.likelihood, self.offsets
        if isinstance(likelihood, Bernoulli):
            return Densities(PROBIT if likelihood.link == "probit" else BINOMIAL, np.zeros(2), offsets)
        if isinstance(likelihood, Binomial):
            return Densities(BINOMIAL, np.zeros(2), offsets)
        if isinstance(likelihood, Poisson):
            return Densities(POISSON, np.zeros(2), offsets)
        if isinstance(likelihood, NegativeBinomial):
            return Densities(NEGATIVE_BINOMIAL, np.array([float(likelihood.dispersion), 0.0]), offsets)
        if isinstance(likelihood, StudentT):
            parameters = np.array([float(likelihood.degrees_of_freedom), float(likelihood.scale)])
            return Densities(STUDENT_T, parameters, offsets)
        return None

    def answers(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n q"]:
        """Return the targets of all questions: whether a row is of each class, if there are more than two."""
        q = self.num_questions
        return y[:, None] if q == 1 else (y[:, None] == np.arange(q)).astype(float)

    def log_density(
        self, y: Float[np.ndarray, " n"], counts: Float[np.ndarray, " n"], f: Float[np.ndarray, "... n"]
    ) -> Float[np.ndarray, "... n"]:
        """Return the log density of targets given latent values."""
        likelihood = with_counts(self.likelihood, counts) if self.has_counts else self.likelihood
        with torch.no_grad():
            return np.asarray(likelihood.log_density(torch.from_numpy(f), torch.from_numpy(y)).numpy())

    def moments(
        self,
        y: Float[np.ndarray, " n"],
        counts: Float[np.ndarray, " n"],
        powers: Float[np.ndarray, " n"],
        *,
        mean: Float[np.ndarray, " n"],
        variance: Float[np.ndarray, " n"],
    ) -> Moments:
        """Return evidence, means and variances of latent values after a target each, on grids that close in on them."""
        return self.grid(y, counts, powers, mean=mean, variance=variance)[0]

    def grid(
        self,
        y: Float[np.ndarray, " n"],
        counts: Float[np.ndarray, " n"],
        powers: Float[np.ndarray, " n"],
        *,
        mean: Float[np.ndarray, " n"],
        variance: Float[np.ndarray, " n"],
    ) -> tuple[Moments, Float[np.ndarray, "g n"], Float[np.ndarray, "g n"]]:
        """Return moments, the nodes of the grids, and the log density before the target, times the step, at these."""
        center, half = mean.copy(), GRID_DEVIATIONS * np.sqrt(variance)
        for _ in range(GRID_STEPS):
            f = center + half * _GRID[:, None]
            prior = -0.5 * (f - mean) ** 2 / variance - 0.5 * np.log(2.0 * math.pi * variance) + np.log(half * _STEP)
            logs = np.nan_to_num(powers * self.log_density(y, counts, f), nan=-np.inf) + prior
            top = logs.max(0)
            weights = np.exp(logs - top)
            total = weights.sum(0)
            peak = logs.argmax(0)
            peak_at = f[peak, np.arange(len(mean))]
            away = f - peak_at
            first = (weights * away).sum(0) / total
            found_mean = peak_at + first
            found_variance = np.maximum((weights * away * away).sum(0) / total - first * first, 0.0)
            step = half * _STEP
            is_edge = (peak == 0) | (peak == GRID_NODES - 1)
            is_narrow = ~is_edge & (found_variance < 0.64 * step * step)
            if not (is_edge | is_narrow).any():
                break
            closer = GRID_DEVIATIONS * np.maximum(np.sqrt(found_variance), 0.25 * step)
            center = np.where(is_edge, peak_at, np.where(is_narrow, found_mean, center))
            half = np.where(is_narrow, closer, half)
        found = Moments(top + np.log(total), found_mean, np.maximum(found_variance, LEAST_VARIANCE * variance))
        return found, f, prior


def with_counts(likelihood: AbstractLikelihood, counts: Any) -> AbstractLikelihood:
    """Return the likelihood of rows with these numbers of trials or exposures."""
    return likelihood.with_row_data(torch.as_tensor(counts))
