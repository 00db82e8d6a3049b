"""Regression and classification on a Dask cluster, by the conventions of `xgboost.dask` and `lightgbm.dask`."""

from collections.abc import Sequence
from typing import Any, final

import dask
import dask.array
import dask.dataframe
import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from streamgp.errors import ArgumentTypeError
from streamgp.integrations.dask.shards import DaskShards, from_collections, read_client
from streamgp.streams.classifier import StreamingGPClassifier
from streamgp.streams.regressor import StreamingGPRegressor
from streamgp.streams.sharded import classifier_from_fit, regressor_from_fit
from streamgp.tables.labels import read_labels, to_array
from streamgp.training import FitResult, fit
from streamgp.training.sharded_fit import classes_of, fit_classes

__all__ = ["DaskGPClassifier", "DaskGPRegressor"]


class _AbstractDaskEstimator(BaseEstimator):
    """Options and predictions that both share; scikit-learn asks that options are kept as they are given."""

    def __init__(
        self,
        *,
        client: Any = None,
        kernel: Any = None,
        num_inducing: Any = 200,
        inducing: Any = "kmeans",
        max_iterations: Any = None,
        time_limit: Any = 600.0,
        random_state: Any = 0,
        progress: Any = False,
    ) -> None:
        self.client = client
        self.kernel = kernel
        self.num_inducing = num_inducing
        self.inducing = inducing
        self.max_iterations = max_iterations
        self.time_limit = time_limit
        self.random_state = random_state
        self.progress = progress

    def _options(self) -> dict[str, Any]:
        """Options of training."""
        return {
            "kernel": self.kernel,
            "num_inducing": self.num_inducing,
            "inducing": self.inducing,
            "max_iterations": self.max_iterations,
            "generator": torch.Generator().manual_seed(int(self.random_state)),
            "progress": self.progress,
        }

    def _shards(self, X: Any, y: Any) -> DaskShards:
        return from_collections(read_client(self.client), X, y, time_limit=self.time_limit)

    def _remember(self, X: Any, local: Any, results: tuple[FitResult, ...]) -> None:
        """Keep what was learned, all at once at the end, so that a fit that fails changes nothing."""
        if isinstance(X, dask.dataframe.DataFrame):
            local.feature_names_in_ = np.array([str(column) for column in X.columns], dtype=object)
            self.feature_names_in_ = local.feature_names_in_
        self.n_features_in_ = local.n_features_in_
        self.local_ = local
        self.info_ = tuple(result.info for result in results)

    def to_local(self) -> Any:
        """The ordinary estimator, which needs no cluster: it predicts, saves, and learns on with `partial_fit`."""
        check_is_fitted(self, "local_")
        return self.local_

    def __getstate__(self) -> dict[str, Any]:
        """State that is pickled: all but the connection to the cluster."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Any:
        """Clone as scikit-learn asks: with equal options, and with this connection, which cannot be copied."""
        options = {name: value for name, value in self.get_params(deep=False).items() if name != "client"}
        copied = {name: clone(value, safe=False) for name, value in options.items()}
        return type(self)(**copied, client=self.client)

    def _blockwise(self, X: Any, method: str, num_columns: int, **options: Any) -> Any:
        """A lazy array of what a method of the local estimator says of each chunk."""
        check_is_fitted(self, "local_")
        model = dask.delayed(self.local_)
        if isinstance(X, dask.dataframe.DataFrame):
            parts = [dask.delayed(_apply)(part, model, method, num_columns, options) for part in X.to_delayed()]
            return dask.array.concatenate(
                [dask.array.from_delayed(part, (np.nan, num_columns), dtype=float) for part in parts],
                allow_unknown_chunksizes=True,
            )
        if not isinstance(X, dask.array.Array):
            raise ArgumentTypeError(
                f"X must be a dask.array or a dask.dataframe, but is a {type(X).__name__}. Predict in memory with "
                "to_local().predict(X)."
            )
        whole = (X[:, None] if X.ndim == 1 else X).rechunk({1: -1})  # one column, as in a fit
        return dask.array.map_blocks(
            _apply,
            whole,
            model,
            method,
            num_columns,
            options,
            dtype=float,
            chunks=(whole.chunks[0], (num_columns,)),
            meta=np.empty((0, num_columns)),
        )


def _read_scored(y: Any, sample_weight: Any) -> Any:
    """Targets of a score as an array."""
    if sample_weight is not None:
        raise ArgumentTypeError("sample_weight is not supported over chunks. Score to_local() in memory.")
    return y.to_dask_array() if isinstance(y, dask.dataframe.Series) else y


def _apply(part: Any, model: Any, method: str, num_columns: int, options: dict[str, Any]) -> np.ndarray:
    if not len(part):
        return np.empty((0, num_columns))
    asked = getattr(model, method)(part, **options)
    columns = asked if isinstance(asked, tuple) else (asked,)
    return np.concatenate([np.reshape(each, (len(part), -1)) for each in columns], axis=1).astype(float)


@final
class DaskGPRegressor(RegressorMixin, _AbstractDaskEstimator):
    """Gaussian-process regression on a Dask cluster, fitted to all rows exactly.

    Inputs are standardized, and so are targets with Gaussian noise. Fits by `streamgp.fit` over the chunks of rows,
    which stay on their workers; of each evaluation only a few p² numbers travel.

    Args:
        likelihood: Name or object, as for `streamgp.fit`.
        client: Client of the cluster; the current one by default.
        kernel: As for `streamgp.fit`.
        num_inducing: Number of inducing points.
        inducing: Where they start: `"kmeans"` or `"pivoted"` on a sample of the rows, or `"distributed_kmeans"` on all.
        max_iterations: Most iterations of L-BFGS; 200 by default.
        time_limit: Seconds after which a step over all chunks that has not ended is an error.
        random_state: Seed.
        progress: Show a progress bar.

    Attributes:
        info_: Diagnostics of the fit.
        n_features_in_: Number of input columns.
        feature_names_in_: Names of the columns, if there are any.
    """

    def __init__(
        self,
        likelihood: Any = "gaussian",
        *,
        client: Any = None,
        kernel: Any = None,
        num_inducing: Any = 200,
        inducing: Any = "kmeans",
        max_iterations: Any = None,
        time_limit: Any = 600.0,
        random_state: Any = 0,
        progress: Any = False,
    ) -> None:
        super().__init__(
            client=client,
            kernel=kernel,
            num_inducing=num_inducing,
            inducing=inducing,
            max_iterations=max_iterations,
            time_limit=time_limit,
            random_state=random_state,
            progress=progress,
        )
        self.likelihood = likelihood

    def fit(self, X: Any, y: Any) -> "DaskGPRegressor":
        """Fit to Dask collections.

        Args:
            X: `dask.array` or `dask.dataframe` of inputs, in chunks of rows of any size.
            y: Targets, divided alike.
        """
        shards = self._shards(X, y)
        likelihood = None if self.likelihood == "gaussian" else self.likelihood
        result = fit(shards, likelihood=likelihood, standardize=True, **self._options())
        self._remember(X, regressor_from_fit(result, shards, likelihood=self.likelihood), (result,))
        return self

    def predict(self, X: Any, return_std: bool = False, quantiles: Sequence[float] | None = None) -> Any:
        """Predict lazily.

        Args:
            X: `dask.array` or `dask.dataframe`.
            return_std: Return standard deviations, noise included, too.
            quantiles: Probabilities of quantiles, which are returned, too.

        Returns:
            A Dask array of means; if more was asked for, a tuple as `StreamingGPRegressor.predict` returns.
        """
        num_quantiles = 0 if quantiles is None else len(quantiles)
        width = 1 + int(return_std) + num_quantiles
        table = self._blockwise(X, "predict", width, return_std=return_std, quantiles=quantiles)
        asked = [table[:, 0]]
        if return_std:
            asked.append(table[:, 1])
        if quantiles is not None:
            asked.append(table[:, width - num_quantiles :])
        return asked[0] if len(asked) == 1 else tuple(asked)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the predicted means."""
        y = _read_scored(y, sample_weight)
        error, total = dask.compute(((y - self.predict(X)) ** 2).sum(), ((y - y.mean()) ** 2).sum())
        return float(1.0 - error / total)

    def to_local(self) -> StreamingGPRegressor:
        return super().to_local()


