"""Dense references in double precision: textbook algebra on whole matrices, for small problems.

Nothing here shares code with the library. Kernels are evaluated by GPyTorch, systems are solved by NumPy. Leading axes
broadcast as in NumPy.

Each reference comes with its condition: how much an error of one unit, relative, in every entry of every kernel
matrix, and in every step that follows, can move each number of the result, to first order. Times the rounding of a
dtype that bounds the difference between two careful ways to compute it, on any processor.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from tests.support.dense_joint import (
    Joint,
    apply,
    belief_joint,
    condition_joint,
    features_of,
    join_inputs,
    precise_prior,
    prior_joint,
    sparse_joint,
    to_array,
    transpose,
)
from tests.support.high_precision import cholesky, in_digits, inverse, to_float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.gp import Prediction

__all__ = [
    "ReferenceMoments",
    "assert_predicts",
    "assert_within",
    "condition_dense",
    "condition_precisely",
    "condition_pseudo_data",
    "exact_gp",
    "predict_dense",
    "sgpr",
]

# Of rounding, in each entry of a kernel matrix and in each later step: exp and sqrt are off by about one unit, sums of
# a few terms by two. The conditions add up sizes, while true errors cancel, so that this leaves room for longer sums.
_NUM_UNITS = 4.0


class ReferenceMoments(NamedTuple):
    """Mean and covariance at the test inputs, and how much each of their entries magnifies relative errors."""

    mean: Tensor
    covariance: Tensor
    mean_condition: Tensor
    covariance_condition: Tensor

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self.covariance.diagonal(dim1=-2, dim2=-1)

    def limits(self, dtype: torch.dtype) -> "ReferenceMoments":
        """Return bounds on the errors of mean and covariance in a dtype: their conditions times its rounding."""
        unit = _NUM_UNITS * torch.finfo(dtype).eps
        return self._replace(mean=unit * self.mean_condition, covariance=unit * self.covariance_condition)


def assert_predicts(prediction: Prediction, expected: ReferenceMoments, *, offset: Tensor | float = 0.0) -> None:
    """Assert that a prediction agrees with a reference, entry by entry, within the rounding of its dtype.

    Args:
        prediction: The prediction, with the leading axes of the reference.
        expected: The reference.
        offset: Difference allowed beyond rounding, where the two differ by a known amount in exact arithmetic.
    """
    limits = expected.limits(prediction.mean.dtype)
    for name in ("mean", "variance", "covariance"):
        error = (getattr(prediction, name).double() - getattr(expected, name)).abs()
        assert_within(error, getattr(limits, name) + offset, name)


def assert_within(error: Tensor, limit: Tensor, name: str) -> None:
    """Assert that errors are within their limits, entry by entry."""
    assert (error <= limit).all(), (
        f"{name} differs by {error.max():.2e}, {(error / limit).max():.2f} times what its condition allows, "
        f"{limit.max():.2e} at most"
    )


def predict_dense(gp: SparseGP, W: Tensor, *, is_derived: bool = False) -> ReferenceMoments:
    """The sparse posterior by its definition, integrating over the inducing values.

    Args:
        gp: The sparse GP.
        W: Test inputs.
        is_derived: True if its belief was derived from observations, and bears the errors of that.
    """
    return _moments(sparse_joint(gp, to_array(W), is_derived=is_derived))


def condition_dense(gp: SparseGP, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> ReferenceMoments:
    """Gaussian conditioning of the joint distribution of observations and test values."""
    return _moments(condition_joint(sparse_joint(gp, join_inputs(W, X)), to_array(y), to_array(noise_covariance)))


def condition_pseudo_data(gp: SparseGP, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> ReferenceMoments:
    r"""The paper's route: an exact GP on pseudo-data at the inducing points and the new observations.

    $\hat\Sigma = (S^{-1} - K^{-1})^{-1}$ and $\hat y = \mu(Z) + \hat\Sigma S^{-1} (m - \mu(Z))$, so it needs a
    belief that is narrower than the prior in every direction. Its inverses magnify errors by the condition numbers of
    both matrices.
    """
    m, n = gp.num_inducing, len(X)
    prior = prior_joint(gp.kernel, gp.mean, join_inputs(W, gp.inducing_points, X))
    at_points = slice(len(W), len(W) + m)
    jitter = gp.process.jitter * np.eye(m)
    K = prior.covariance[at_points, at_points] + jitter
    L = cholesky(K)
    mean, S = L @ to_array(gp.whitened_mean), L @ to_array(gp.whitened_covariance) @ L.T
    noise_hat = inverse(inverse(S) - inverse(K))
    y_hat = prior.mean[at_points] + noise_hat @ (inverse(S) @ mean)
    # The jitter on K belongs to the inducing values, so it is part of their prior here too.
    noise = np.block([[noise_hat + jitter, np.zeros((m, n))], [np.zeros((n, m)), to_array(noise_covariance)]])
    result = condition_joint(prior, np.concatenate([y_hat, to_array(y)]), noise)
    lost = float(np.linalg.cond(S) + np.linalg.cond(K))
    return _moments(
        replace(
            result,
            mean_condition=lost * result.mean_condition,
            covariance_condition=lost * result.covariance_condition,
        )
    )


def exact_gp(kernel: Kernel, mean: Mean, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> ReferenceMoments:
    """Exact GP regression."""
    return _moments(
        condition_joint(prior_joint(kernel, mean, join_inputs(W, X)), to_array(y), to_array(noise_covariance))
    )


def sgpr(
    kernel: Kernel, mean: Mean, Z: Tensor, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor, *, jitter: float
) -> ReferenceMoments:
    r"""Titsias' sparse regression: the belief $\bar S = (I + \phi \Sigma^{-1} \phi^\top)^{-1}$ of whitened values."""
    features = features_of(prior_joint(kernel, mean, join_inputs(Z, W, X)), Z.shape[-2], jitter)
    n = X.shape[-2]
    phi, phi_condition = features.values[..., -n:], features.condition[..., -n:]
    inverse_noise = inverse(to_array(noise_covariance))
    residual = to_array(y) - features.prior.mean[..., -n:]
    S = inverse(np.eye(phi.shape[-2]) + phi @ inverse_noise @ transpose(phi))
    half = phi_condition @ np.abs(inverse_noise @ transpose(phi))
    precision_condition = half + transpose(half) + np.abs(phi) @ np.abs(inverse_noise) @ np.abs(transpose(phi))
    pull_condition = apply(phi_condition, np.abs(apply(inverse_noise, residual)))
    size = np.abs(to_array(y)) + features.prior.mean_condition[..., -n:]
    pull_condition += apply(np.abs(phi) @ np.abs(inverse_noise), size)
    pull = apply(phi @ inverse_noise, residual)
    result = belief_joint(features, apply(S, pull), S, precision_condition, pull_condition)
    return _moments(result.part(slice(0, W.shape[-2])))


