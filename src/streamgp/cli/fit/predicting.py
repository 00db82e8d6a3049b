"""`streamgp predict`: a model and a file of rows become a table of predictions."""

from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from streamgp.cli.outputs import check_output_paths, write_together
from streamgp.errors import OptionError, ShapeError, UnsupportedError
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.saving import load_estimator
from streamgp.tables.files import TableFile
from streamgp.tables.records import write_table

__all__ = ["run_predict", "without_names"]


def run_predict(model_path: Path, source: Path, *, output: Path) -> None:
    """Predict the target of each row of a file, and write predictions as CSV.

    Means and standard deviations; of labels, the most probable and the probabilities of all.

    Args:
        model_path: What `streamgp fit` wrote, or any saved estimator that knows the names of its columns.
        source: CSV or Parquet file with the columns of the inputs.
        output: Where predictions go.
    """
    check_output_paths({"--output": output}, str(source))
    model = load_estimator(model_path)
    names: Any = vars(model).get("feature_names_in_")
    if names is None:
        raise UnsupportedError(f"{model_path} does not know the names of its columns. Fit it to a table that has them.")
    X = TableFile(source).numbers(names.tolist())
    if not len(X):
        raise ShapeError(f"{source} has no rows. Name a table with at least one.")
    is_bad = ~np.isfinite(X).all(axis=1)
    if is_bad.any():
        raise OptionError(
            f"{source}: {int(is_bad.sum())} of {len(X)} rows have missing or infinite inputs, the first after "
            f"{int(is_bad.argmax())} good ones. Drop those rows, or impute them."
        )
    header, rows = _predictions(without_names(model), X, str(vars(model).get("target_name_", "target")))

    write_together({output: partial(write_table, header=header, rows=rows)})


def without_names(estimator: Any) -> Any:
    """A copy for arrays whose columns were read by their names; scikit-learn warns where they have none."""
    other = copy(estimator)
    del other.feature_names_in_
    return other


def _predictions(model: Any, X: np.ndarray, target: str) -> tuple[list[str], list[list[str]]]:
    """A header and rows of predictions."""
    if isinstance(model, StreamingGPClassifier):
        probabilities = model.predict_proba(X)
        labels = [str(label) for label in model.classes_[probabilities.argmax(-1)]]
        header = [target, *(f"{target}_probability_{label}" for label in model.classes_)]
        return header, [[label, *map(repr, row)] for label, row in zip(labels, probabilities.tolist(), strict=True)]
    columns = [each.tolist() for each in model.predict(X, return_std=True)]
    return [f"{target}_mean", f"{target}_std"], [list(map(repr, row)) for row in zip(*columns, strict=True)]
