"""Learning hyperparameters despite outliers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.gp import read_kernel
from streamgp.linalg import cholesky, solve_lower
from streamgp.streaming.hyperparameters import FittedHyperparameters

__all__ = ["RobustFit", "learn_plainly", "learn_robustly"]

# Residuals beyond so many standard deviations are outliers, where these are so few that the deviation is known.
_FAR, _LARGEST_SHARE = 5.0, 0.2
# The standard deviation of a Gaussian variable in units of the median of its size.
_OF_MEDIAN = 1.4826
_JITTER = 1e-8
_NUM_ROUNDS = 2
# The least that rows leave open of what is predicted of each, relative to the noise.
_LEAST_OPEN = 1e-3


# Learns from inputs and targets of mean zero, with the options of `learn_hyperparameters`.
Search = Callable[..., tuple[FittedHyperparameters, float]]


@final
@dataclass(frozen=True, eq=False)
class RobustFit:
    """Hyperparameters, and the outliers among the rows that they were learned from.

    Attributes:
        learned: The hyperparameters.
        gain: What they gained over what was learned before, for each value; NaN if there was nothing.
        mean: Means of the targets without outliers.
        share: The share of outliers.
        variance: The mean square of their residuals.
        is_far: Which rows hold them; None for no row.
    """

    learned: FittedHyperparameters
    gain: float
    mean: Float[Tensor, " c"]
    share: float = 0.0
    variance: float = 0.0
    is_far: Bool[Tensor, " n"] | None = None

    def explained(self, X: Float[Tensor, "n d"], Y: Float[Tensor, "c n"]) -> tuple[Tensor, Tensor]:
        """The rows but for outliers, with targets of mean zero."""
        if self.is_far is not None:
            X, Y = X[~self.is_far], Y[:, ~self.is_far]
        return X, Y - self.mean.unsqueeze(-1)

    def log_evidence(self, num_values: int) -> float:
        """A bound on the log density of all targets, so many values, outliers included."""
        num_far = round(self.share * num_values)
        total = self.learned.bound * (num_values - num_far)
        if num_far:
            total -= 0.5 * num_far * (math.log(2.0 * math.pi * self.variance) + 1.0)
            total += num_far * math.log(self.share) + (num_values - num_far) * math.log1p(-self.share)
        return total


def learn_plainly(X: Float[Tensor, "n d"], Y: Float[Tensor, "c n"], search: Search) -> RobustFit:
    """Learn hyperparameters from all rows, whether or not there are outliers among them."""
    mean = Y.mean(-1)
    return RobustFit(*search(X, Y - mean.unsqueeze(-1)), mean)


def learn_robustly(X: Float[Tensor, "n d"], Y: Float[Tensor, "c n"], search: Search) -> RobustFit:
    """Learn hyperparameters from all rows, and from all but outliers; what explains all targets better is taken.

    Outliers are explained as Gaussian variables of a wide variance, of which every row may be one. So rows that lie far
    from the others are none where the function can explain them by their inputs.

    Args:
        X: Inputs, standardized.
        Y: Targets.
        search: Learns hyperparameters from some rows.
    """
    plain = learn_plainly(X, Y, search)
    robust, is_far = plain, torch.zeros(len(X), dtype=torch.bool)
    for _ in range(_NUM_ROUNDS):
        residuals = _residuals(X, Y - robust.mean.unsqueeze(-1), robust.learned, is_far)
        deviation = _OF_MEDIAN * residuals.abs().median(-1, keepdim=True).values
        before, is_far = is_far, (residuals.abs() > _FAR * deviation).any(0)
        if not 0.0 < float(is_far.double().mean()) <= _LARGEST_SHARE:
            return plain
        if torch.equal(before, is_far):
            break
        robust = _without(X, Y, search, is_far, residuals, robust)
    return max(plain, robust, key=lambda each: each.log_evidence(Y.numel()))


def _without(
    X: Float[Tensor, "n d"],
    Y: Float[Tensor, "c n"],
    search: Search,
    is_far: Bool[Tensor, " n"],
    residuals: Float[Tensor, "c n"],
    before: RobustFit,
) -> RobustFit:
    """From all rows but those that are far off, with these residuals."""
    X, Y = X[~is_far], Y[:, ~is_far]
    mean = Y.mean(-1)
    # What was found without most of them is nearly right; with them, it may be all noise.
    options = {"before": before.learned, "is_thorough": False} if before.share else {}
    learned, gain = search(X, Y - mean.unsqueeze(-1), **options)
    share, variance = float(is_far.double().mean()), float(residuals[:, is_far].square().mean())
    return RobustFit(learned, before.gain + gain if before.share else gain, mean, share, variance, is_far)


def _residuals(
    X: Float[Tensor, "n d"], Y: Float[Tensor, "c n"], learned: FittedHyperparameters, is_far: Bool[Tensor, " n"]
) -> Float[Tensor, "c n"]:
    """What is left of each row by all others, but for those that are far off."""
    function, Z, noise = read_kernel(learned.kernel), learned.inducing_points, learned.noise_variance
    with torch.no_grad():
        Kzz = function.matrix(Z, Z)
        eye = torch.eye(len(Z), dtype=X.dtype)
        L, _ = cholesky(Kzz + _JITTER * Kzz.diagonal().mean() * eye, name="the covariance of the inducing values")
        G = solve_lower(L, function.matrix(Z, X)) / math.sqrt(noise)
        used = G * ~is_far
        L_A, _ = cholesky(used @ used.mT + eye, name="the precision of the inducing values")
        half = solve_lower(L_A, G)
        kept = half * ~is_far
        residuals = Y - (Y @ kept.mT) @ half
        return residuals / (1.0 - (kept * half).sum(-2)).clamp_min(_LEAST_OPEN)
