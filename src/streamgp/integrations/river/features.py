"""Features by name, in any order and not always all of them, as columns of numbers."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pandas as pd

from streamgp.errors import ArgumentTypeError, DTypeError, ValueRangeError

__all__ = ["FeatureTable", "read_block", "read_row"]

_NUMBERS = (int, float, np.number, np.bool_)


@final
@dataclass(frozen=True)
class FeatureTable:
    """Which feature is which column, and what stands for one that is missing; a frozen value.

    Attributes:
        names: Features, in the order of their columns.
        counts: How often each was given.
        means: Mean of what was given, which stands for missing values.
        num_ignored: Values so far of features that came too late to become columns.
    """

    names: tuple[Hashable, ...] = ()
    counts: tuple[int, ...] = ()
    means: tuple[float, ...] = ()
    num_ignored: int = 0

    def new_names(self, names: Sequence[Hashable]) -> list[Hashable]:
        """Which of these are no columns yet; in an order that does not depend on theirs."""
        return sorted(set(names).difference(self.names), key=str)

    def with_columns(self, names: Sequence[Hashable]) -> "FeatureTable":
        """Add columns."""
        zeros = (0,) * len(names)
        return replace(
            self,
            names=(*self.names, *names),
            counts=(*self.counts, *zeros),
            means=(*self.means, *map(float, zeros)),
        )

    def observe(self, names: Sequence[Hashable], values: np.ndarray) -> "FeatureTable":
        """Count values `(n, k)` of features in the means; and those of other features as ignored."""
        n, total = len(values), dict(zip(names, np.add.reduce(values).tolist(), strict=True))
        counts, means = list(self.counts), list(self.means)
        for index, name in enumerate(self.names):
            if name in total:
                counts[index] += n
                means[index] += (total[name] - n * means[index]) / max(counts[index], 1)
        num_ignored = self.num_ignored + n * (len(total) - sum(name in total for name in self.names))
        return FeatureTable(self.names, tuple(counts), tuple(means), num_ignored)

    def columns(self, names: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
        """Values `(n, k)` of features by name, as one column for each of the table's."""
        if self.names == tuple(names):
            return np.array(values)
        column = {name: index for index, name in enumerate(names)}
        if all(name in column for name in self.names):
            return values.take([column[name] for name in self.names], 1)
        return np.stack(
            [
                values[:, column[name]] if name in column else np.full(len(values), mean)
                for name, mean in zip(self.names, self.means, strict=True)
            ],
            axis=-1,
        )


def read_row(row: Mapping[Hashable, object]) -> np.ndarray:
    """Read the values of one row as numbers `(1, k)`."""
    numbers = []
    for name, value in row.items():
        if type(value) is not float and not isinstance(value, _NUMBERS):
            raise DTypeError(
                f"The feature {name!r} must be a number, but is {value!r}. Encode it first, for instance with "
                "river.preprocessing.OneHotEncoder, or leave out what is missing."
            )
        numbers.append(float(value))
    return _check_finite(list(row), np.array([numbers]))


def read_block(X: Any) -> np.ndarray:
    """Read the values of rows as numbers `(n, k)`."""
    if not isinstance(X, pd.DataFrame):
        raise ArgumentTypeError(
            f"X must be a pandas.DataFrame, whose columns name the features, but is a {type(X).__name__}. Make one "
            "with pandas.DataFrame(X, columns=names)."
        )
    if not X.columns.is_unique:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueRangeError(f"The columns of X must have different names, but {twice!r} comes twice. Rename one.")
    dates = [name for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") in "mM"]
    if dates:
        raise DTypeError(
            f"All columns of X must be numbers, but {dates[0]!r} holds dates or durations. Turn it into numbers first, "
            "for instance with .dt.hour or .dt.total_seconds()."
        )
    try:
        values = X.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"All columns of X must be numbers, but one is not ({error}). Encode it first.") from error
    return _check_finite(list(X.columns), values)


def _check_finite(names: Sequence[Hashable], values: np.ndarray) -> np.ndarray:
    """Return values `(n, k)` of features if they are finite."""
    is_good = np.isfinite(values)
    if not is_good.all():
        row, column = np.argwhere(~is_good)[0]
        raise ValueRangeError(
            f"The feature {names[column]!r} must be finite, but is {values[row, column]}. Leave out what is missing: "
            "it is replaced by the mean of the feature so far."
        )
    return values
