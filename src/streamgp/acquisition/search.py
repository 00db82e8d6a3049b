"""How much work goes into the search for one suggestion."""

from dataclasses import dataclass
from typing import final

from streamgp.checks import keep_count
from streamgp.storage import register

__all__ = ["Search"]


@register
@final
@dataclass(frozen=True)
class Search:
    """How much work goes into the search for the maximum of an acquisition function.

    Attributes:
        num_restarts: Starts of the gradient search.
        raw_samples: Points among which those starts are chosen.
        max_iterations: Most iterations of L-BFGS.
    """

    num_restarts: int = 5
    raw_samples: int = 128
    max_iterations: int = 100

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in list(vars(self)):
            keep_count(self, name)
