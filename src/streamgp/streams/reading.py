"""Rows that users give to estimators, checked as scikit-learn does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from streamgp.errors import DTypeError, ShapeError, ValueRangeError

__all__ = [
    "Batch",
    "read_batch",
    "read_horizon",
    "read_matrix",
    "read_numbers",
    "read_total_count",
    "read_weights",
]

# Kinds of NumPy's types of durations and dates.
_TIMES = ("m", "M")


class Batch(NamedTuple):
    """Rows that a user gave, checked.

    Attributes:
        inputs: Inputs, of double precision.
        targets: Targets or labels.
        total_count: Numbers of trials of binomial targets; None for others.
        weights: Weights of the rows; None if all count alike.
    """

    inputs: np.ndarray
    targets: np.ndarray
    total_count: np.ndarray | None = None
    weights: np.ndarray | None = None

    def take(self, rows: slice | np.ndarray) -> "Batch":
        """Some of the rows."""
        total_count = None if self.total_count is None else self.total_count[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Batch(self.inputs[rows], self.targets[rows], total_count, weights)


def read_matrix(estimator: BaseEstimator, X: Any) -> np.ndarray:
    """Inputs to predict at, for an estimator that knows its columns."""
    if not _is_plain_matrix(estimator, X):
        with _our_errors(X):
            X = validate_data(estimator, X, reset=False, dtype=np.float64)
    return _own_layout(X)


def read_batch(estimator: BaseEstimator, X: Any, y: Any, *, reset: bool, is_numeric: bool) -> Batch:
    """Inputs and targets to learn from, or to compare with.

    Args:
        estimator: What learns.
        X: Inputs.
        y: Targets or labels.
        reset: Whether these are its first rows, whose columns it is to know.
        is_numeric: Whether targets are numbers.
    """
    targets = given = y
    if is_numeric and _is_table(y):  # of several targets, those that are not known are NaN
        targets = read_numbers(y, "y")
        y = np.where(np.isnan(targets), 0.0, targets)
    if reset or not (_is_plain_matrix(estimator, X) and _is_plain_column(y, len(X))):
        with _our_errors(X):
            X, y = validate_data(
                estimator, X, y, reset=reset, dtype=np.float64, y_numeric=is_numeric, multi_output=is_numeric
            )
    if is_numeric:
        y = targets if targets is not given else read_numbers(y, "y")
    return Batch(_own_layout(X), y)


def _is_table(y: Any) -> bool:
    return (isinstance(y, np.ndarray | list | tuple) or hasattr(y, "iloc")) and np.ndim(y) == 2


def read_numbers(values: Any, name: str) -> np.ndarray:
    """Values as an array of double precision with memory of its own."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") in _TIMES:
        raise DTypeError(
            f"{name} must hold numbers, but holds {dtype}. Turn dates and durations into numbers first: a duration "
            "divided by numpy.timedelta64(1, 'D') is one of days."
        )
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DTypeError(
            f"{name} must hold numbers, but has other values ({error}). Labels are for classifiers."
        ) from error


def _own_layout(X: np.ndarray) -> np.ndarray:
    """Values row after row, that may be written to; a single row can count as such though its strides are negative."""
    X = np.require(X, requirements=["C", "W"])
    return X.copy() if min(X.strides) < 0 else X


def _is_plain_matrix(estimator: BaseEstimator, X: Any) -> bool:
    """Tell if scikit-learn would pass inputs on as they are, which it takes longer to find out than a row to learn."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and not hasattr(estimator, "feature_names_in_")
        and bool(np.isfinite(X).all())
    )


def _is_plain_column(y: Any, num_rows: int) -> bool:
    """Tell if scikit-learn would pass targets or labels on as they are."""
    return (
        type(y) is np.ndarray
        and y.dtype.kind in "biuf"
        and y.shape == (num_rows,)
        and (y.dtype.kind != "f" or bool(np.isfinite(y).all()))
    )


def read_total_count(total_count: Any, num_rows: int) -> np.ndarray | None:
    """Numbers of trials as an array with one for each row; None if there are none."""
    if total_count is None:
        return None
    counts = np.asarray(total_count, dtype=np.float64)
    if counts.shape not in ((), (num_rows,)):
        raise ShapeError(
            f"total_count must be a number or have shape ({num_rows},), one for each row of X, but has shape "
            f"{counts.shape}."
        )
    return np.array(np.broadcast_to(counts, num_rows))


def read_weights(sample_weight: Any, num_rows: int) -> np.ndarray | None:
    """Return weights of rows as an array; None if there are none."""
    if sample_weight is None:
        return None
    weights = read_numbers(sample_weight, "sample_weight")
    if weights.shape != (num_rows,):
        raise ShapeError(
            f"sample_weight must have shape ({num_rows},), one weight for each row, but has shape {weights.shape}."
        )
    if not (np.isfinite(weights).all() and (weights > 0.0).all()):
        raise ValueRangeError("sample_weight must be positive and finite. Leave out rows that are not to count.")
    return weights


def read_horizon(horizon: Any, num_rows: int) -> Any:
    """Return whole numbers of at least one, one for each row."""
    if isinstance(horizon, int) and horizon == 1:
        return 1
    numbers = np.asarray(horizon)
    if numbers.shape not in ((), (num_rows,)):
        raise ShapeError(
            f"horizon must be a whole number or have shape ({num_rows},), one for each row, but has shape "
            f"{numbers.shape}."
        )
    if numbers.dtype.kind not in "iu" or (numbers < 1).any():
        raise ValueRangeError(f"horizon must be a whole number of rows ahead, 1 for the next row, but is {horizon!r}.")
    return np.array(np.broadcast_to(numbers, num_rows), dtype=np.int64)


@contextmanager
def _our_errors(X: Any) -> Iterator[None]:
    """Turn what scikit-learn raises about data into the errors of this library, which are of the same kinds.

    Dates are refused before, as they would become counts of their unit, which another table may not have.
    """
    others = _other_columns(X)
    advice = (
        f" These hold no numbers: {', '.join(others)}. Let a streamgp.streams.preprocessing.StreamPreprocessor go "
        "before the estimator in a pipeline: it turns texts and dates into numbers."
        if others
        else ""
    )
    if any(kind in _TIMES for kind in others.values()):
        raise DTypeError("X must hold numbers." + advice)
    try:
        yield
    except ValueError as error:
        raise ValueRangeError(str(error) + advice) from error
    except TypeError as error:
        raise DTypeError(str(error) + advice) from error


def _other_columns(X: Any) -> dict[str, str]:
    """Columns of a DataFrame, or an array as a whole, that may not be numbers, with the kinds of their types."""
    dtypes: Any = getattr(X, "dtypes", None)
    if hasattr(dtypes, "items"):
        named = [(f"column {name!r} ({dtype})", dtype) for name, dtype in dtypes.items()]
    else:
        named = [(f"X ({X.dtype})", X.dtype)] if isinstance(X, np.ndarray) else []
    kinds = {name: getattr(dtype, "kind", "O") for name, dtype in named}
    return {name: kind for name, kind in kinds.items() if kind not in "fiub"}
