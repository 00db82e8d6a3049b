"""Mixtures of Student's t distributions: what experts expect of real targets."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri, stdtr, stdtrit

__all__ = ["StudentMixture", "student_log_density"]

_NUM_STEPS = 50
# Bounds of a quantile are one when they differ by less, in standard deviations of the narrowest part; and a step of
# Householder's, after which the error is of the order of its fourth power, is the last when it is shorter than the
# other.
_SMALLEST_STEP, _LAST_STEP = 1e-10, 5e-4
# How far the bend of the distribution function may lengthen or shorten a step, and the last one.
_LEAST_BEND, _MOST_BEND, _LAST_BEND = -1.0, 0.5, 0.1
# Parts with less weight do not matter to where a quantile can be.
_LEAST_WEIGHT = 1e-9


@final
@dataclass(frozen=True, eq=False)
class StudentMixture:
    """A mixture for each of `(c, n)` targets; in NumPy, which for single rows takes a third of the time of torch.

    Attributes:
        weights: Of the parts, for each target or for all.
        means: Where they lie.
        squared_scales: How wide they are.
        degrees: Degrees of freedom of all; infinite for Gaussian ones.
    """

    weights: Float[np.ndarray, "k 1 #n"]
    means: Float[np.ndarray, "k c n"]
    squared_scales: Float[np.ndarray, "k c n"]
    degrees: float

    def cumulative(self, targets: Float[np.ndarray, "c n"]) -> Float[np.ndarray, "c n"]:
        """Probabilities of not more than some targets."""
        below = _cumulative(self.degrees, (targets - self.means) / np.sqrt(self.squared_scales))
        return np.asarray(np.add.reduce(self.weights * below))

    def log_densities(self, targets: Float[np.ndarray, "c n"]) -> Float[np.ndarray, "k c n"]:
        """Log densities of targets by each part."""
        return student_log_density(targets - self.means, self.squared_scales, self.degrees)

    def quantiles(self, levels: Float[np.ndarray, " q"]) -> Float[np.ndarray, "c n q"]:
        """By Householder's steps, kept between the least and the largest of the parts' quantiles by bisection.

        Each quantile is left alone once it stands still, so that none hangs on what else is asked for. Parts are on the
        last axis, along which sums have one order for any number of quantiles.
        """
        weights, mean, squared_scales = (
            each.transpose(1, 2, 0)[:, :, None] for each in (self.weights, self.means, self.squared_scales)
        )
        sd, p = np.sqrt(squared_scales), tuple(levels.tolist())
        each = mean + sd * _standard_quantiles(self.degrees, p)
        lowest, highest, counts = each, each, weights > _LEAST_WEIGHT
        if not counts.all():
            lowest, highest = np.where(counts, each, np.inf), np.where(counts, each, -np.inf)
        lower, upper = np.minimum.reduce(lowest, -1), np.maximum.reduce(highest, -1)
        # Close to the quantile where parts agree, and between the bounds in any case.
        start = np.minimum(np.maximum(np.add.reduce(weights * each, -1), lower), upper)
        narrowest = np.minimum.reduce(sd, -1).ravel().tolist()
        between = zip(start.ravel().tolist(), lower.ravel().tolist(), upper.ravel().tolist(), strict=True)
        found = [_Between(*each) for each in between]
        moving = [
            i for i, each in enumerate(found) if each.upper - each.lower > _SMALLEST_STEP * narrowest[i // len(p)]
        ]
        curve = _Curve(weights, mean, sd, self.degrees)
        for _ in range(_NUM_STEPS):
            if not moving:
                break
            values, still = curve.at(np.array([each.x for each in found]).reshape(start.shape)), moving
            moving = []
            for i in still:
                found[i], stands = found[i].step(p[i % len(p)], values[i], narrowest[i // len(p)])
                if not stands:
                    moving.append(i)
        return np.array([each.x for each in found]).reshape(start.shape)


class _Between(NamedTuple):
    """A guess of a quantile, and where it can be; numbers of Python, of which few operations take less time."""

    x: float
    lower: float
    upper: float

    def step(self, level: float, values: list[float], sd: float) -> tuple["_Between", bool]:
        """A better guess, and whether it stands still.

        Args:
            level: The probability of the quantile.
            values: The distribution function at the guess, its derivative, a half of the second and a sixth of the
                third.
            sd: Standard deviation of the narrowest part.
        """
        x, lower, upper = self
        below, density, slope, bend = values
        if below < level:
            lower = x
        else:
            upper = x
        new, is_last = math.nan, False
        if density > 0.0:  # between parts that are far apart there is none
            step = (below - level) / density
            bent = step * slope / density
            if bent != 1.0:
                bent -= (step * step * bend / density - bent * bent) / (1.0 - bent)
            new = x - step / (1.0 - min(max(bent, _LEAST_BEND), _MOST_BEND))
            is_last = abs(step) < _LAST_STEP * sd and abs(bent) < _LAST_BEND
        if not lower < new < upper:
            new, is_last = 0.5 * (lower + upper), False
        return _Between(new, lower, upper), is_last or abs(new - x) <= _SMALLEST_STEP * sd


@final
class _Curve:
    """The distribution function of a mixture and its derivatives, with parts on the last axis."""

    def __init__(self, weights: np.ndarray, mean: np.ndarray, sd: np.ndarray, degrees: float) -> None:
        self._weights, self._mean, self._degrees = weights, mean, degrees
        self._inverse = 1.0 / sd
        self._scaled = self._inverse * (weights * math.exp(_log_constant(degrees)))

    def at(self, x: Float[np.ndarray, "c n q"]) -> list[list[float]]:
        r"""For each guess, the function, its derivative, a half of the second and a sixth of the third.

        With $r = 1 / (1 + z^2 / \nu)$, the density $g(z) \propto r^{(\nu + 1) / 2}$ of a part has the derivatives
        $g' = -\frac{\nu + 1}{\nu} z r g$ and $g'' = \frac{\nu + 1}{\nu} r^2 (\frac{\nu + 2}{\nu} z^2 - 1) g$.
        """
        degrees, inverse = self._degrees, self._inverse
        z = (x[..., None] - self._mean) * inverse
        each = np.empty((4, *z.shape))
        below, density, slope, bend = each
        np.multiply(self._weights, _cumulative(degrees, z), out=below)
        square = z * z
        if math.isinf(degrees):
            np.multiply(self._scaled, np.exp(-0.5 * square), out=density)
            factor, r = 1.0, inverse
        else:
            square *= 1.0 / degrees
            r = 1.0 / (1.0 + square)
            np.multiply(self._scaled, r ** (0.5 * (degrees + 1.0)), out=density)
            square *= degrees + 2.0
            factor, r = (degrees + 1.0) / degrees, r * inverse
        np.multiply(density, r, out=slope)
        np.multiply(slope, r, out=bend)
        slope *= z
        square -= 1.0
        bend *= square
        sums = np.add.reduce(each, -1)
        sums[2] *= -0.5 * factor
        sums[3] *= factor / 6.0
        columns: list[list[float]] = sums.reshape(4, -1).T.tolist()
        return columns


def student_log_density(error: np.ndarray, variance: np.ndarray, degrees: float) -> np.ndarray:
    """Log density of Student's t at an error, with squared scale `variance`; Gaussian for infinite degrees."""
    ratio = error * error / variance
    if math.isinf(degrees):
        return np.asarray(-0.5 * (np.log(2.0 * math.pi * variance) + ratio))
    return np.asarray(_log_constant(degrees) - 0.5 * (np.log(variance) + (degrees + 1.0) * np.log1p(ratio / degrees)))


@lru_cache(64)
def _log_constant(degrees: float) -> float:
    """Logarithm of the density at zero, for a scale of one."""
    if math.isinf(degrees):
        return -0.5 * math.log(2.0 * math.pi)
    return math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees * math.pi)


@lru_cache(64)
def _standard_quantiles(degrees: float, levels: tuple[float, ...]) -> Float[np.ndarray, "q 1"]:
    """Quantiles for a scale of one, as a column; a stream asks for the same ones again and again."""
    p = np.array(levels)[:, None]
    return np.asarray(ndtri(p) if math.isinf(degrees) else stdtrit(degrees, p))


def _cumulative(degrees: float, t: np.ndarray) -> np.ndarray:
    return np.asarray(ndtr(t) if math.isinf(degrees) else stdtr(degrees, t))
