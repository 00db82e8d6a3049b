"""Spaces: what rules search and loops keep points of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from streamgp.checks import check_finite, check_float, keep_count
from streamgp.errors import ShapeError, UnsupportedError
from streamgp.storage import register

__all__ = ["AbstractSpace", "CandidateSource", "Search", "read_candidates"]

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


@register
@final
@dataclass(frozen=True)
class Search:
    """Amount of work in the search for the maximum of an acquisition function.

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


class AbstractSpace(ABC):
    """The set that suggestions come from.

    A point has three forms: the user's; that of the loop, which is a row of numbers between 0 and 1 or the index of a
    member of a pool; and the inputs that a model sees.
    """

    @property
    @abstractmethod
    def num_dims(self) -> int:
        """Number of the model's inputs."""

    @property
    def in_words(self) -> str:
        """The space as a text, the same for the same space."""
        return repr(self)

    @property
    def num_parameters(self) -> int:
        """Number of choices that make up a point: a category is one, of however many inputs."""
        return self.num_dims

    @property
    def is_continuous(self) -> bool:
        """Tell whether every row of numbers between 0 and 1 is a point."""
        return False

    @abstractmethod
    def read(self, X: Any, name: str = "X") -> Tensor:
        """Check the user's points, and return those of the loop."""

    @abstractmethod
    def read_inputs(self, X: Any) -> Tensor:
        """Inputs of the model for places in the user's units; of all members of a pool if `X` is None."""

    @property
    @abstractmethod
    def column_names(self) -> tuple[str, ...]:
        """Names of what a user sets, in tables."""

    @property
    def parts(self) -> Mapping[str, slice]:
        """Columns of a point that hold each of these, by name."""
        return {name: slice(j, j + 1) for j, name in enumerate(self.column_names)}

    @property
    def is_product(self) -> bool:
        """Tell whether each of these can be set whatever the others are."""
        return True

    def is_allowed(self, points: Tensor) -> Tensor:
        """Mark points that keep constraints between columns; all of them where there are none."""
        return torch.ones(len(points), dtype=torch.bool)

    @abstractmethod
    def parse(self, rows: Sequence[Sequence[str]]) -> Any:
        """Points as the user has them, from the texts of a table."""

    @abstractmethod
    def show(self, points: Tensor) -> Any:
        """Points as the user has them."""

    @abstractmethod
    def no_points(self) -> Tensor:
        """An empty set of points."""

    @abstractmethod
    def inputs(self, points: Tensor) -> Tensor:
        """Return inputs of the model for points, `(*b, d)`."""

    @property
    def directions(self) -> Tensor | None:
        """Signs of the slopes of the first outcome, one for each input of the model, zero where it is not known."""
        return None

    def read_slopes(self, gradient: Any, points: Tensor) -> Tensor:
        """Slopes in the inputs of the model, from those in the user's units; NaN where one is not known."""
        raise UnsupportedError(
            "A gradient belongs to a box or to parameters that are real numbers. Leave gradient out in other spaces."
        )

    @abstractmethod
    def without(self, taken: Tensor) -> "AbstractSpace":
        """The space without points that cannot be suggested again, where there are such."""

    def fixing(self, values: Mapping[str, Any] | None) -> "AbstractSpace":
        """The space in which some parameters have a given value."""
        if values:
            raise UnsupportedError(
                "Only parameters with names can be fixed. Make the optimizer with a dictionary of parameters, such as "
                "{'temperature': streamgp.Real(100, 180)}."
            )
        return self

    def project(self, points: Tensor) -> Tensor:
        """Move points that were told to the nearest that can be suggested, with the values that are fixed.

        What was told may lie outside the range. Points that can all be suggested are returned themselves.
        """
        return points

    @abstractmethod
    def design(self, num_points: int, *, num_initial: int, num_before: int, seed: int) -> Tensor:
        """Points of the initial design.

        Args:
            num_points: How many.
            num_initial: Size of the whole design.
            num_before: How many were given out before.
            seed: Of everything random.
        """

    @abstractmethod
    def all_points(self) -> Tensor:
        """All points of a finite space."""

    @abstractmethod
    def scatter(self, num_points: int, *, num_before: int, seed: int, ask: int) -> Tensor:
        """Points that nothing but chance chooses.

        Args:
            num_points: How many.
            num_before: How many points of the design, or by chance, were given out before.
            seed: Of everything random.
            ask: How often points were asked for before.
        """

    @abstractmethod
    def candidates(self, num_points: int, *, centers: Tensor, generator: torch.Generator) -> Tensor:
        """Points among which a rule may choose, some of them near good ones.

        Args:
            num_points: How many.
            centers: Inputs of good points; at least one.
            generator: Source of randomness.
        """

    @abstractmethod
    def maximize(self, function: Any, q: int, search: Search, *, seed: int, centers: Tensor | None = None) -> Tensor:
        """Points of the largest value of an acquisition function.

        Args:
            function: Of BoTorch, of inputs `(*b, q, d)`.
            q: Number of points.
            search: How much work to do.
            seed: Of the random starts.
            centers: Inputs of good points, near which half of the random points are.
        """

    @abstractmethod
    def separate(self, points: Tensor, taken: Tensor, *, is_noisy: bool, seed: int) -> Tensor:
        """Replace points that repeat a taken one, or one before them.

        Args:
            points: Suggestions.
            taken: Points not to be suggested again.
            is_noisy: Whether points of one suggestion may repeat each other.
            seed: Of what replaces them.
        """

    @abstractmethod
    def still_pending(self, pending: Tensor, told: Tensor) -> Tensor:
        """Pending points without those that were told."""
