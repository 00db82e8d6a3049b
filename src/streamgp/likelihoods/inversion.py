"""Inverting distribution functions, many at once and each evaluation dear."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Cumulative", "invert_cumulative"]

Cumulative = Callable[[Float[Tensor, "p ..."]], Float[Tensor, "p ..."]]

# The first look at both sides of a guess, in deviations, and how much farther each next one is.
_FIRST_REACH, _FARTHER = 0.25, 4.0
_MOST_ROUNDS = 200
# Into how many parts an interval is cut at first and at least, and at most.
_FEWEST_PARTS, _MOST_PARTS = 4.0, 2.0**40
# Scores of probabilities that cannot be told from zero or one, and values that are not searched beyond.
_FAR, _LARGEST = 9.0, 1e300
# Whole numbers are told apart by their logarithms where these are farther apart.
_WIDE = 2.0
_EPS = torch.finfo(torch.float64).eps


@torch.no_grad()
def invert_cumulative(
    cumulative: Cumulative,
    wanted: Float[Tensor, "p ..."],
    *,
    center: Float[Tensor, "..."],
    deviation: Float[Tensor, "..."],
    is_whole: bool,
) -> Float[Tensor, "p ..."]:
    r"""Find where distribution functions reach probabilities: for whole numbers the first that does.

    Each round looks at both ends of one part of an interval that holds the quantile, where interpolation of normal
    scores $\Phi^{-1}(F)$ says that it is. If it is there, that part is the next interval, and is cut into the square of
    as many parts; if not, what is left is cut into fewer. So digits double with each round, and both ends are known.

    Args:
        cumulative: $F$ at values with any first axis, of zero or more for whole numbers.
        wanted: The probabilities.
        center: Where to start, such as the mean; float64.
        deviation: What values deviate from it, such as the standard deviation; float64, as many axes as `center`.
        is_whole: Whether values are whole numbers of at least zero.

    References:
        Abbott (2014), Quadratic interval refinement for real roots.
    """
    search = _Intervals.around(wanted, center, deviation, is_whole=is_whole)
    for _ in range(_MOST_ROUNDS):
        if bool(search.is_done.all()):
            break
        left, right = search.probes()
        below = cumulative(torch.cat([left, right])).expand(2 * len(left), *left.shape[1:])
        search = search.narrowed(left, right, *below.chunk(2))
    return search.found


@final
@dataclass(frozen=True, eq=False)
class _Intervals:
    """Intervals that hold quantiles, open at one side or both at first.

    Attributes:
        wanted: Probabilities.
        guess: Where quantiles may be: for whole numbers, logarithms of one more.
        step: What to go from there, in the same units.
        low: Where less than a probability is reached.
        high: Where it is reached.
        low_score: Normal scores there, less those that are wanted; negative.
        high_score: The same at the other end; not negative.
        parts: Into how many parts the interval is cut.
        is_whole: Whether values are whole numbers.
    """

    wanted: Tensor
    guess: Tensor
    step: Tensor
    low: Tensor
    high: Tensor
    low_score: Tensor
    high_score: Tensor
    parts: Tensor
    is_whole: bool

    @classmethod
    def around(cls, wanted: Tensor, center: Tensor, deviation: Tensor, *, is_whole: bool) -> "_Intervals":
        """Before the first look."""
        score = _score(wanted)
        if is_whole:
            # As if one more than the value were log-normal.
            mean = center.clamp(0.0, _LARGEST).nan_to_num(_LARGEST) + 1.0
            width = torch.log1p((deviation / mean).square()).nan_to_num(1.0, posinf=1.0)
            guess, step = mean.log() - 0.5 * width + width.sqrt() * score, width.sqrt().clamp_min(_EPS)
        else:
            guess, step = center + deviation * score, deviation
        guess, step, wanted, _ = torch.broadcast_tensors(guess, _FIRST_REACH * step, wanted, center)
        zero = torch.zeros_like(guess)
        ends = zero - torch.inf, zero + torch.inf, zero - _FAR, zero + _FAR
        return cls(wanted, guess, step, *ends, zero + _FEWEST_PARTS, is_whole)

    @property
    def is_closed(self) -> Bool[Tensor, "p ..."]:
        """Members for which both ends of the interval are known."""
        return (self.low > -torch.inf) & (self.high < torch.inf)

    @property
    def is_done(self) -> Bool[Tensor, "p ..."]:
        """Members whose interval is as short as numbers allow."""
        size = torch.maximum(self.low.abs(), self.high.abs())
        least = 4.0 * _EPS * (size if self.is_whole else size + self.step)
        return self.is_closed & (self.high - self.low <= (least.clamp_min(1.0) if self.is_whole else least))

    @property
    def found(self) -> Float[Tensor, "p ..."]:
        """The quantiles."""
        if self.is_whole:
            return self.high.clamp_max(_LARGEST)
        inside = self.low + (self.high - self.low) * self._share
        return torch.where(self.is_closed, inside, self.high.clamp(-_LARGEST, _LARGEST))

    @property
    def _share(self) -> Tensor:
        """Share of the way between both ends at which the quantile is, by interpolation."""
        return self.low_score / (self.low_score - self.high_score)

    def probes(self) -> tuple[Tensor, Tensor]:
        """Two values to look at."""
        near, far = self.guess - self.step, self.guess + self.step
        left, right = _part(self.low, self.high, self._share, self.parts)
        if self.is_whole:
            near, far = (torch.expm1(each).clamp(0.0, _LARGEST).floor() for each in (near, far))
            ends = torch.log1p(self.low.clamp_min(0.0)), torch.log1p(self.high)
            is_wide = ends[1] - ends[0] > _WIDE
            if bool(is_wide.any()):
                powers = (torch.expm1(each) for each in _part(*ends, self._share, self.parts))
                left, right = (torch.where(is_wide, *pair) for pair in zip(powers, (left, right), strict=True))
            left = torch.maximum(torch.minimum(left.floor(), self.high - 1.0), self.low)
            right = torch.maximum(right.floor(), left + 1.0)
        left, right = torch.where(self.is_closed, left, near), torch.where(self.is_closed, right, far)
        return torch.maximum(left, self.low).clamp_min(-_LARGEST), torch.minimum(right, self.high).clamp_max(_LARGEST)

    def narrowed(self, left: Tensor, right: Tensor, below_left: Tensor, below_right: Tensor) -> "_Intervals":
        """After a look at two values; those that are done stay."""
        low, high, low_score, high_score = self.low, self.high, self.low_score, self.high_score
        was_closed, is_done, goal = self.is_closed, self.is_done, _score(self.wanted)
        for value, below in ((left, below_left), (right, below_right)):
            is_short, score = below < self.wanted, _score(below) - goal
            is_low, is_high = is_short & (value > low) & ~is_done, ~is_short & (value < high) & ~is_done
            low, low_score = torch.where(is_low, value, low), torch.where(is_low, score.clamp_max(-_EPS), low_score)
            high, high_score = torch.where(is_high, value, high), torch.where(is_high, score.clamp_min(0.0), high_score)
        if self.is_whole:
            low = torch.where(high <= 0.0, -1.0, low)
        is_hit = (low >= left) & (high <= right)
        parts = torch.where(is_hit, self.parts.square(), self.parts.sqrt()).clamp(_FEWEST_PARTS, _MOST_PARTS)
        return _Intervals(
            self.wanted,
            self.guess,
            torch.where(was_closed, self.step, _FARTHER * self.step),
            low,
            high,
            low_score,
            high_score,
            torch.where(was_closed, parts, self.parts),
            self.is_whole,
        )


def _part(low: Tensor, high: Tensor, share: Tensor, parts: Tensor) -> tuple[Tensor, Tensor]:
    """Ends of one part of an interval, around the share of the way between both ends."""
    middle = low + (high - low) * share
    half = torch.maximum(0.5 * (high - low) / parts, 2.0 * _EPS * middle.abs())
    return middle - half, middle + half


def _score(probability: Tensor) -> Tensor:
    """The normal score, kept finite."""
    score: Tensor = torch.special.ndtri(probability.clamp(0.0, 1.0))
    return score.nan_to_num(math.inf).clamp(-_FAR, _FAR)
