"""The units in which outcomes are modeled."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import register

__all__ = ["NormalScores", "OutcomeUnits", "bend_around", "bend_bad", "find_scores"]

# Beyond, a prediction would have no double.
_MOST_EXCESS = 300.0
# Where all outcomes are on one side of their bounds, the width is this quantile of the distances.
_NEAR = 0.25


@register
@final
@dataclass(frozen=True)
class NormalScores:
    r"""A map from outcomes to normal scores of their ranks, linear between outcomes that were seen.

    Of $n$ outcomes, the one of rank $r$ has the score $\Phi^{-1}((r - \frac12) / n)$, and equal ones have their mean
    rank. Beyond the least and the largest the map goes on with its mean slope.

    Attributes:
        levels: Different outcomes, in increasing order.
        scores: Their scores.

    References:
        Salinas, Shen, Perrone (2020), A quantile-based approach for hyperparameter transfer learning.
    """

    levels: tuple[float, ...]
    scores: tuple[float, ...]

    def scores_of(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """From outcomes to scores."""
        return _interpolate(y, *self._tables(y))

    def outcomes_of(self, scores: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """From scores to outcomes."""
        levels, table = self._tables(scores)
        return _interpolate(scores, table, levels)

    def slope(self, scores: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """By how much the outcome changes with the score; positive."""
        levels, table = self._tables(scores)
        return _slopes(table, levels)[torch.searchsorted(table, scores.contiguous(), right=True)]

    def _tables(self, like: Tensor) -> tuple[Tensor, Tensor]:
        return like.new_tensor(self.levels), like.new_tensor(self.scores)


def find_scores(y: Float[Tensor, " n"]) -> NormalScores | None:
    """The scores of outcomes; None if all of them are alike.

    Args:
        y: Outcomes.
    """
    levels, counts = torch.unique(y, return_counts=True)
    if len(levels) < 2:
        return None
    rank = counts.cumsum(0).double() - 0.5 * (counts.double() - 1.0)
    scores = torch.special.ndtri((rank - 0.5) / len(y))
    return NormalScores(tuple(levels.tolist()), tuple(scores.tolist()))


def _slopes(x: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> Float[Tensor, " n+1"]:
    """Of the pieces between the points of a table, and of the ends."""
    ends = ((y[-1] - y[0]) / (x[-1] - x[0])).reshape(1)
    return torch.cat([ends, y.diff() / x.diff(), ends])


def _interpolate(at: Tensor, x: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> Tensor:
    piece = torch.searchsorted(x, at.contiguous(), right=True)
    start = (piece - 1).clamp_min(0)
    return y[start] + _slopes(x, y)[piece] * (at - x[start])


@register
@final
@dataclass(frozen=True)
class OutcomeUnits:
    """The map to what is modeled: $(y - a) / s$, where a negative scale turns minimization into maximization.

    Outcomes that are beyond a knee by much more than a width count by the logarithm of that: beside objectives that are
    far too bad, and constraints that are far from their bounds, a model would not see what matters. Or outcomes count
    by their ranks alone.

    Attributes:
        offset: $a$.
        scale: $s$.
        lower_knee: Outcome below which the map is logarithmic; None for nowhere.
        upper_knee: Outcome above which it is.
        width: From there, in which the logarithm is about linear.
        ranks: If not None, what takes the place of outcomes.
        good_share: The share of outcomes by which the knee of an objective was found.
    """

    offset: float = 0.0
    scale: float = 1.0
    lower_knee: float | None = None
    upper_knee: float | None = None
    width: float = 1.0
    ranks: NormalScores | None = None
    good_share: float = 0.5

    @property
    def is_bent(self) -> bool:
        """Tell whether there is a knee."""
        return self.lower_knee is not None or self.upper_knee is not None

    @property
    def is_linear(self) -> bool:
        """Tell whether nothing but an offset and a scale is changed."""
        return not self.is_bent and self.ranks is None

    def inside(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """From the user's units."""
        # Halved, which is exact, as the difference of large numbers may have no double.
        return (0.5 * self.bent(y) - 0.5 * self.offset) / (0.5 * self.scale)

    def bent(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Outcomes with the logarithm of what is beyond a knee, or the scores of their ranks."""
        if self.ranks is not None:
            return self.ranks.scores_of(y)
        if not self.is_bent:
            return y
        excess = self.excess(y)
        return self._between(y) + self.width * excess.sign() * torch.log1p(excess.abs())

    def excess(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """By how many widths values are beyond a knee, negative below the lower one; zero where they are not."""
        return (0.5 * y - 0.5 * self._between(y)) / (0.5 * self.width)

    def _between(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Values up to the knees."""
        return y.clamp(self.lower_knee, self.upper_knee) if self.is_bent else y

    def log_change(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """The logarithm of how much what is modeled changes with the outcome; of bent or straight units."""
        return -torch.log1p(self.excess(y).abs()) - math.log(abs(self.scale))

    def rescaled(self, likelihood: AbstractLikelihood) -> AbstractLikelihood:
        """A likelihood of real outcomes, from the user's units; in two steps, as squares may have no double."""
        root = math.sqrt(abs(self.scale))
        return likelihood.rescaled(root).rescaled(root)

    def outside(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """To the user's units."""
        y = self.offset + self.scale * f
        if self.ranks is not None:
            return self.ranks.outcomes_of(y)
        if not self.is_bent:
            return y
        excess = self.excess(y).clamp(-_MOST_EXCESS, _MOST_EXCESS)
        return self._between(y) + self.width * excess.sign() * torch.expm1(excess.abs())

    def slope(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """By how much the outcome changes with what is modeled; positive."""
        size = torch.full_like(f, abs(self.scale))
        if self.ranks is not None:
            return size * self.ranks.slope(self.offset + self.scale * f)
        excess = self.excess(self.offset + self.scale * f)
        return size * torch.exp(excess.abs().clamp_max(_MOST_EXCESS))


def bend_bad(z: Float[Tensor, " n"], *, sign: float, good_share: float) -> OutcomeUnits:
    """Bend where outcomes are worse than all good ones by more than the best is better than these.

    Args:
        z: Outcomes of an objective.
        sign: Positive if large ones are wanted.
        good_share: The share of outcomes that count as good.
    """
    wanted = sign * z
    middle = float(wanted.quantile(1.0 - good_share, interpolation="lower"))
    best, worst = float(wanted.max()), float(wanted.min())
    width = best - middle
    if not worst < middle - width < middle:
        return OutcomeUnits(scale=sign)
    knee = sign * (middle - width)
    if sign > 0.0:
        return OutcomeUnits(scale=sign, lower_knee=knee, width=width)
    return OutcomeUnits(scale=sign, upper_knee=knee, width=width)


def bend_around(z: Float[Tensor, " n"], bounds: Sequence[float]) -> OutcomeUnits:
    """Bend on both sides of the bounds, where outcomes on one side go farther than those on the other.

    A limit of a power of inputs is kept by a little and broken by orders of magnitude, or the other way round: the
    width is what the nearer side reaches. The map is odd about a single bound, so that symmetric noise does not change
    what keeps it.

    Args:
        z: Outcomes of a constraint.
        bounds: One or two.
    """
    low, high = min(bounds), max(bounds)
    # How far outcomes are beyond the bounds, or from them on the other side.
    excess = torch.maximum(z - high, low - z) if low < high else z - high
    reach = [float(side.max().clamp_min(0.0)) for side in (excess, -excess)]
    width = min(reach) or float(excess.abs().quantile(_NEAR))
    if not 0.0 < 2.0 * width < max(reach):
        return OutcomeUnits()
    return OutcomeUnits(lower_knee=low - width, upper_knee=high + width, width=width)
