"""Shards on the workers of a Dask cluster."""

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import reduce
from typing import Any, final

import dask
import dask.array
import dask.dataframe
import distributed
import numpy as np

from streamgp.errors import ArgumentTypeError, ClusterError, DTypeError, ShapeError, StreamGPError, ValueRangeError
from streamgp.training.sharding import AbstractShards
from streamgp.training.sharding.shards import Plus, Question, Step, own_copy, viewed

__all__ = ["DaskShards", "cluster_errors", "from_collections", "gather_within", "read_client", "send"]


# How often a step is tried: a worker that dies while results are handed over may take a part of the graph with it.
_ATTEMPTS = 3
# Answers that one task adds up.
_GROUP = 8
# Seconds after which a scheduler that does not answer is given up, and between looks at it.
PATIENCE, _LOOK = 30.0, 0.5


@final
class DaskShards(AbstractShards):
    """Pairs (X, y) that lie on workers, beside what a fit keeps of them.

    A step is one small task whose result workers hand to each other, so that the scheduler sees it once, whatever the
    number of shards. Everything can be computed again: a worker that is lost costs time, and changes nothing. Pairs are
    made again from where they came, and what is kept by the steps since the first that did not look at it.
    """

    def __init__(
        self,
        client: Any,
        pairs: Sequence[Any],
        *,
        time_limit: float = 600.0,
        view: Callable[[Any], Any] | None = None,
    ) -> None:
        """Keep futures of the pairs.

        Args:
            client: Client of the cluster.
            pairs: Futures.
            time_limit: Seconds after which a step that has not ended is given up.
            view: A function through which steps see the pairs.
        """
        self.client, self.pairs, self.time_limit, self._view = client, list(pairs), time_limit, view
        self._kept: list[Any] = [None] * len(self.pairs)

    def ask(self, question: Question, *, plus: Plus | None = None) -> list[Any]:
        return self._gathered(lambda: (self._summed(self._submitted(question, self._kept), plus), []))

    def run(self, step: Step, *, is_first: bool = False, plus: Plus | None = None) -> list[Any]:
        before = [None] * len(self.pairs) if is_first else self._kept
        after: list[Any] = []

        def begin() -> tuple[list[Any], list[Any]]:
            ends = self._submitted(step, before)
            after[:] = [self.client.submit(_first, end, pure=False, priority=1) for end in ends]
            sent = [self.client.submit(_second, end, pure=False, priority=1) for end in ends]
            return self._summed(sent, plus), after

        results = self._gathered(begin)
        self._kept = after
        return results

    def _submitted(self, function: Question, kept: list[Any]) -> list[Any]:
        sent = send(self.client, viewed(function, self._view))
        return [
            self.client.submit(_call, sent, index, pair, each, pure=False)
            for index, (pair, each) in enumerate(zip(self.pairs, kept, strict=True))
        ]

    def _summed(self, futures: list[Any], plus: Plus | None) -> list[Any]:
        """All futures, or that of their sum only, which workers add in a tree."""
        while plus is not None and len(futures) > 1:
            groups = [futures[start : start + _GROUP] for start in range(0, len(futures), _GROUP)]
            futures = [self.client.submit(reduce, plus, group, pure=False, priority=1) for group in groups]
        return futures

    def _gathered(self, begin: Callable[[], tuple[list[Any], list[Any]]]) -> list[Any]:
        """Submit tasks, and bring their results, before the time is up; other tasks only have to end."""
        end = time.monotonic() + self.time_limit
        with cluster_errors(self.time_limit):
            for attempt in range(_ATTEMPTS):
                results, others = begin()
                try:
                    left = max(end - time.monotonic(), 0.01)
                    return _gather_now(self.client, results, others, left)
                except CancelledError:
                    if attempt == _ATTEMPTS - 1 or self.client.status != "running":
                        raise
        raise AssertionError("the last attempt raises")

    def mapped(self, function: Callable[[Any], Any]) -> "DaskShards":
        return DaskShards(self.client, self.pairs, time_limit=self.time_limit, view=function)


