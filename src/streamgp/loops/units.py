"""The units in which outcomes are modeled."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.loops.normal_scores import NormalScores
from streamgp.storage import register

__all__ = ["OutcomeUnits"]

# Beyond, a prediction would have no double.
_MOST_EXCESS = 300.0


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
        """Whether there is a knee."""
        return self.lower_knee is not None or self.upper_knee is not None

    @property
    def is_linear(self) -> bool:
        """Whether nothing but an offset and a scale is changed."""
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
