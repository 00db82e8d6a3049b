"""Data that lies in shards, each of which computes what a fit needs of it: sums of a few p² numbers."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ArgumentTypeError, DatasetError, ShapeError, StreamGPError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.arguments import CheckedRows, read_rows
from streamgp.training.features import Observed
from streamgp.training.parameters import Hyperparameters, Space
from streamgp.training.priors import Layout
from streamgp.training.scaling import Scaling, to_observed

__all__ = [
    "AbstractShards",
    "MappedShards",
    "ParameterPoint",
    "Plus",
    "Question",
    "RowMoments",
    "Step",
    "blocks_of",
    "load_shard",
    "own_copy",
    "read_shard",
    "row_moments",
    "sample_of",
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


class RowMoments(NamedTuple):
    """Moments of all rows.

    Attributes:
        counts: Rows of each shard.
        input_mean: Mean of each column.
        input_squares: Squared deviations from it, summed.
        target_mean: Of the targets.
        target_squares: Squared deviations, summed.
        dtype: Of the rows.
        inputs_of_row: Two for comparisons.
    """

    counts: tuple[int, ...]
    input_mean: Tensor
    input_squares: Tensor
    target_mean: Tensor
    target_squares: Tensor
    dtype: torch.dtype
    inputs_of_row: int = 1

    @property
    def num_data(self) -> int:
        """Number of all rows."""
        return sum(self.counts)

    @property
    def target_variance(self) -> float:
        """Variance of all targets."""
        return float(self.target_squares) / self.num_data

    def scaling(self, *, like: Scaling) -> Scaling:
        """The standardization of all rows, of the columns that one of some rows standardizes."""
        changed = like.input_shift.abs().sum() + (like.input_scale - 1.0).abs().sum() > 0
        shift, scale = like.input_shift, like.input_scale
        if bool(changed):
            shift, scale = self.input_mean, _root_or_one(self.input_squares / self.num_inputs, self.input_mean)
        target_shift, target_scale = like.target_shift, like.target_scale
        if float(target_shift) != 0.0 or float(target_scale) != 1.0:
            target_shift = self.target_mean
            target_scale = _root_or_one(self.target_squares / self.num_data, self.target_mean)
        return Scaling(shift, scale, target_shift, target_scale)

    @property
    def num_inputs(self) -> int:
        """Number of all inputs, two for each comparison."""
        return self.num_data * self.inputs_of_row

    def rounded(self) -> "RowMoments":
        """To twelve digits, so that the order of the sums, which shards decide, makes no difference."""
        moments = [
            torch.tensor([float(f"{each:.12g}") for each in value.reshape(-1).tolist()], dtype=value.dtype).reshape(
                value.shape
            )
            for value in (self.input_mean, self.input_squares, self.target_mean, self.target_squares)
        ]
        input_mean, input_squares, target_mean, target_squares = moments
        return self._replace(
            input_mean=input_mean,
            input_squares=input_squares,
            target_mean=target_mean,
            target_squares=target_squares,
        )

    def joined(self, other: "RowMoments") -> "RowMoments":
        """The moments of both, by the formula of Chan, Golub and LeVeque."""
        if self.dtype != other.dtype or self.input_mean.shape != other.input_mean.shape:
            raise ShapeError(
                f"All shards must have as many columns and one dtype, but shard {len(self.counts)} has "
                f"{len(other.input_mean)} columns of {other.dtype}, and those before {len(self.input_mean)} of "
                f"{self.dtype}."
            )
        n, k = self.num_data, other.num_data
        moments = []
        for mean, squares, mean_, squares_ in (
            (self.input_mean, self.input_squares, other.input_mean, other.input_squares),
            (self.target_mean, self.target_squares, other.target_mean, other.target_squares),
        ):
            change = mean_ - mean
            moments += [mean + change * (k / (n + k)), squares + squares_ + change.square() * (n * k / (n + k))]
        input_mean, input_squares, target_mean, target_squares = moments
        return self._replace(
            counts=self.counts + other.counts,
            input_mean=input_mean,
            input_squares=input_squares,
            target_mean=target_mean,
            target_squares=target_squares,
        )


def row_moments(shards: AbstractShards, likelihood: AbstractLikelihood | None) -> RowMoments:
    """Look over all rows once: check and count them."""
    parts = shards.ask(_Survey(likelihood))
    if not parts:
        raise ShapeError("There are no shards. Pass at least one shard (X, y).")
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.joined(part)
    return whole.rounded()


@final
@dataclass(frozen=True, eq=False)
class _Survey:
    likelihood: AbstractLikelihood | None

    def __call__(self, index: int, shard: Any, kept: Any) -> RowMoments:
        rows = read_shard(index, shard, self.likelihood)
        X, y = rows.inputs.double().reshape(-1, rows.inputs.shape[-1]), rows.targets.double()
        x_mean, y_mean = X.mean(0), y.mean()
        return RowMoments(
            (len(y),),
            x_mean,
            (X - x_mean).square().sum(0),
            y_mean,
            (y - y_mean).square().sum(),
            rows.inputs.dtype,
            len(X) // len(y),
        )


def _root_or_one(variance: Tensor, mean: Tensor) -> Tensor:
    """Standard deviations, one for columns that are constant up to rounding."""
    deviation = variance.sqrt()
    return torch.where(deviation > 1e-12 * mean.abs(), deviation, 1.0)


def sample_of(
    shards: AbstractShards, moments: RowMoments, num_rows: int, *, likelihood: Any, generator: torch.Generator
) -> CheckedRows:
    """Random rows of all shards; which ones does not depend on how the rows are divided."""
    n, seed = moments.num_data, int(torch.randint(2**31, (), generator=generator))
    # Without a list of all rows, which may be billions.
    drawn = np.random.default_rng(seed).choice(n, min(num_rows, n), replace=False, shuffle=False)
    chosen = torch.from_numpy(drawn).sort().values
    ends = torch.tensor(moments.counts).cumsum(0)
    rows: list[Tensor] = []
    for end, count in zip(ends.tolist(), moments.counts, strict=True):
        rows.append(chosen[(chosen >= end - count) & (chosen < end)] - (end - count))
    parts = shards.ask(_Take(likelihood, tuple(rows)))
    return CheckedRows(torch.cat([part.inputs for part in parts]), torch.cat([part.targets for part in parts]))


@final
@dataclass(frozen=True, eq=False)
class _Take:
    likelihood: AbstractLikelihood | None
    rows: tuple[Tensor, ...]

    def __call__(self, index: int, shard: Any, kept: Any) -> CheckedRows:
        rows = read_shard(index, shard, self.likelihood)
        return CheckedRows(rows.inputs[self.rows[index]].clone(), rows.targets[self.rows[index]].clone())


@final
@dataclass(frozen=True, eq=False)
class ParameterPoint:
    """A point of the space, and how rows are read there.

    Attributes:
        layout: The space.
        x: Coordinates.
        likelihood: What checks the targets; None for Gaussian ones.
        scaling: Units of training.
    """

    layout: Layout
    x: Float[Tensor, " k"]
    likelihood: AbstractLikelihood | None = None
    scaling: Scaling | None = None

    def blocks_of(self, index: int, shard: Any) -> Iterator[Observed]:
        """Read the rows of a shard in blocks, as training sees them."""
        return blocks_of(index, shard, likelihood=self.likelihood, scaling=self.scaling)

    @cached_property
    def space(self) -> Space:
        """The space, made where it is needed."""
        return self.layout.space()

    @cached_property
    def setting(self) -> Hyperparameters:
        """Hyperparameters and inducing points, without gradient."""
        return self.space.setting(self.x)

    def __getstate__(self) -> dict[str, object]:
        """State that is sent, without what can be made again."""
        fields = {"layout": self.layout, "likelihood": self.likelihood, "scaling": self.scaling}
        return {**fields, "x": self.x.detach()}