def send(client: Any, value: Any) -> Any:
    """A future of a value, which workers hand to each other; unlike what is scattered, it can be made again."""
    return client.submit(_same, value, pure=False, priority=1)


def _same(value: Any) -> Any:
    return value


def gather_within(client: Any, futures: Sequence[Any], time_limit: float) -> list[Any]:
    """The results of futures; an error of ours if they are lost, or not there in time."""
    with cluster_errors(time_limit):
        return _gather_now(client, list(futures), [], time_limit)


def _gather_now(client: Any, results: list[Any], others: list[Any], seconds: float) -> list[Any]:
    return list(client.sync(_gather, client, results, others, callback_timeout=seconds))


async def _gather(client: Any, results: list[Any], others: list[Any]) -> list[Any]:
    """Wait for all futures and bring some, as long as there is a scheduler."""
    task = asyncio.ensure_future(_wait_and_gather(client, results, others))
    seconds_away = 0.0
    try:
        while True:
            if (await asyncio.wait([task], timeout=_LOOK))[0]:
                return task.result()
            seconds_away = 0.0 if client.status == "running" else seconds_away + _LOOK
            if seconds_away >= PATIENCE:
                raise OSError(f"it has not answered for {seconds_away:g} seconds")
    finally:
        task.cancel()


async def _wait_and_gather(client: Any, results: list[Any], others: list[Any]) -> list[Any]:
    await distributed.wait([*results, *others])
    return list(await client.gather(results, asynchronous=True))


@contextmanager
def cluster_errors(time_limit: float) -> Iterator[None]:
    """Turns what Dask raises about workers and schedulers into a sentence."""
    try:
        yield
    except StreamGPError:
        raise
    except TimeoutError as error:
        raise ClusterError(
            f"A step over all shards did not end within {time_limit:g} seconds. Look at the dashboard whether "
            "workers are there and have memory; raise time_limit if they only are slow."
        ) from error
    except (distributed.KilledWorker, MemoryError) as error:
        raise ClusterError(
            f"Workers were lost again and again at one task, or ran out of memory ({error}). Use smaller chunks, "
            "or fewer threads in each worker."
        ) from error
    except (CancelledError, OSError) as error:
        raise ClusterError(
            f"The cluster lost what was computed, or its scheduler went away ({type(error).__name__}: {error}). "
            "Start it again, and fit anew."
        ) from error


def _first(end: tuple[Any, Any]) -> Any:
    return end[0]


def _second(end: tuple[Any, Any]) -> Any:
    return end[1]


def _call(function: Question, index: int, pair: Any, kept: Any) -> Any:
    # A worker may run functions in threads that share this one.
    return own_copy(function)(index, pair, kept)


def read_client(client: Any) -> Any:
    """The client that was given, or the current one."""
    if client is None:
        try:
            return distributed.get_client()
        except ValueError as error:
            raise ClusterError(
                "There is no Dask client. Make one, client = distributed.Client(address), or pass client."
            ) from error
    if not isinstance(client, distributed.Client):
        raise ArgumentTypeError(f"client must be a distributed.Client or None, but is a {type(client).__name__}.")
    return client


