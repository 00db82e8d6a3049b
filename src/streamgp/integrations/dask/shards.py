"""Shards on the workers of a Dask cluster."""

from collections.abc import Sequence
from concurrent.futures import CancelledError
from copy import deepcopy
from typing import Any, final

import dask
import dask.array
import dask.dataframe
import distributed
import numpy as np

from streamgp.errors import ClusterError, DTypeError, ShapeError, StreamGPError, ValueRangeError
from streamgp.training.sharding import AbstractShards
from streamgp.training.sharding.shards import Step

__all__ = ["DaskShards", "from_collections", "read_client"]


@final
class DaskShards(AbstractShards):
    """Pairs (X, y) that lie on workers, beside what a fit keeps of them.

    A step is one small task whose result workers hand to each other, so that the scheduler sees it once, whatever the
    number of shards. Everything can be computed again: a worker that is lost costs time, and changes nothing.
    """

    def __init__(self, client: Any, pairs: Sequence[Any], *, time_limit: float = 600.0) -> None:
        """Keep futures of the pairs.

        Args:
            client: Client of the cluster.
            pairs: Futures.
            time_limit: Seconds after which a step that has not ended is given up.
        """
        self.client, self.pairs, self.time_limit = client, list(pairs), time_limit
        self._kept: list[Any] = [None] * len(self.pairs)

    def run(self, step: Step) -> list[Any]:
        submit = self.client.submit
        with self._cluster_errors():
            sent = submit(_same, step, pure=False, priority=1)
            ends = [
                submit(_run_step, sent, index, pair, kept, pure=False)
                for index, (pair, kept) in enumerate(zip(self.pairs, self._kept, strict=True))
            ]
            results = [submit(_second, end, pure=False, priority=1) for end in ends]
            self._kept = [submit(_first, end, pure=False, priority=1) for end in ends]
            distributed.wait(results, timeout=self.time_limit)
            return list(self.client.gather(results))

    def mapped(self, function: Any, *arguments: Any) -> "DaskShards":
        """The shards after a function of each pair."""
        pairs = [self.client.submit(function, pair, *arguments, pure=False) for pair in self.pairs]
        return DaskShards(self.client, pairs, time_limit=self.time_limit)

    def _cluster_errors(self) -> "_ClusterErrors":
        return _ClusterErrors(self.time_limit)


@final
class _ClusterErrors:
    """Turns what Dask raises about workers and schedulers into a sentence."""

    def __init__(self, time_limit: float) -> None:
        self.time_limit = time_limit

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None or isinstance(error, StreamGPError):
            return
        if isinstance(error, TimeoutError):
            raise ClusterError(
                f"A step over all shards did not end within {self.time_limit:g} seconds. Look at the dashboard whether "
                "workers are there and have memory; raise time_limit if they only are slow."
            ) from error
        if isinstance(error, distributed.KilledWorker | MemoryError):
            raise ClusterError(
                f"Workers were lost again and again at one task, or ran out of memory ({error}). Use smaller chunks, "
                "or fewer threads in each worker."
            ) from error
        if isinstance(error, CancelledError | OSError):
            raise ClusterError(
                f"The cluster lost what was computed, or its scheduler went away ({type(error).__name__}: {error}). "
                "Start it again, and fit anew."
            ) from error


def _same(step: Step) -> Step:
    return step


def _first(end: tuple[Any, Any]) -> Any:
    return end[0]


def _second(end: tuple[Any, Any]) -> Any:
    return end[1]


def _run_step(step: Step, index: int, pair: Any, kept: Any) -> tuple[Any, Any]:
    # A worker may run steps in threads that share this one.
    return deepcopy(step)(index, pair, kept)


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
        raise DTypeError(f"client must be a distributed.Client or None, but is a {type(client).__name__}.")
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
    shards = DaskShards(client, futures, time_limit=time_limit)
    with shards._cluster_errors():
        done = distributed.wait(futures, timeout=time_limit).done
        for future in done:
            if future.status == "error":
                raise future.exception()
        sizes = client.gather([client.submit(_num_rows, pair, pure=False) for pair in futures])
    if not any(sizes):
        raise ShapeError("X holds no rows. Pass at least one.")
    return DaskShards(client, [p for p, n in zip(futures, sizes, strict=True) if n], time_limit=time_limit)


def _blocks(values: Any, name: str) -> list[Any]:
    """Delayed chunks of rows, whole in their columns."""
    if isinstance(values, dask.array.Array):
        if values.ndim == 2 and len(values.chunks[1]) > 1:
            values = values.rechunk({1: -1})
        return list(values.to_delayed().ravel())
    if isinstance(values, dask.dataframe.DataFrame | dask.dataframe.Series):
        _check_columns(values, name)
        return list(values.to_delayed())  # type: ignore[no-untyped-call]
    raise DTypeError(
        f"{name} must be a dask.array or a dask.dataframe, but is a {type(values).__name__}. Make one with "
        f"dask.array.from_array({name}, chunks=...), or use streamgp.fit."
    )


def _check_columns(values: Any, name: str) -> None:
    if name != "X":
        return
    kinds = values.dtypes.items() if isinstance(values, dask.dataframe.DataFrame) else [(values.name, values.dtype)]
    bad = [str(column) for column, dtype in kinds if getattr(dtype, "kind", "O") not in "fiub"]
    if bad:
        raise DTypeError(
            f"X must have columns of numbers, but {', '.join(map(repr, bad))} hold texts or categories. Encode them, "
            "for example with dask_ml.preprocessing.Categorizer and DummyEncoder, or drop them."
        )


def _pair(X: Any, y: Any, index: int) -> tuple[np.ndarray, np.ndarray]:
    """One shard, checked for missing values while it is known which one it is."""
    X, y = np.asarray(X), np.asarray(y)
    X = X.reshape(len(X), -1).astype(np.float32 if X.dtype == np.float32 else np.float64)
    if len(X) != len(y):
        raise ShapeError(f"Chunk {index}: X has {len(X)} rows, but y {len(y)}. Divide both alike.")
    is_bad = ~np.isfinite(X).all(axis=1)
    if is_bad.any():
        raise ValueRangeError(
            f"Chunk {index}: X must be finite, but {int(is_bad.sum())} of its {len(X)} rows have missing or infinite "
            f"values, the first in row {int(is_bad.argmax())}. Drop those rows, or impute them."
        )
    return X, y


def _num_rows(pair: tuple[Any, Any]) -> int:
    return len(pair[1])
