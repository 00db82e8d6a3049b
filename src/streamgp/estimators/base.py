"""Options, fits, weights of rows and further observations of regressor and classifier."""

import os
from abc import ABC
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, check_X_y, validate_data

from streamgp.checks import check_choice
from streamgp.conditioning import SparseGP
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.estimators.columns import TableColumns, as_table, needs_reading
from streamgp.estimators.warps import InputWarp, TargetWarp, choose_warps
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import save
from streamgp.training import FitInfo, FitResult, FittedGP, fit

__all__ = ["AbstractGPEstimator", "Reading", "read_weights", "rebuilt", "reweighted", "stored_fields"]


class Reading(NamedTuple):
    """Steps from rows of a table to what a GP is fitted to.

    Attributes:
        columns: Columns with words, dates or gaps; None where all are numbers.
        inputs: Bends of inputs.
        targets: Bend of targets.
    """

    columns: TableColumns | None = None
    inputs: InputWarp = InputWarp()
    targets: TargetWarp = TargetWarp()


class AbstractGPEstimator(BaseEstimator, ABC):
    """A scikit-learn estimator around what `streamgp.fit` returns."""

    result_: FitResult | FittedGP
    _info: FitInfo
    _kernel: Kernel
    _reading: Reading

    # The types of these are checked when they are used, as scikit-learn asks for.
    def __init__(
        self, *, kernel: Any, num_inducing: Any, num_starts: Any, time_budget: Any, warp: Any, random_state: Any
    ) -> None:
        self.kernel = kernel
        self.num_inducing = num_inducing
        self.num_starts = num_starts
        self.time_budget = time_budget
        self.warp = warp
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def info_(self) -> FitInfo:
        """Diagnostics of the fit: the bound, how many points were taken, what they leave open, warnings."""
        check_is_fitted(self, "result_")
        return self._info

    @property
    def kernel_(self) -> Kernel:
        """The kernel that was learned, for standardized inputs."""
        check_is_fitted(self, "result_")
        return self._kernel

    @property
    def likelihood_(self) -> AbstractLikelihood:
        """The likelihood that was learned, for standardized targets where it is Gaussian."""
        check_is_fitted(self, "result_")
        return self.result_.likelihood

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """The bound on the log marginal likelihood of the standardized targets."""
        return self.info_.bound

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file that `streamgp.load` reads, without pickle; atomically."""
        check_is_fitted(self, "result_")
        save(self, path)

    def _read(self, X: Any, y: Any, **checks: Any) -> tuple[np.ndarray, np.ndarray, TableColumns | None]:
        """Check rows to learn from, and turn words, dates and gaps into numbers."""
        if not needs_reading(X):
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, **checks)
            return X, y, None
        validate_data(self, X, skip_check_array=True)
        columns = TableColumns.of(as_table(X))
        X, y = check_X_y(columns.numbers(as_table(X)), y, dtype=np.float64, ensure_min_samples=2, **checks)
        return X, y, columns

    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        columns: TableColumns | None,
        guide: np.ndarray,
        is_target_open: bool,
        *,
        likelihood: Any,
        standardize: bool | str,
    ) -> tuple[FitResult, Reading]:
        """Choose bends of inputs and targets, and fit.

        Args:
            X: Inputs.
            y: Targets, which may be texts that name bounds.
            columns: How the inputs were read.
            guide: Numbers that stand for the targets where bends are compared.
            is_target_open: Whether the targets may be bent.
            likelihood: As for `streamgp.fit`.
            standardize: As for `streamgp.fit`.
        """
        check_choice("none" if self.warp is None else self.warp, ("auto", "inputs", "targets", "none"), "warp")
        # So that the order of the rows makes no difference.
        order = np.lexsort((y.astype(str) if y.dtype == object else y, *X.T[::-1]))
        X, y, guide = X[order], y[order], guide[order].astype(np.float64)
        generator = torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31 - 1)))
        inputs, targets = InputWarp(), TargetWarp()
        if self.warp in ("inputs", "targets") or (self.warp == "auto" and not isinstance(self.kernel, Kernel)):
            inputs, targets = choose_warps(
                X,
                guide,
                is_input_open=self.warp != "targets",
                is_target_open=is_target_open and self.warp != "inputs",
                generator=generator,
            )
        result: FitResult = fit(
            inputs(X),
            targets(y),
            likelihood=likelihood,
            kernel=self.kernel,
            num_inducing=self.num_inducing,
            num_starts=self.num_starts,
            time_budget=self.time_budget,
            standardize=standardize,
            generator=generator,
        )
        return result, Reading(columns, inputs, targets)

    def _remember(self, result: FitResult, reading: Reading) -> None:
        """Keep what was learned, once all of it is there."""
        self.result_, self._info, self._kernel, self._reading = result, result.info, result.gp.kernel, reading

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "result_")
        columns = self._reading.columns
        if columns is None:
            inputs: np.ndarray = validate_data(self, X, dtype=np.float64, reset=False)
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
            inputs = check_array(columns.numbers(as_table(X)), dtype=np.float64)
        return self._reading.inputs(inputs)

    def _with_result(self, result: Any) -> Any:
        """A copy that has learned something else; the original stays as it is."""
        other = copy(self)
        other.result_ = result
        return other

    def _absorbed(self, X: np.ndarray, y: np.ndarray, num_inducing: int | None) -> Any:
        if not isinstance(self.result_, FitResult):
            raise UnsupportedError(
                "An estimator that was conditioned has a belief that grows, which absorb cannot keep at a constant "
                "size. Absorb first, and condition what came out."
            )
        return self._with_result(self.result_.absorb(X, y, num_inducing=num_inducing)[0])


def read_weights(sample_weight: Any, X: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Read weights of rows as how often each row counts, and what is left over of weights that are not whole numbers.

    Returns:
        How often each row is taken, None for once each; and weights of the rows that are taken, None for ones.
    """
    if sample_weight is None:
        return None, None
    weights = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=True
    )
    if not weights.any():
        raise ValueRangeError("sample_weight must be positive for at least one row, but all weights are zero.")
    if (weights == weights[0]).all():
        return None, None
    if (weights == np.floor(weights)).all():
        return weights.astype(int), None
    return (weights > 0).astype(int), weights[weights > 0]