def from_collections(client: Any, X: Any, y: Any, *, time_limit: float = 600.0) -> DaskShards:
    """Put the chunks of two Dask collections beside each other on the workers.

    Args:
        client: Client of the cluster.
        X: Array or data frame of numbers, with rows in chunks.
        y: Array or series of as many rows.
        time_limit: Seconds after which a step is given up.
    """
    inputs, targets = _blocks(X, "X"), _blocks(y, "y")
    if isinstance(X, dask.array.Array) and isinstance(y, dask.array.Array) and X.chunks[0] != y.chunks[0]:
        if X.shape[0] != y.shape[0]:
            raise ShapeError(f"y must have {X.shape[0]} values, one for each row of X, but has {y.shape[0]}.")
        targets = _blocks(y.rechunk((X.chunks[0],)), "y")
    if len(inputs) != len(targets):
        raise ShapeError(
            f"X has {len(inputs)} chunks of rows and y {len(targets)}. Divide both alike, with repartition or rechunk."
        )
    pairs = [dask.delayed(_pair)(a, b, i) for i, (a, b) in enumerate(zip(inputs, targets, strict=True))]
    futures = client.compute(pairs)
    sizes = DaskShards(client, futures, time_limit=time_limit).ask(_num_rows)
    if not any(sizes):
        raise ShapeError("X holds no rows. Pass at least one.")
    return DaskShards(client, [p for p, n in zip(futures, sizes, strict=True) if n], time_limit=time_limit)


def _blocks(values: Any, name: str) -> list[Any]:
    """Delayed chunks of rows, whole in their columns."""
    if isinstance(values, dask.array.Array):
        _check_columns(values, name)
        if values.ndim == 2 and len(values.chunks[1]) > 1:
            values = values.rechunk({1: -1})
        return list(values.to_delayed().ravel())
    if isinstance(values, dask.dataframe.DataFrame | dask.dataframe.Series):
        _check_columns(values, name)
        return list(values.to_delayed())  # type: ignore[no-untyped-call]
    raise ArgumentTypeError(
        f"{name} must be a dask.array or a dask.dataframe, but is a {type(values).__name__}. Make one with "
        f"dask.array.from_array({name}, chunks=...), or use streamgp.fit."
    )


def _check_columns(values: Any, name: str) -> None:
    """Refuse what is known not to be numbers, and targets that are a table, before anything is computed."""
    if name != "X":
        if isinstance(values, dask.dataframe.DataFrame):
            raise ShapeError(
                f"{name} must be one column, but is a table with the columns {list(values.columns)}. Pass one as a "
                f"series, {name}[{values.columns[0]!r}]."
            )
        return
    if isinstance(values, dask.array.Array):
        # Objects may be numbers: whether they are is found out chunk by chunk.
        if values.dtype.kind not in "fiubO":
            raise DTypeError(f"X must hold real numbers, but holds {values.dtype}. Encode it as numbers first.")
        return
    kinds = values.dtypes.items() if isinstance(values, dask.dataframe.DataFrame) else [(values.name, values.dtype)]
    bad = [f"{str(column)!r} ({dtype})" for column, dtype in kinds if getattr(dtype, "kind", "O") not in "fiub"]
    if bad:
        raise DTypeError(
            f"X must have columns of numbers, but has {', '.join(bad)}. Encode them, for example categories with "
            "dask_ml.preprocessing.Categorizer and DummyEncoder, or drop them."
        )


def _pair(X: Any, y: Any, index: int) -> tuple[np.ndarray, np.ndarray]:
    """One shard, checked for missing values while it is known which one it is."""
    X, y = np.asarray(X), np.asarray(y)
    X = X.reshape(len(X), math.prod(X.shape[1:]))
    try:
        X = X.astype(np.float32 if X.dtype == np.float32 else np.float64)
    except (TypeError, ValueError) as error:
        raise DTypeError(
            f"Chunk {index}: X must hold numbers, but {error}. Drop missing values, and encode others."
        ) from error
    if len(X) != len(y):
        raise ShapeError(f"Chunk {index}: X has {len(X)} rows, but y {len(y)}. Divide both alike.")
    is_bad = ~np.isfinite(X).all(axis=1)
    if is_bad.any():
        raise ValueRangeError(
            f"Chunk {index}: X must be finite, but {int(is_bad.sum())} of its {len(X)} rows have missing or infinite "
            f"values, the first in row {int(is_bad.argmax())}. Drop those rows, or impute them."
        )
    return X, y


def _num_rows(index: int, pair: tuple[Any, Any], kept: Any) -> int:
    return len(pair[1])
