"""Bends of input columns and of targets toward normal values, chosen by evidence."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import yeojohnson
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import register
from streamgp.training.automatic import quick_evidence

__all__ = ["InputWarp", "TargetWarp", "choose_warps", "stand_in"]

# Quantiles of a column between which a warp is straight, and distinct values without which a column is not warped: more
# quantiles follow the rows at hand more closely.
_NUM_KNOTS, _FEWEST_VALUES = 50, 11
# Fewest rows that tell of the shape of columns.
_FEWEST_ROWS = 30
# Nodes of the quadrature for means and deviations of targets.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Terms of the series of covariances in products of Hermite polynomials.
_NUM_TERMS = 20


@register(name="batch.InputWarp")
@final
@dataclass(frozen=True, eq=False)
class InputWarp:
    """Columns of inputs as normal scores of their ranks, so that a kernel sees rows evenly far apart.

    Between quantiles the scores are interpolated; beyond the first and the last, a column goes on in units of its
    standard deviation, so that nothing is cut off.

    Attributes:
        columns: Numbers of the columns; the others stay as they are.
        knots: Quantiles of each, rising.
        scores: Normal scores of these.
        slopes: Slopes beyond the ends.
    """

    columns: tuple[int, ...] = ()
    knots: tuple[Tensor, ...] = ()
    scores: tuple[Tensor, ...] = ()
    slopes: tuple[float, ...] = ()

    @classmethod
    def of(cls, X: np.ndarray) -> "InputWarp":
        """Warp the columns with enough different values."""
        levels = (np.arange(_NUM_KNOTS) + 0.5) / _NUM_KNOTS
        columns, knots, scores, slopes = [], [], [], []
        for column, x in enumerate(X.T):
            if len(X) < _FEWEST_ROWS or len(np.unique(x)) < _FEWEST_VALUES:
                continue
            places, index = np.unique(np.quantile(x, levels), return_inverse=True)
            if len(places) < 2:
                continue
            columns.append(column)
            knots.append(torch.from_numpy(places))
            # Where many rows share a value it gets the mean of their scores.
            scores.append(torch.from_numpy(np.bincount(index, ndtri(levels)) / np.bincount(index)))
            slopes.append(1.0 / float(x.std()))
        return cls(tuple(columns), tuple(knots), tuple(scores), tuple(slopes))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Warp inputs `(n, d)`."""
        if not self.columns:
            return X
        warped = X.copy()
        for column, knots, scores, slope in zip(self.columns, self.knots, self.scores, self.slopes, strict=True):
            x, k = X[:, column], knots.numpy()
            beyond = np.minimum(x - k[0], 0.0) + np.maximum(x - k[-1], 0.0)
            warped[:, column] = np.interp(x, k, scores.numpy()) + slope * beyond
        return warped


