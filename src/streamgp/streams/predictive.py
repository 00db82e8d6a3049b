"""Predictions of a stream: mixtures of Student's t, one for each row."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln, stdtr, stdtrit

from streamgp.errors import ArgumentTypeError, ValueRangeError
from streamgp.streams.buffer import Units
from streamgp.streams.state import Said

__all__ = ["Forecast", "read_levels"]

# Degrees of freedom of which a reported deviation makes at least use, as that of fewer than two is infinite; larger
# reports smaller deviations of the first rows. Quantiles and densities use the true ones.
_LEAST_DEGREES = 3.0
_NUM_BISECTIONS = 60


@final
@dataclass(frozen=True, eq=False)
class Forecast:
    """Forecasts of rows: mixtures of Student's t in the units of the targets; a frozen value.

    Attributes:
        location: Centers, one for each expert and tail.
        scale: Scales, not squared.
        degrees: Degrees of freedom.
        weight: Weights, which sum to one over a row.
    """

    location: Float[np.ndarray, "n c"]
    scale: Float[np.ndarray, "n c"]
    degrees: Float[np.ndarray, "n c"]
    weight: Float[np.ndarray, "n c"]

    @classmethod
    def from_said(cls, said: Said, target_mean: float, target_scale: float) -> "Forecast":
        """Return what was said in standardized units in those of the targets."""
        n = len(said.location)
        log_weight = said.log_weight.reshape(n, -1)
        weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
        return cls(
            location=target_mean + target_scale * np.repeat(said.location, said.scale.shape[-1], axis=1),
            scale=target_scale * np.sqrt(said.scale.reshape(n, -1)),
            degrees=said.degrees.reshape(n, -1),
            weight=weight / weight.sum(1, keepdims=True),
        )

    def said(self, units: Units, num_experts: int) -> Said:
        """Return it in standardized units, by experts and tails."""
        target_mean, target_scale = units.target_mean, units.target_scale
        by_tail = (self.num_rows, num_experts, -1)
        return Said(
            location=np.ascontiguousarray(((self.location - target_mean) / target_scale).reshape(by_tail)[..., 0]),
            scale=((self.scale / target_scale) ** 2).reshape(by_tail),
            degrees=self.degrees.reshape(by_tail).copy(),
            log_weight=np.log(np.maximum(self.weight, 1e-300)).reshape(by_tail),
        )

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @property
    def is_discrete(self) -> bool:
        """Tell whether targets are counts."""
        return False

    @property
    def mean(self) -> Float[np.ndarray, " n"]:
        """Means."""
        return (self.weight * self.location).sum(1)

    @property
    def variance(self) -> Float[np.ndarray, " n"]:
        """Variances, noise included."""
        degrees = np.maximum(self.degrees, _LEAST_DEGREES)
        apart = self.location - self.mean[:, None]
        return (self.weight * (self.scale**2 * degrees / (degrees - 2.0) + apart**2)).sum(1)

    def log_density(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the log density of each target."""
        nu, z = self.degrees, (np.asarray(y)[:, None] - self.location) / self.scale
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu * np.pi) - np.log(self.scale)
        each = constant - 0.5 * (nu + 1.0) * np.log1p(z * z / nu)
        highest = each.max(1, keepdims=True)
        return np.asarray(np.log((self.weight * np.exp(each - highest)).sum(1)) + highest[:, 0])

    def cumulative(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the probability of at most each target."""
        return (self.weight * stdtr(self.degrees, (np.asarray(y)[:, None] - self.location) / self.scale)).sum(1)

    def below(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the probability of less than each target."""
        return self.cumulative(y)

    def quantiles(self, probabilities: Any) -> Float[np.ndarray, "n k"]:
        """Return quantiles, by bisection between the smallest and the largest of the parts."""
        levels = read_levels(probabilities)
        parts = self.location[:, None] + self.scale[:, None] * stdtrit(self.degrees[:, None], levels[:, None])
        counts = self.weight[:, None] > 1e-12
        low = np.where(counts, parts, np.inf).min(-1)
        high = np.where(counts, parts, -np.inf).max(-1)
        for _ in range(_NUM_BISECTIONS):
            middle = 0.5 * (low + high)
            below = (
                self.weight[:, None]
                * stdtr(self.degrees[:, None], (middle[..., None] - self.location[:, None]) / self.scale[:, None])
            ).sum(-1) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if np.all(high - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))):
                break
        return 0.5 * (low + high)

    def by_expert(self, num_experts: int) -> tuple[Float[np.ndarray, "n e"], ...]:
        """Return weights, means and deviations of the experts."""
        by_tail = (self.num_rows, num_experts, -1)
        weight, degrees = self.weight.reshape(by_tail), np.maximum(self.degrees, _LEAST_DEGREES).reshape(by_tail)
        square = (weight * self.scale.reshape(by_tail) ** 2 * degrees / (degrees - 2.0)).sum(2) / weight.sum(2)
        return weight.sum(2), self.location.reshape(by_tail)[..., 0], np.sqrt(square)

    def take(self, rows: Int[np.ndarray, " r"]) -> "Forecast":
        """Return the forecast of some of the rows."""
        return Forecast(*(each[rows] for each in (self.location, self.scale, self.degrees, self.weight)))


def read_levels(probabilities: Any) -> Float[np.ndarray, " k"]:
    """Return probabilities of quantiles, checked."""
    levels = np.asarray(probabilities, dtype=float)
    if levels.ndim != 1:
        raise ArgumentTypeError(
            f"quantiles must be a list of probabilities, such as [0.05, 0.95], but is {probabilities!r}. Pass "
            f"[{probabilities!r}] for one."
        )
    if not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueRangeError(f"quantiles must be probabilities between 0 and 1, but are {probabilities}.")
    return levels
