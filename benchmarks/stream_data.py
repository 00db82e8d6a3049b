"""The data of `benchmarks/streams.py`: rows that stream, in some order, and rows that are held out."""

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

DATA = Path(os.environ.get("STREAMGP_DATA_DIR", Path(__file__).resolve().parents[2] / "shared" / "data"))
# The file, the lines of its header, and how many of its rows are used: the large files are cut to bound the time.
FILES = {
    "powerplant": ("powerplant.csv.gz", 1, 9568),
    "elevators": ("elevators_data.csv.gz", 0, 10_000),
    "skillcraft": ("skillcraft_data.csv.gz", 0, 3338),
    "protein": ("protein_data.csv.gz", 0, 10_000),
}
NAMES = (*FILES, "bananas")
ORDERS = ("random", "sorted")
MOST_HELD_OUT = 2000


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
    generator = torch.Generator().manual_seed(seed)
    X, y, X_test, y_test = _bananas(generator) if name == "bananas" else _uci(name, generator)
    X, y = X[:max_rows], y[:max_rows]
    if order == "sorted":
        ranks = X[:, 0].argsort(stable=True)
        X, y = X[ranks], y[ranks]
    return Stream(X, y, X_test, y_test, "bernoulli" if name == "bananas" else "gaussian")


def _bananas(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    parts = (np.loadtxt(DATA / "banana" / f"banana_{part}.txt", delimiter=",") for part in ("train_x", "train_y"))
    X, y = (torch.from_numpy(part) for part in parts)
    parts = (np.loadtxt(DATA / "banana" / f"banana_{part}.txt", delimiter=",") for part in ("test_x", "test_y"))
    X_test, y_test = (torch.from_numpy(part) for part in parts)
    shuffled = torch.randperm(len(y), generator=generator)
    return X[shuffled], (y[shuffled] > 0).double(), X_test, (y_test > 0).double()


def _uci(name: str, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    file_name, num_header, num_rows = FILES[name]
    with gzip.open(DATA / "uci" / file_name, "rt") as file:
        rows = torch.from_numpy(np.loadtxt(file, delimiter=",", skiprows=num_header, max_rows=num_rows))
    rows = rows[torch.randperm(len(rows), generator=generator)]
    num_held = min(MOST_HELD_OUT, len(rows) // 5)
    X, y = rows[:, :-1], rows[:, -1]
    y = (y - y[num_held:].mean()) / y[num_held:].std()
    return X[num_held:], y[num_held:], X[:num_held], y[:num_held]
