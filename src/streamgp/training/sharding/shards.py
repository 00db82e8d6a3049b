"""Data that lies in shards, each of which computes what a fit needs of it: sums of a few p² numbers."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, final

from streamgp.errors import ArgumentTypeError, DatasetError, StreamGPError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.arguments import CheckedRows, read_rows
from streamgp.training.features import Observed
from streamgp.training.scaling import Scaling, to_observed

__all__ = [
    "AbstractShards",
    "MappedShards",
    "Plus",
    "Question",
    "Step",
    "blocks_of",
    "load_shard",
    "own_copy",
    "read_shard",
    "viewed",
]

# A function of a shard's index, its rows and what it keeps from step to step. A question returns what to send back, a
# step what to keep, too: first what to keep, then what to send back.
Question = Callable[[int, Any, Any], Any]
Step = Callable[[int, Any, Any], tuple[Any, Any]]
# Adds what two shards, or groups of shards, send back.
Plus = Callable[[Any, Any], Any]
# Rows of a shard that are in work together: their features at 256 inducing points take 32 MB.
_ROWS_OF_BLOCK = 16_384


class AbstractShards(ABC):
    """Shards, wherever they are: steps run beside them, and what they keep stays there."""

    @abstractmethod
    def ask(self, question: Question, *, plus: Plus | None = None) -> list[Any]:
        """Ask every shard something; returns what they send back, in the order of the shards.

        Args:
            question: The question.
            plus: Add up the answers on the way; returns a list with their sum, so that nobody holds all of them.
        """

    @abstractmethod
    def run(self, step: Step, *, is_first: bool = False, plus: Plus | None = None) -> list[Any]:
        """Run a step that changes what shards keep; returns what they send back, in the order of the shards.

        Args:
            step: The step.
            is_first: The step does not look at what was kept, so that what was before need not be remembered.
            plus: As for `ask`.
        """

    @abstractmethod
    def mapped(self, function: Callable[[Any], Any]) -> "AbstractShards":
        """Shards seen through a function of each pair, which is called anew in each step; nothing is kept."""


@final
@dataclass(frozen=True, eq=False)
class MappedShards(AbstractShards):
    """Shards on which a function like Python's `map` runs.

    Attributes:
        shards: Pairs (X, y), or functions that load one.
        map: As the built-in one with a function of one argument; function, arguments and results can be pickled.
        kept: What each shard keeps; the one thing here that changes.
        view: A function through which the pairs are seen.
    """

    shards: Sequence[Any]
    map: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
    kept: list[Any] = field(default_factory=list)
    view: Callable[[Any], Any] | None = None

    def ask(self, question: Question, *, plus: Plus | None = None) -> list[Any]:
        return _listed(self._each(question, self.kept), plus)

    def run(self, step: Step, *, is_first: bool = False, plus: Plus | None = None) -> list[Any]:
        kept: list[Any] = []

        def sent() -> Iterator[Any]:
            for each, result in self._each(step, [] if is_first else self.kept):
                kept.append(each)
                yield result

        results = _listed(sent(), plus)
        self.kept[:] = kept
        return results

    def mapped(self, function: Callable[[Any], Any]) -> "MappedShards":
        return replace(self, kept=[], view=function)

    def _each(self, function: Question, kept: list[Any]) -> Iterable[Any]:
        kept = kept or [None] * len(self.shards)
        function = viewed(function, self.view)
        return self.map(_Call(function), list(zip(range(len(kept)), self.shards, kept, strict=True)))


def _listed(results: Iterable[Any], plus: Plus | None) -> list[Any]:
    """All results, or their sum only, added as they come."""
    return list(results) if plus is None else [reduce(plus, results)]


@final
@dataclass(frozen=True, eq=False)
class _Call:
    """A step or question with its shard's rows loaded."""

    function: Question

    def __call__(self, item: tuple[int, Any, Any]) -> Any:
        index, shard, kept = item
        return own_copy(self.function)(index, load_shard(index, shard), kept)


class _Own(threading.local):
    """The step that a thread took last, and its copy of it."""

    source: Question | None = None
    copied: Question | None = None


_OWN = _Own()


def own_copy(function: Question) -> Question:
    """A copy that no other thread has, made once for all shards of a step that one thread visits.

    Evaluating a kernel under other parameters changes it for a while, which threads must not share.
    """
    if _OWN.source is not function or _OWN.copied is None:
        _OWN.source, _OWN.copied = function, deepcopy(function)
    return _OWN.copied


def viewed(function: Question, view: Callable[[Any], Any] | None) -> Question:
    """A step or question that sees pairs through a function."""
    return function if view is None else _Viewed(function, view)


@final
@dataclass(frozen=True, eq=False)
class _Viewed:
    function: Question
    view: Callable[[Any], Any]

    def __call__(self, index: int, shard: Any, kept: Any) -> Any:
        return self.function(index, self.view(shard), kept)


def load_shard(index: int, shard: Any) -> Any:
    """The rows of a shard, loaded if it is a function that does so."""
    if not callable(shard):
        return shard
    try:
        return shard()
    except OSError as error:
        raise DatasetError(f"Shard {index} cannot be loaded: {error}") from error


def read_shard(index: int, shard: Any, likelihood: AbstractLikelihood | None) -> CheckedRows:
    """Check the rows of a shard; an error says which shard it was."""
    try:
        if not isinstance(shard, tuple | list) or len(shard) != 2:
            raise ArgumentTypeError(f"A shard must be a pair (X, y), but is a {type(shard).__name__}.")
        return read_rows(shard[0], shard[1], likelihood)
    except StreamGPError as error:
        raise type(error)(f"Shard {index}: {error}") from error


def blocks_of(index: int, shard: Any, *, likelihood: Any, scaling: Scaling | None) -> Iterator[Observed]:
    """Rows of a shard in blocks, as training sees them."""
    X, y = read_shard(index, shard, likelihood)
    for start in range(0, len(y), _ROWS_OF_BLOCK):
        yield to_observed(X[start : start + _ROWS_OF_BLOCK], y[start : start + _ROWS_OF_BLOCK], scaling)
