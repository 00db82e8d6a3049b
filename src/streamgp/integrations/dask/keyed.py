"""Keyed streams on a cluster: each key has its place on one of the workers."""

import zlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, final

import dask
import dask.dataframe
import numpy as np

from streamgp.errors import ArgumentTypeError, OptionError
from streamgp.integrations.dask.shards import gather_within, read_client, send
from streamgp.storage import save
from streamgp.streams.keyed import KeyedLearner

__all__ = ["DaskKeyedLearner"]


@final
class DaskKeyedLearner:
    """Many streams, one for each key, divided among partitions: what a partition knows stays on its worker.

    The keys of a partition are one batch, as in `KeyedLearner`. Rows of a key are learned in their order. Frozen:
    `learn` returns another learner. What was learned can be learned again from the tables that it came from, so that a
    worker that is lost costs time only; `save` keeps it for good.
    """

    def __init__(
        self, learner: KeyedLearner, *, num_partitions: int = 8, client: Any = None, time_limit: float = 600.0
    ) -> None:
        """Begin with a learner without keys in each partition.

        Args:
            learner: Hyperparameters, from `KeyedLearner.from_fit`; without keys.
            num_partitions: Number of partitions, a few for each worker.
            client: Client of the cluster; the current one by default.
            time_limit: Seconds after which a step that has not ended is given up.
        """
        if not isinstance(learner, KeyedLearner) or learner.keys:
            raise ArgumentTypeError("learner must be a KeyedLearner without keys, from KeyedLearner.from_fit.")
        self.client, self.time_limit = read_client(client), time_limit
        empty = send(self.client, learner)
        self._parts: list[Any] = [empty] * num_partitions

    def learn(self, table: Any, *, key: str, target: str) -> "DaskKeyedLearner":
        """Learn the rows of a table, those of each key in their order.

        Args:
            table: `dask.dataframe`, whose other columns are the inputs.
            key: Column of the keys.
            target: Column of the targets.
        """
        pieces = self._divided(table, key, target)
        parts = [
            self.client.submit(_learn, part, [piece[index] for piece in pieces], pure=False)
            for index, part in enumerate(self._parts)
        ]
        gather_within(self.client, [self.client.submit(_count, part, pure=False) for part in parts], self.time_limit)
        return self._with(parts)

    def predict(self, keys: Sequence[Hashable], X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of targets, noise included, for rows in memory.

        Args:
            keys: One for each row.
            X: Inputs `(n, d)`.
        """
        X, keys = np.asarray(X, dtype=np.float64), list(keys)
        places = np.array([_place(each, len(self._parts)) for each in keys])
        asked, answers = [], []
        for index in np.unique(places):
            rows = np.flatnonzero(places == index)
            asked.append(rows)
            chosen = [keys[row] for row in rows]
            answers.append(self.client.submit(_predict, self._parts[index], chosen, X[rows], pure=False))
        mean, variance = np.empty(len(keys)), np.empty(len(keys))
        for rows, answer in zip(asked, gather_within(self.client, answers, self.time_limit), strict=True):
            mean[rows], variance[rows] = answer
        return mean, variance

    @property
    def num_keys(self) -> int:
        """Number of keys so far."""
        counts = [self.client.submit(_count, part, pure=False) for part in self._parts]
        return sum(gather_within(self.client, counts, self.time_limit))

    def of(self, key: Hashable) -> Any:
        """Belief about one key, in the units of training, as `KeyedLearner.of`."""
        future = self.client.submit(_belief, self._parts[_place(key, len(self._parts))], key, pure=False)
        return gather_within(self.client, [future], self.time_limit)[0]

    def save(self, directory: Path) -> None:
        """Write one file for each partition, from its worker, to a directory that all workers see.

        `streamgp.load` reads each as a `KeyedLearner`, and its `of` gives what is believed of a key.
        """
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        paths = [directory / f"part-{index:04d}.zip" for index in range(len(self._parts))]
        written = [
            self.client.submit(_save, part, path, pure=False) for part, path in zip(self._parts, paths, strict=True)
        ]
        gather_within(self.client, written, self.time_limit)

    def _with(self, parts: list[Any]) -> "DaskKeyedLearner":
        other = object.__new__(DaskKeyedLearner)
        other.client, other.time_limit, other._parts = self.client, self.time_limit, parts
        return other

    def _divided(self, table: Any, key: str, target: str) -> list[list[Any]]:
        """Futures of the rows of each chunk for each partition."""
        if not isinstance(table, dask.dataframe.DataFrame):
            raise ArgumentTypeError(f"table must be a dask.dataframe, but is a {type(table).__name__}.")
        missing = [name for name in (key, target) if name not in table.columns]
        if missing:
            raise OptionError(f"table has no column {missing[0]!r}; it has {', '.join(map(repr, table.columns))}.")
        k, delayed = len(self._parts), dask.delayed(_divide, nout=len(self._parts))
        chunks = [delayed(chunk, key, target, k) for chunk in table.to_delayed()]
        flat = self.client.compute([piece for chunk in chunks for piece in chunk])
        return [flat[start : start + k] for start in range(0, len(flat), k)]


def _place(key: Hashable, num_partitions: int) -> int:
    """The partition of a key: the same in every process, unlike `hash`."""
    plain = key.item() if isinstance(key, np.generic) else key
    return zlib.crc32(repr(plain).encode()) % num_partitions


def _divide(chunk: Any, key: str, target: str, num_partitions: int) -> list[tuple[list[Any], np.ndarray, np.ndarray]]:
    keys = chunk[key].tolist()
    X = chunk.drop(columns=[key, target]).to_numpy(dtype=np.float64)
    y = chunk[target].to_numpy(dtype=np.float64)
    place = np.array([_place(each, num_partitions) for each in keys], dtype=np.int64)
    pieces = []
    for index in range(num_partitions):
        rows = np.flatnonzero(place == index)
        pieces.append(([keys[row] for row in rows], X[rows], y[rows]))
    return pieces


def _learn(learner: KeyedLearner, pieces: list[tuple[list[Any], np.ndarray, np.ndarray]]) -> KeyedLearner:
    for keys, X, y in pieces:
        if keys:
            learner = learner.learn(keys, X, y)
    return learner


def _predict(learner: KeyedLearner, keys: list[Any], X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, variance = learner.predict(keys, X)
    return mean.numpy(), variance.numpy()


def _count(learner: KeyedLearner) -> int:
    return len(learner.keys)


def _belief(learner: KeyedLearner, key: Hashable) -> Any:
    return learner.of(key)


def _save(learner: KeyedLearner, path: Path) -> None:
    save(learner, path)