def reweighted(result: FitResult, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> FitResult:
    """Form the belief of a fit anew from rows whose noise variances are divided by weights; it must be Gaussian."""
    process, scaling, noise = result.gp.process, result.scaling, result.likelihood.gaussian_noise_variance
    if noise is None or scaling is None:
        raise UnsupportedError(
            f"sample_weight must be whole numbers for a {type(result.likelihood).__name__} likelihood: how often each "
            "row counts. Round them, or leave them out."
        )
    prior = SparseGP(SparseProcess.from_prior(process.prior, process.inducing_points, jitter=process.jitter))
    inputs, targets = scaling.inputs(torch.from_numpy(X)), scaling.targets(torch.from_numpy(y))
    variances = noise.detach() / torch.from_numpy(weights)
    gp, _ = prior.absorb(inputs, targets, noise_variance=variances, inducing="keep")
    return replace(result, gp=gp)


def stored_fields(estimator: AbstractGPEstimator) -> dict[str, Any]:
    """Fields of an estimator for a file; a source of randomness of its own is not kept."""
    parameters = estimator.get_params(deep=False)
    if not isinstance(estimator.random_state, int):
        parameters["random_state"] = None
    learned = {name: value for name, value in vars(estimator).items() if name not in parameters}
    names = learned.pop("feature_names_in_", None)
    learned |= {"columns": estimator._reading.columns, "inputs": estimator._reading.inputs}
    learned |= {"targets": estimator._reading.targets, "names": None if names is None else tuple(names.tolist())}
    del learned["_reading"]
    return {"parameters": parameters, "learned": learned}


def rebuilt(estimator: Any, learned: dict[str, Any]) -> Any:
    """Put what was learned back into an estimator with its parameters."""
    learned = dict(learned)
    reading = Reading(learned.pop("columns"), learned.pop("inputs"), learned.pop("targets"))
    names = learned.pop("names")
    vars(estimator).update(learned, _reading=reading)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator
