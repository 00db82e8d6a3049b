"""Rows of ordinary tables as numbers, one after the other, for scikit-learn."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from streamgp.checks import keep_count
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, StreamGPWarning
from streamgp.storage import register
from streamgp.tables.columns import Column, Preprocessing

__all__ = ["StreamPreprocessor", "to_records", "warn_of_renamed"]


@final
class StreamPreprocessor(TransformerMixin, BaseEstimator):
    """Turn rows of an ordinary table into numbers for a learner, online.

    The first rows say what each column is: numbers, dates, or texts, which are categories. From then on each row
    becomes the same numbers: a number itself; a date its day and the sine and cosine of hour, weekday and day of year,
    in UTC if the first ones have different time zones, and as its clock says if not; a text a one at its category, with
    one more for all that were not seen at first. A missing number or date is taken as the mean so far, as is, with a
    warning, what is none, and columns that had missing values at first say so with a one. Texts of which most are
    different, names for instance, are left out. Means are learned on with `partial_fit`; nothing else changes.

    ```python
    from streamgp.streams.preprocessing import StreamPreprocessor

    rows = [{"when": "2024-03-01 10:00", "city": "Oslo", "load": 3.2}, {"when": "2024-03-01 11:00", "city": "Bergen"}]
    StreamPreprocessor().fit_transform(rows)
    ```
    """

    def __init__(self, *, kinds: Any = None, exclude: Any = (), max_categories: Any = 20) -> None:
        """Start before the first row.

        Args:
            kinds: By the names of columns, `"number"`, `"date"`, `"category"` or `"text"` (not used), where it should
                not be guessed.
            exclude: Names of columns to leave out.
            max_categories: Most categories of a column; the most frequent ones at first.
        """
        self.kinds = kinds
        self.exclude = exclude
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> "StreamPreprocessor":
        """Forget everything, and learn what the columns are.

        Args:
            X: Rows: a list of mappings, a DataFrame, or an array with one row for each.
            y: Not used.
        """
        records = to_records(X)
        self.state_: Preprocessing = self._start(records, X).learned(records)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> "StreamPreprocessor":
        """Learn the means of further rows; the first ones say what the columns are.

        Args:
            X: Rows, as in `fit`.
            y: Not used.
        """
        records = to_records(X)
        if "state_" in vars(self):
            self._check_names(records, X)
            self.state_ = self.state_.learned(records)
        else:
            self.state_ = self._start(records, X).learned(records)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The numbers of rows, of double precision.

        Args:
            X: Rows, as in `fit`. A column of mappings or of a DataFrame that is absent is missing in all rows.

        Raises:
            ShapeError: If rows without names of columns are longer or shorter than the first ones.
            OptionError: If the rows have none of the columns.
        """
        check_is_fitted(self, "state_")
        records = to_records(X)
        self._check_names(records, X)
        issues = self.state_.issues(records)
        if issues:
            row, issue = issues[0]
            more = f", and so for {len(issues) - 1} more" if len(issues) > 1 else ""
            warnings.warn(
                f"A value is taken as missing: in row {row}, counted from 0, {issue}{more}.",
                StreamGPWarning,
                stacklevel=2,
            )
        return self.state_.transform(records)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the numbers."""
        check_is_fitted(self, "state_")
        return np.array(self.state_.outputs, dtype=object)

    @property
    def columns_(self) -> tuple[Column, ...]:
        """Columns, with all that is known of them."""
        check_is_fitted(self, "state_")
        return self.state_.columns

    def _check_names(self, records: Sequence[Mapping[str, Any]], X: Any) -> None:
        """Refuse rows of another table, of which all would be missing or out of place."""
        names = dict.fromkeys(name for each in records for name in each)
        known = [column.name for column in self.state_.columns]
        absent = [column.name for column in self.state_.columns if column.kind != "text" and column.name not in names]
        others = [name for name in names if name not in known and name not in self.exclude]
        if names and not any(name in names for name in known):
            raise OptionError(
                f"The rows have none of the columns {known}, but {list(names)}. Pass a table with the columns of the "
                "first rows."
            )
        if _is_nameless(X) and (others or any(name not in names for name in known)):
            raise ShapeError(
                "Rows without names must have as many values as the first ones, whose columns are "
                f"{known}, but have {len(names)}. Pass values for all columns, with None for what is missing."
            )
        warn_of_renamed(absent, others, stacklevel=4)

    def _start(self, records: Sequence[Mapping[str, Any]], X: Any) -> Preprocessing:
        if type(X).__module__.startswith("pandas") and X.ndim == 1:  # whose index may be names of columns, or of rows
            raise ArgumentTypeError(
                "The first rows must be a DataFrame, but are a Series. Pass X.to_frame() for a column, X.to_frame().T "
                "for a row; in a ColumnTransformer, name a single column in a list."
            )
        keep_count(self, "max_categories")
        kept = [{name: value for name, value in each.items() if name not in self.exclude} for each in records]
        return Preprocessing.from_records(kept, kinds=self.kinds, max_categories=self.max_categories)


def to_records(X: Any) -> list[Mapping[str, Any]]:
    """Rows as mappings."""
    if type(X).__module__.startswith("pandas"):
        if X.ndim == 1:
            return [X.to_dict()]
        if not X.columns.is_unique:
            twice = X.columns[X.columns.duplicated()][0]
            raise OptionError(f"Columns must have different names, but {twice!r} comes twice. Rename one.")
        return X.to_dict("records")
    if isinstance(X, Mapping):
        return [X]
    if isinstance(X, np.ndarray) and X.dtype.kind == "M":
        X = X.astype("datetime64[us]")  # as finer ones become whole numbers
    rows = X.tolist() if isinstance(X, np.ndarray) and X.ndim == 2 else X
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ArgumentTypeError(
            f"Rows must be a list of mappings, a DataFrame or an array with two axes, but are a {type(X).__name__}. "
            "Pass for example [{'temperature': 3.5, 'city': 'Oslo'}]."
        )
    if all(isinstance(row, Mapping) for row in rows):
        return list(rows)
    if not all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        raise ArgumentTypeError("Each row must be a mapping or a list of values. Pass one for each row.")
    sizes = sorted({len(row) for row in rows})
    if len(sizes) > 1:
        raise ShapeError(
            f"Rows without names must have equally many values, but have from {sizes[0]} to {sizes[-1]}. Fill up with "
            "None what is missing."
        )
    return [{f"x{i}": value for i, value in enumerate(row)} for row in rows]


def _is_nameless(X: Any) -> bool:
    """Tell if rows have values by place instead of by name."""
    return isinstance(X, np.ndarray | Sequence) and len(X) > 0 and not isinstance(X[0], Mapping)


def _fields(transformer: StreamPreprocessor) -> dict[str, Any]:
    learned = transformer.state_ if "state_" in vars(transformer) else None
    return {"parameters": transformer.get_params(deep=False), "learned": learned}


def _rebuild(parameters: dict[str, Any], learned: Preprocessing | None) -> StreamPreprocessor:
    transformer = StreamPreprocessor(**parameters)
    if learned is not None:
        transformer.state_ = learned
    return transformer


register(StreamPreprocessor, name="preprocessing.StreamPreprocessor", to_fields=_fields, from_fields=_rebuild)


def warn_of_renamed(absent: Sequence[str], others: Sequence[str], *, stacklevel: int) -> None:
    """Warn of columns that are missing where there are others, which may be the same under new names."""
    if absent and others:
        warnings.warn(
            f"The rows have no columns {absent}, which are taken as missing, but {others}, which are not used. "
            "Rename them if they are the same.",
            StreamGPWarning,
            stacklevel=stacklevel,
        )
