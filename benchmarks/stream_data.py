"""The data of `benchmarks/streams.py`: rows that stream, in some order, and rows that are held out."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paper.datasets import UCI_NAMES, load_bananas, load_uci

# Rows that are used of the large files, to bound the time.
NUM_ROWS = {"elevators": 10_000, "protein": 10_000}
NAMES = (*UCI_NAMES, "bananas")
ORDERS = ("random", "sorted")


@dataclass(frozen=True)
class Stream:
    """Rows in the order of their arrival, and rows that are held out.

    Real targets are in units of the standard deviation of the stream, so that errors are comparable; inputs are as in
    the file.
    """

    X: Tensor
    y: Tensor
    X_test: Tensor
    y_test: Tensor
    likelihood: str

    @property
    def num_rows(self) -> int:
        return len(self.y)


def load_stream(name: str, order: str, seed: int, *, max_rows: int | None = None) -> Stream:
    """Read a data set, hold out a fifth of it (bananas have a test set of their own), and order the rest.

    Args:
        name: One of `NAMES`.
        order: `"random"`, or `"sorted"` by the first input.
        seed: Seed of the split and of the random order; ties of the sorted order stay in the random one.
        max_rows: Leave out rows beyond these, before sorting.
    """
    X, y, X_test, y_test = _bananas(seed) if name == "bananas" else _uci(name, seed)
    X, y = X[:max_rows], y[:max_rows]
    if order == "sorted":
        ranks = X[:, 0].argsort(stable=True)
        X, y = X[ranks], y[ranks]
    return Stream(X, y, X_test, y_test, "bernoulli" if name == "bananas" else "gaussian")


def _bananas(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    data = load_bananas()
    shuffled = torch.randperm(len(data.y_train), generator=torch.Generator().manual_seed(seed))
    return data.X_train[shuffled], data.y_train[shuffled], data.X_test, data.y_test


def _uci(name: str, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    data = load_uci(name, seed, num_rows=NUM_ROWS.get(name))
    return data.X_train, data.y_train, data.X_test, data.y_test
