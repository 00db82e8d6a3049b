from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.datasets.tables import read_table
from streamgp.checks import check_choice, check_count
from streamgp.errors import ValueRangeError

__all__ = ["UCI_NAMES", "Split", "load_uci"]

# The file and the lines of its header.
_FILES = {
    "powerplant": ("uci/powerplant.csv.gz", 1),
    "elevators": ("uci/elevators_data.csv.gz", 0),
    "skillcraft": ("uci/skillcraft_data.csv.gz", 0),
    "protein": ("uci/protein_data.csv.gz", 0),
}
UCI_NAMES = tuple(_FILES)


@final
@dataclass(frozen=True, eq=False)
class Split:
    """Rows to learn from, and rows that are held out.

    Attributes:
        X_train: Inputs as in the file.
        y_train: Targets, standardized.
        X_test: Inputs that are held out.
        y_test: Their targets, on the scale of `y_train`.
    """

    X_train: Float[Tensor, "n d"]
    y_train: Float[Tensor, " n"]
    X_test: Float[Tensor, "t d"]
    y_test: Float[Tensor, " t"]


def load_uci(name: str, seed: int, *, test_share: float = 0.2, num_rows: int | None = None) -> Split:
    """Load a regression data set in random order.

    Args:
        name: `"powerplant"`, `"elevators"`, `"skillcraft"` or `"protein"`.
        seed: Seed of the order, and so of the split.
        test_share: Share of the rows that are held out.
        num_rows: Rows to read, at most, from the beginning of the file, before they are shuffled; all by default.
    """
    check_choice(name, UCI_NAMES, "name")
    if not 0.0 < test_share < 1.0:
        raise ValueRangeError(f"test_share must be a number above 0 and below 1, but is {test_share!r}.")
    if num_rows is not None:
        num_rows = check_count(num_rows, "num_rows")
    file_name, num_header = _FILES[name]
    rows = read_table(file_name, num_header=num_header, num_rows=num_rows)
    num_test = int(test_share * len(rows))
    if not 1 <= num_test <= len(rows) - 2:
        raise ValueRangeError(
            f"A share of {test_share} of {len(rows)} rows leaves {num_test} to hold out and {len(rows) - num_test} to "
            "learn from, but at least 1 and 2 are needed. Read more rows, or change the share."
        )
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))]
    X, y = rows[:, :-1], rows[:, -1]
    y = (y - y[num_test:].mean()) / y[num_test:].std()
    return Split(X[num_test:], y[num_test:], X[:num_test], y[:num_test])