@register(name="batch.TargetWarp")
@final
@dataclass(frozen=True)
class TargetWarp:
    r"""Yeo and Johnson's power of standardized targets, with a power between 0 and 2, so that all values have an image.

    With $t = (y - c) / s$ the warped target is $((1 + t)^p - 1) / p$ for $t \ge 0$, and
    $-((1 - t)^{2 - p} - 1) / (2 - p)$ below.

    Attributes:
        center: $c$.
        scale: $s$.
        power: $p$; below 1 it draws high targets in, above 1 low ones; with 1 nothing is bent.

    References:
        Yeo, Johnson (2000), A new family of power transformations to improve normality or symmetry.
        Snelson, Rasmussen, Ghahramani (2003), Warped Gaussian processes.
    """

    center: float = 0.0
    scale: float = 1.0
    power: float = 1.0

    @classmethod
    def of(cls, y: np.ndarray) -> "TargetWarp":
        """Choose the power that makes the targets themselves most nearly normal."""
        center, scale = float(y.mean()), float(y.std())
        if len(y) < _FEWEST_ROWS or len(np.unique(y)) < _FEWEST_VALUES:
            return cls()
        _, power = yeojohnson((y - center) / scale)
        return cls(center, scale, float(np.clip(power, 0.0, 2.0)))

    @property
    def is_identity(self) -> bool:
        """Tell whether targets stay as they are."""
        return self == TargetWarp()

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """Warp targets."""
        if self.is_identity:
            return y
        t, p = (y - self.center) / self.scale, self.power
        return np.where(t >= 0, _raised(np.maximum(t, 0.0), p), -_raised(np.maximum(-t, 0.0), 2.0 - p))

    def back(self, z: np.ndarray) -> np.ndarray:
        """Undo the warp."""
        if self.is_identity:
            return z
        p = self.power
        t = np.where(z >= 0, _lowered(np.maximum(z, 0.0), p), -_lowered(np.maximum(-z, 0.0), 2.0 - p))
        return self.center + self.scale * t

    def log_slope(self, y: np.ndarray) -> np.ndarray:
        """Logarithms of the derivative at targets."""
        if self.is_identity:
            return np.zeros_like(y)
        t = (y - self.center) / self.scale
        return np.sign(t) * (self.power - 1.0) * np.log1p(np.abs(t)) - math.log(self.scale)

    def moments(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute means and variances of targets whose warped values are normal."""
        if self.is_identity:
            return mean, variance
        at = self.back(mean[:, None] + np.sqrt(variance)[:, None] * _NODES)
        expected = at @ _WEIGHTS
        return expected, np.square(at - expected[:, None]) @ _WEIGHTS

    def covariance(self, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        r"""Compute the covariance matrix of targets whose warped values are jointly normal.

        With coefficients $c_k = \mathbb E\, h(z) \mathit{He}_k$ of each target's $h$ in Hermite polynomials of its
        standardized value and correlations $\rho$ it is $\sum_{k \ge 1} c_k c_k' \rho^k / k!$.
        """
        if self.is_identity:
            return covariance
        deviation = np.sqrt(np.diagonal(covariance))
        at = self.back(mean[:, None] + deviation[:, None] * _NODES)
        correlation = covariance / np.outer(deviation, deviation)
        total, power, factor = np.zeros_like(covariance), np.ones_like(covariance), 1.0
        for k in range(1, _NUM_TERMS):
            power, factor = power * correlation, factor * k
            c = at @ (_WEIGHTS * np.polynomial.hermite_e.hermeval(_NODES, np.eye(k + 1)[k]))
            total += np.outer(c, c) * power / factor
        np.fill_diagonal(total, self.moments(mean, deviation**2)[1])
        return total


def _raised(t: np.ndarray, power: float) -> np.ndarray:
    return np.log1p(t) if power == 0.0 else np.expm1(power * np.log1p(t)) / power


def _lowered(z: np.ndarray, power: float) -> np.ndarray:
    return np.expm1(z) if power == 0.0 else np.expm1(np.log1p(power * z) / power)


def choose_warps(
    X: np.ndarray, y: np.ndarray, *, is_input_open: bool, is_target_open: bool, generator: torch.Generator
) -> tuple[InputWarp, TargetWarp]:
    """Bend inputs, and then targets, where that makes some rows of both likelier.

    Args:
        X: Inputs.
        y: Targets, or numbers that stand for them.
        is_input_open: Whether inputs may be bent.
        is_target_open: Whether targets may be.
        generator: Draws the rows.
    """
    seed = generator.get_state()

    def evidence(inputs: InputWarp, target: TargetWarp) -> float:
        generator.set_state(seed)  # the same rows each time
        return quick_evidence(inputs(X), target(y), log_slopes=target.log_slope(y), generator=generator)

    inputs, target = InputWarp(), TargetWarp()
    warped, bent = InputWarp.of(X) if is_input_open else inputs, TargetWarp.of(y) if is_target_open else target
    if not warped.columns and bent.is_identity:
        return inputs, target
    best = evidence(inputs, target)
    if warped.columns and (found := evidence(warped, target)) > best:
        inputs, best = warped, found
    # The power was chosen by the targets, so that it has to pay for itself as any parameter does.
    if not bent.is_identity and evidence(inputs, bent) > best + 0.5 * math.log(len(y)):
        target = bent
    return inputs, target


def stand_in(y: np.ndarray, likelihood: AbstractLikelihood) -> np.ndarray:
    """Return real numbers that stand for counts or classes where inputs are compared."""
    if likelihood.outcome_kind == "class":
        return (y == np.bincount(y.astype(int)).argmax()).astype(np.float64)
    return np.arcsinh(y)
