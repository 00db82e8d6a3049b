"""A region that is looked for: which places belong to it, and how much of that is not known."""

from dataclasses import dataclass
from typing import Any, final

from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Region"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Region:
    """An estimate of a region over places.

    Attributes:
        X: The places, in the user's units.
        probability: Of each to belong to the region.
        is_inside: Places that are likelier within it than not.
        volume: Expected share of the places, or of their weight, within it.
        expected_error: Expected share of the places that `is_inside` has wrong.
    """

    X: Any
    probability: Float[Tensor, " n"]
    is_inside: Bool[Tensor, " n"]
    volume: float
    expected_error: float

    @classmethod
    def of(cls, X: Any, probability: Float[Tensor, " n"], weights: Float[Tensor, " n"]) -> "Region":
        """Sort places by their probability.

        Args:
            X: The places.
            probability: Of each.
            weights: How much each counts.
        """
        share = weights / weights.sum()
        error = probability.minimum(1.0 - probability)
        return cls(X, probability, probability > 0.5, float(share @ probability), float(share @ error))

    def __repr__(self) -> str:
        n = len(self.probability)
        return (
            f"{100.0 * self.volume:.1f} % of {n} places belong to the region, as far as is known; "
            f"{100.0 * self.expected_error:.1f} % are expected to be on the wrong side."
        )
