"""Data that is visited in parts: arrays in memory or on disk, and iterables of batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import ArgumentTypeError, OptionError, ShapeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.arguments import CheckedRows, Minibatches, read_rows

__all__ = ["AbstractSource", "read_source"]

# Rows that are read together from a NumPy array, which may lie on a disk; a batch is put together from several blocks.
_ROWS_OF_BLOCK = 64


class AbstractSource(ABC):
    """Observations that can be visited in parts.

    Attributes:
        num_data: Number of all observations.
        sample: Some of them, on which a start is found.
        is_repeatable: Whether there can be more than one pass.
    """

    num_data: int
    sample: CheckedRows
    is_repeatable: bool

    @abstractmethod
    def visit(self, generator: torch.Generator) -> Iterator[CheckedRows]:
        """Pass over all observations once, in random order where that is possible."""


@final
@dataclass(frozen=True, eq=False)
class ArraySource(AbstractSource):
    """Tensors or NumPy arrays; only the rows of one batch are read at a time."""

    inputs: Any
    targets: Any
    likelihood: AbstractLikelihood | None
    batch_size: int
    rows_of_block: int
    sample: CheckedRows
    num_data: int
    is_repeatable: bool = True

    def visit(self, generator: torch.Generator) -> Iterator[CheckedRows]:
        for indices in _shuffled(self.num_data, self.rows_of_block, self.batch_size, generator=generator):
            yield _take(self.inputs, self.targets, indices, likelihood=self.likelihood)


@final
@dataclass(frozen=True, eq=False)
class IterableSource(AbstractSource):
    """Batches that something else provides."""

    make: Callable[[], Iterable[Any]]
    likelihood: AbstractLikelihood | None
    sample: CheckedRows
    num_data: int
    is_repeatable: bool

    def visit(self, generator: torch.Generator) -> Iterator[CheckedRows]:
        yield from (_read_batch(batch, self.likelihood) for batch in self.make())


def read_source(
    X: Any,
    y: Any,
    likelihood: AbstractLikelihood | None,
    *,
    options: Minibatches,
    generator: torch.Generator,
) -> AbstractSource:
    """Prepare data for visits.

    Args:
        X: Tensor or array of inputs, with targets `y`; or an iterable of batches `(X, y)`, or a function that
            returns one.
        y: Targets; None for iterables.
        likelihood: Of the observations.
        options: Sizes.
        generator: Draws the sample.
    """
    if isinstance(X, Tensor | np.ndarray):
        if not isinstance(y, Tensor | np.ndarray) or len(X) != len(y):
            raise ShapeError(
                f"y must have one value for each of the {len(X)} rows of X, but is "
                f"{f'of length {len(y)}' if isinstance(y, Tensor | np.ndarray) else type(y).__name__}."
            )
        rows_of_block = 1 if isinstance(X, Tensor) else _ROWS_OF_BLOCK
        first = next(_shuffled(len(X), rows_of_block, options.num_warm_rows, generator=generator))
        sample = _take(X, y, first, likelihood=likelihood)
        return ArraySource(X, y, likelihood, options.batch_size, rows_of_block, sample, len(X))
    if y is not None or not (callable(X) or isinstance(X, Iterable)):
        raise ArgumentTypeError(
            f"X must be a tensor or NumPy array with targets y, or, without y, an iterable of batches (X, y) or a "
            f"function that returns one, but is a {type(X).__name__}."
        )
    if not callable(X) and iter(X) is X:
        return _once(X, likelihood, options)
    make: Callable[[], Iterable[Any]] = X if callable(X) else lambda: X
    sample, num_data = _survey(make(), likelihood, options, generator=generator)
    return IterableSource(make, likelihood, sample, num_data, is_repeatable=True)


def _once(batches: Iterator[Any], likelihood: AbstractLikelihood | None, options: Minibatches) -> IterableSource:
    """An iterator that can be read once: its first batches are the sample, and are visited again first."""
    if options.num_data is None:
        raise OptionError(
            "X is an iterator that can be read only once, so the number of its rows is not known before the end. Pass "
            "minibatches=Minibatches(num_data=...), or a function that returns a new iterator for each pass."
        )
    first: list[CheckedRows] = []
    while sum(len(rows.targets) for rows in first) < options.num_warm_rows:
        batch = next(batches, None)
        if batch is None:
            break
        first.append(_read_batch(batch, likelihood))
    sample = _join(first)
    return IterableSource(lambda: chain(first, batches), likelihood, sample, options.num_data, is_repeatable=False)


def _survey(
    batches: Iterable[Any], likelihood: AbstractLikelihood | None, options: Minibatches, *, generator: torch.Generator
) -> tuple[CheckedRows, int]:
    """Count rows, and keep a random sample: of rows with random keys, those with the smallest ones."""
    kept, keys, num_data = None, torch.zeros(0), 0
    for batch in batches:
        rows = _read_batch(batch, likelihood)
        num_data += len(rows.targets)
        keys = torch.cat([keys, torch.rand(len(rows.targets), generator=generator)])
        kept = rows if kept is None else _join([kept, rows])
        if len(keys) > options.num_warm_rows:
            keys, order = keys.topk(options.num_warm_rows, largest=False)
            kept = CheckedRows(kept.inputs[order], kept.targets[order])
    if kept is None:
        raise ShapeError("X holds no batches. Pass at least one batch (X, y).")
    return kept, options.num_data or num_data


def _shuffled(n: int, rows_of_block: int, batch_size: int, *, generator: torch.Generator) -> Iterator[Tensor]:
    """Indices of batches that are put together from blocks in random order."""
    num_blocks = -(-n // rows_of_block)
    order = torch.randperm(num_blocks, generator=generator)
    for blocks in order.split(max(batch_size // rows_of_block, 1)):
        rows = (rows_of_block * blocks.unsqueeze(-1) + torch.arange(rows_of_block)).flatten()
        yield rows[rows < n]


def _take(X: Any, y: Any, indices: Tensor, *, likelihood: AbstractLikelihood | None) -> CheckedRows:
    if isinstance(X, Tensor):
        chosen = indices.to(X.device)
        return read_rows(X[chosen], y[chosen] if isinstance(y, Tensor) else y[indices.numpy()], likelihood)
    index = indices.numpy()
    return read_rows(np.ascontiguousarray(X[index]), y[index], likelihood)


def _read_batch(batch: Any, likelihood: AbstractLikelihood | None) -> CheckedRows:
    if isinstance(batch, CheckedRows):
        return batch
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ArgumentTypeError(f"Each batch must be a pair (X, y), but one is a {type(batch).__name__}.")
    return read_rows(batch[0], batch[1], likelihood)


def _join(parts: list[CheckedRows]) -> CheckedRows:
    if not parts:
        raise ShapeError("X holds no batches. Pass at least one batch (X, y).")
    return CheckedRows(torch.cat([rows.inputs for rows in parts]), torch.cat([rows.targets for rows in parts]))
