"""Outcomes by their ranks: the normal scores of these, and the way back."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.storage import register

__all__ = ["NormalScores", "find_scores"]


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