def condition_precisely(
    gp: SparseGP,
    X: Tensor,
    y: Tensor,
    noise_variance: Tensor,
    W: Tensor,
    *,
    mode: str = "condition",
    decay: float = 1.0,
) -> ReferenceMoments:
    """A sparse GP after observations, in sixty digits, without leading axes.

    Args:
        gp: The belief before, with the jitter that its factor needed.
        X: Inputs.
        y: Observed values.
        noise_variance: Their noise variances, with what the factorization added.
        W: Test inputs.
        mode: `"condition"`, or `"absorb"` for what is left when only the belief about the inducing points is updated.
        decay: Factor of the information in the belief before.
    """
    inputs = join_inputs(gp.inducing_points, W, X)
    prior = precise_prior(gp.kernel, gp.mean, inputs, torch.finfo(W.dtype).eps)
    features = features_of(prior, gp.num_inducing, in_digits(to_array(gp.process.total_jitter)))
    m, root = (in_digits(to_array(part)) for part in (gp.whitened_mean, gp.process.whitened_root))
    values, noise = in_digits(to_array(y)), in_digits(to_array(noise_variance))
    S = root @ root.T
    if mode == "condition" and decay == 1.0:
        joint = belief_joint(features, m, S, 0 * S, 0 * m)
        return _moments(condition_joint(joint, values, np.diag(noise)))
    num_tests, eye = len(W), in_digits(np.eye(len(S)))
    phi, phi_condition = features.values[:, num_tests:], features.condition[:, num_tests:]
    residual = values - features.prior.mean[num_tests:]
    precision, pull = decay * (inverse(S) - eye), decay * (inverse(S) @ m)
    size, weighted = np.abs(phi) / noise, phi / noise
    half = phi_condition @ size.T
    # The belief is held as a root, whose rounding its inverse magnifies.
    held = np.abs(inverse(S)) @ np.abs(root) @ np.abs(root.T) @ np.abs(inverse(S))
    precision_condition = decay * held + half + half.T + size @ np.abs(phi.T)
    pull_condition = decay * (held @ np.abs(m)) + (phi_condition / noise) @ np.abs(residual)
    pull_condition = pull_condition + size @ (np.abs(values) + features.prior.mean_condition[num_tests:])
    S_new = inverse(eye + precision + weighted @ phi.T)
    # The new mean is a step from the old one: it keeps the rounding of two products with it, and errors of the matrix.
    pull_condition = pull_condition + 2 * len(m) * np.abs(inverse(S_new)) @ np.abs(m)
    pull_condition = pull_condition + precision_condition @ (np.abs(S_new) @ np.abs(m))
    joint = belief_joint(features, S_new @ (pull + weighted @ residual), S_new, precision_condition, pull_condition)
    return _moments(joint.part(slice(0, num_tests)))


def _moments(joint: Joint) -> ReferenceMoments:
    return ReferenceMoments(*(torch.from_numpy(np.ascontiguousarray(to_float(part))) for part in vars(joint).values()))
