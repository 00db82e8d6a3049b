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


@register(name="loops.Units")  # as in files of earlier versions
@final
@dataclass(frozen=True)
class OutcomeUnits:
    """The map to what is modeled: $(y - a) / s$, where a negative scale turns minimization into maximization.

    Outcomes that are worse than a knee by much more than a width count by the logarithm of that: beside outcomes that
    are far too bad, a model would not see differences of good ones. Or outcomes count by their ranks alone.

    Attributes:
        offset: $a$.
        scale: $s$.
        knee: Outcome beyond which the map is logarithmic; None for nowhere.
        width: From there, in which the logarithm is about linear.
        ranks: If not None, what takes the place of outcomes.
    """

    offset: float = 0.0
    scale: float = 1.0
    knee: float | None = None
    width: float = 1.0
    ranks: NormalScores | None = None

    @property
    def is_linear(self) -> bool:
        """Whether nothing but an offset and a scale is changed."""
        return self.knee is None and self.ranks is None

    def inside(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """From the user's units."""
        # Halved, which is exact, as the difference of large numbers may have no double.
        return (0.5 * self.bent(y) - 0.5 * self.offset) / (0.5 * self.scale)

    def bent(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Outcomes with the logarithm of what is beyond the knee, or the scores of their ranks."""
        if self.ranks is not None:
            return self.ranks.scores_of(y)
        if self.knee is None:
            return y
        excess = self._excess(y)
        return torch.where(excess > 0.0, self.knee + self._direction * self.width * torch.log1p(excess), y)

    @property
    def _direction(self) -> float:
        """The sign of a change for the worse."""
        return -math.copysign(1.0, self.scale)

    def _excess(self, y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """By how many widths values are beyond the knee; zero where they are not."""
        assert self.knee is not None
        return (self._direction * (0.5 * y - 0.5 * self.knee) / (0.5 * self.width)).clamp_min(0.0)

    def rescaled(self, likelihood: AbstractLikelihood) -> AbstractLikelihood:
        """A likelihood of real outcomes, from the user's units; in two steps, as squares may have no double."""
        root = math.sqrt(abs(self.scale))
        return likelihood.rescaled(root).rescaled(root)

    def outside(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """To the user's units."""
        y = self.offset + self.scale * f
        if self.ranks is not None:
            return self.ranks.outcomes_of(y)
        if self.knee is None:
            return y
        excess = self._excess(y)
        beyond = self.knee + self._direction * self.width * torch.expm1(excess.clamp_max(_MOST_EXCESS))
        return torch.where(excess > 0.0, beyond, y)

    def slope(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """By how much the outcome changes with what is modeled; positive."""
        size = torch.full_like(f, abs(self.scale))
        if self.ranks is not None:
            return size * self.ranks.slope(self.offset + self.scale * f)
        if self.knee is None:
            return size
        return size * torch.exp(self._excess(self.offset + self.scale * f).clamp_max(_MOST_EXCESS))
