"""Options, fits, weights of rows and further observations of regressor and classifier."""

import os
from abc import ABC
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import Kernel
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from streamgp.conditioning import SparseGP
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.gp import SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import save
from streamgp.training import FitInfo, FitResult, FittedGP, fit

__all__ = ["AbstractGPEstimator", "read_weights", "reweighted"]


class AbstractGPEstimator(BaseEstimator, ABC):
    """A scikit-learn estimator around what `streamgp.fit` returns."""

    result_: FitResult | FittedGP
    _info: FitInfo
    _kernel: Kernel

    # The types of these are checked when they are used, as scikit-learn asks for.
    def __init__(self, *, kernel: Any, num_inducing: Any, num_starts: Any, time_budget: Any, random_state: Any) -> None:
        self.kernel = kernel
        self.num_inducing = num_inducing
        self.num_starts = num_starts
        self.time_budget = time_budget
        self.random_state = random_state

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
        """Write the result of the fit to a file that `streamgp.load` reads, without pickle; atomically."""
        check_is_fitted(self, "result_")
        save(self.result_, path)

    def _fit(self, X: np.ndarray, y: np.ndarray, likelihood: Any, standardize: bool | str) -> FitResult:
        order = np.lexsort(
            (y.astype(str) if y.dtype == object else y, *X.T[::-1])
        )  # so that the order of the rows makes no difference
        X, y = X[order], y[order]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        result: FitResult = fit(
            X,
            y,
            likelihood=likelihood,
            kernel=self.kernel,
            num_inducing=self.num_inducing,
            num_starts=self.num_starts,
            time_budget=self.time_budget,
            standardize=standardize,
            generator=torch.Generator().manual_seed(seed),
        )
        return result

    def _remember(self, result: FitResult) -> None:
        """Keep what was learned, once all of it is there."""
        self.result_, self._info, self._kernel = result, result.info, result.gp.kernel

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "result_")
        inputs: np.ndarray = validate_data(self, X, dtype=np.float64, reset=False)
        return inputs

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
