"""Candidate sets, as the caller gives or draws them."""

from collections.abc import Callable

from torch import Tensor

from streamgp.checks import check_finite, check_float
from streamgp.errors import ShapeError

__all__ = ["CandidateSource", "read_candidates"]

CandidateSource = Tensor | Callable[[int], Tensor]


def read_candidates(source: CandidateSource, num_candidates: int, *, at_least: int) -> Tensor:
    """Take the set that was given, or ask for a new one, and check it.

    Args:
        source: A set `(n, d)`, or a function that draws one of a given number of points.
        num_candidates: How many to ask for.
        at_least: How many are needed.
    """
    candidates = source if isinstance(source, Tensor) else source(num_candidates)
    candidates = check_finite(check_float(candidates, "candidates"), "candidates")
    if candidates.dim() != 2 or len(candidates) < at_least:
        raise ShapeError(
            f"candidates must have shape (n, d) with at least {at_least} rows, as many points are chosen among them, "
            f"but have shape {tuple(candidates.shape)}. Give more candidates, or ask for fewer points."
        )
    return candidates.detach()