@final
class DaskGPClassifier(ClassifierMixin, _AbstractDaskEstimator):
    """Gaussian-process classification on a Dask cluster.

    Two classes or more; of more than two, each against all others, with one kernel and one set of inducing points.

    Args:
        client: Client of the cluster; the current one by default.
        kernel: As for `streamgp.fit`.
        num_inducing: Number of inducing points.
        inducing: Where they start: `"kmeans"` or `"pivoted"` on a sample of the rows, or `"distributed_kmeans"` on all.
        max_iterations: Most iterations of L-BFGS; 200 by default.
        time_limit: Seconds after which a step over all chunks that has not ended is an error.
        random_state: Seed.
        progress: Show a progress bar.

    Attributes:
        classes_: Labels, sorted.
        info_: Diagnostics of each fit.
    """

    def fit(self, X: Any, y: Any) -> "DaskGPClassifier":
        """Fit to Dask collections.

        Args:
            X: `dask.array` or `dask.dataframe` of inputs, in chunks of rows of any size.
            y: Labels, divided alike.
        """
        shards = self._shards(X, y)
        classes = classes_of(shards)
        results = fit_classes(shards, classes, **self._options())
        self._remember(X, classifier_from_fit(results, shards, classes=classes), results)
        self.classes_ = to_array(classes)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, as a lazy Dask array `(n, k)`."""
        check_is_fitted(self, "local_")
        return self._blockwise(X, "predict_proba", len(self.classes_))

    def predict(self, X: Any) -> Any:
        """The most probable labels, as a lazy Dask array."""
        probabilities, classes = self.predict_proba(X), self.classes_
        return probabilities.argmax(axis=1).map_blocks(classes.__getitem__, dtype=classes.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of labels that are predicted rightly."""
        y, predicted = _read_scored(y, sample_weight), self.predict(X)
        labels = y.map_blocks(read_labels, meta=self.classes_[:0])  # dates of any kind are those that are predicted
        return float((predicted == labels).mean().compute())

    def to_local(self) -> StreamingGPClassifier:
        return super().to_local()
