from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.datasets.tables import read_table
from streamgp.checks import check_choice, check_count

__all__ = ["Regression", "load_protein"]

_TEST_SHARE = 0.1
_FIRST_SHARE = 0.05
# Rows that leave at least one for each part.
_FEWEST_ROWS = 30


@final
@dataclass(frozen=True, eq=False)
class Regression:
    """Rows to start from, rows that stream, and rows that are held out.

    Attributes:
        X_first: Inputs to start from.
        y_first: Their targets.
        X_stream: Inputs that arrive one by one, in this order.
        y_stream: Their targets.
        X_test: Inputs that are held out.
        y_test: Their targets.
    """

    X_first: Float[Tensor, "a d"]
    y_first: Float[Tensor, " a"]
    X_stream: Float[Tensor, "n d"]
    y_stream: Float[Tensor, " n"]
    X_test: Float[Tensor, "t d"]
    y_test: Float[Tensor, " t"]


def load_protein(seed: int, *, num_rows: int | None = None, target: str = "log_rmsd") -> Regression:
    """Load the data set `protein` as a stream.

    Inputs are scaled to [-1, 1] and the target is standardized, both over the whole file. Rows are shuffled; a tenth is
    held out, and the stream starts from a twentieth of the rest.

    Args:
        seed: Seed of the shuffle.
        num_rows: Rows to keep, at most, of the shuffled ones; all 45730 by default.
        target: `"log_rmsd"`, or `"rmsd"` of the data set `protein_raw`, whose rows are in another order.
    """
    check_choice(target, ("log_rmsd", "rmsd"), "target")
    X, y = _read(target)
    if num_rows is not None:
        num_rows = check_count(num_rows, "num_rows", minimum=_FEWEST_ROWS)
    lower, upper = X.amin(0), X.amax(0)
    X, y = 2 * (X - lower) / (upper - lower) - 1, (y - y.mean()) / y.std()
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))[:num_rows]
    num_test = int(_TEST_SHARE * len(order))
    num_first = int(_FIRST_SHARE * (len(order) - num_test))
    test, first, stream = order.split([num_test, num_first, len(order) - num_test - num_first])
    return Regression(X[first], y[first], X[stream], y[stream], X[test], y[test])


def _read(target: str) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
    if target == "rmsd":
        rows = read_table("uci/CASP_raw.csv.gz", num_header=1)
        return rows[:, 1:], rows[:, 0]
    rows = read_table("uci/protein_data.csv.gz")
    return rows[:, :-1], rows[:, -1]
