"""Dense references in double precision: textbook algebra on whole matrices, for small problems.

Nothing here shares code with the library. Kernels are evaluated by GPyTorch, systems are solved by NumPy. Leading axes
broadcast as in NumPy.

Each reference comes with its condition: how much an error of one unit, relative, in every entry of every kernel
matrix, and in every step that follows, can move each number of the result, to first order. Times the rounding of a
dtype that bounds the difference between two careful ways to compute it, on any processor.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean
from numpy.typing import NDArray
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.gp import Prediction
from streamgp.testing.high_precision import (
    cholesky,
    in_digits,
    inverse,
    kernel_condition,
    kernel_matrix,
    solve,
    square_root,
    to_float,
)

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

Array = NDArray[Any]

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
        """How far mean and covariance may be off in a dtype: their conditions times its rounding."""
        unit = _NUM_UNITS * torch.finfo(dtype).eps
        return self._replace(mean=unit * self.mean_condition, covariance=unit * self.covariance_condition)


def assert_predicts(prediction: Prediction, expected: ReferenceMoments, *, offset: Tensor | float = 0.0) -> None:
    """Assert that a prediction agrees with a reference, entry by entry, within the rounding of its dtype.

    Args:
        prediction: The prediction, with the leading axes of the reference.
        expected: The reference.
        offset: What is allowed beyond rounding, where the two differ by a known amount in exact arithmetic.
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
        is_derived: Whether its belief was derived from observations, and bears the errors of that.
    """
    return _moments(_sparse(gp, _array(W), is_derived=is_derived))


def condition_dense(gp: SparseGP, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> ReferenceMoments:
    """Gaussian conditioning of the joint distribution of observations and test values."""
    return _moments(_condition(_sparse(gp, _join(W, X)), _array(y), _array(noise_covariance)))


def condition_pseudo_data(gp: SparseGP, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> ReferenceMoments:
    r"""The paper's route: an exact GP on pseudo-data at the inducing points and the new observations.

    $\hat\Sigma = (S^{-1} - K^{-1})^{-1}$ and $\hat y = \mu(Z) + \hat\Sigma S^{-1} (m - \mu(Z))$, so it needs a
    belief that is narrower than the prior in every direction. Its inverses magnify errors by the condition numbers of
    both matrices.
    """
    m, n = gp.num_inducing, len(X)
    prior = _prior(gp.kernel, gp.mean, _join(W, gp.inducing_points, X))
    at_points = slice(len(W), len(W) + m)
    jitter = gp.process.jitter * np.eye(m)
    K = prior.covariance[at_points, at_points] + jitter
    L = cholesky(K)
    mean, S = L @ _array(gp.whitened_mean), L @ _array(gp.whitened_covariance) @ L.T
    noise_hat = inverse(inverse(S) - inverse(K))
    y_hat = prior.mean[at_points] + noise_hat @ (inverse(S) @ mean)
    # The jitter on K belongs to the inducing values, so it is part of their prior here too.
    noise = np.block([[noise_hat + jitter, np.zeros((m, n))], [np.zeros((n, m)), _array(noise_covariance)]])
    result = _condition(prior, np.concatenate([y_hat, _array(y)]), noise)
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
    return _moments(_condition(_prior(kernel, mean, _join(W, X)), _array(y), _array(noise_covariance)))


def sgpr(
    kernel: Kernel, mean: Mean, Z: Tensor, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor, *, jitter: float
) -> ReferenceMoments:
    r"""Titsias' sparse regression: the belief $\bar S = (I + \phi \Sigma^{-1} \phi^\top)^{-1}$ of whitened values."""
    features = _features(_prior(kernel, mean, _join(Z, W, X)), Z.shape[-2], jitter)
    n = X.shape[-2]
    phi, phi_condition = features.values[..., -n:], features.condition[..., -n:]
    inverse_noise = inverse(_array(noise_covariance))
    residual = _array(y) - features.prior.mean[..., -n:]
    S = inverse(np.eye(phi.shape[-2]) + phi @ inverse_noise @ _t(phi))
    half = phi_condition @ np.abs(inverse_noise @ _t(phi))
    precision_condition = half + _t(half) + np.abs(phi) @ np.abs(inverse_noise) @ np.abs(_t(phi))
    pull_condition = _apply(phi_condition, np.abs(_apply(inverse_noise, residual)))
    size = np.abs(_array(y)) + features.prior.mean_condition[..., -n:]
    pull_condition += _apply(np.abs(phi) @ np.abs(inverse_noise), size)
    pull = _apply(phi @ inverse_noise, residual)
    result = _belief(features, _apply(S, pull), S, precision_condition, pull_condition)
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
        decay: What the information in the belief is multiplied with before.
    """
    inputs = _join(gp.inducing_points, W, X)
    prior = _precise_prior(gp.kernel, gp.mean, inputs, torch.finfo(W.dtype).eps)
    features = _features(prior, gp.num_inducing, in_digits(_array(gp.process.total_jitter)))
    m, root = (in_digits(_array(part)) for part in (gp.whitened_mean, gp.process.whitened_root))
    values, noise = in_digits(_array(y)), in_digits(_array(noise_variance))
    S = root @ root.T
    if mode == "condition" and decay == 1.0:
        joint = _belief(features, m, S, 0 * S, 0 * m)
        return _moments(_condition(joint, values, np.diag(noise)))
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
    joint = _belief(features, S_new @ (pull + weighted @ residual), S_new, precision_condition, pull_condition)
    return _moments(joint.part(slice(0, num_tests)))


def _precise_prior(kernel: Kernel, mean: Mean, inputs: Array, rounding: float) -> "_Joint":
    X = in_digits(inputs)
    K = kernel_matrix(kernel, X)
    mu = in_digits(np.zeros(len(inputs)))
    if isinstance(mean, ConstantMean):
        mu = mu + in_digits(_array(mean.constant))
    condition = in_digits(kernel_condition(kernel, inputs, rounding))
    return _Joint(mu, K, np.abs(mu), condition)


@final
@dataclass(frozen=True)
class _Joint:
    """The joint distribution of a Gaussian process at inputs, and what its moments magnify."""

    mean: Array
    covariance: Array
    mean_condition: Array
    covariance_condition: Array

    def part(self, rows: slice) -> "_Joint":
        """The distribution at some of the inputs."""
        return _Joint(
            self.mean[..., rows],
            self.covariance[..., rows, rows],
            self.mean_condition[..., rows],
            self.covariance_condition[..., rows, rows],
        )


@final
@dataclass(frozen=True)
class _ReferenceFeatures:
    r"""Features $\phi(x) = L^{-1} k(Z, x)$ at inputs, with $L L^\top = k(Z, Z) + jI$, and what they magnify.

    To first order, a change $\delta K$ of the kernel matrix changes $L$ by $L$ times the lower half of
    $L^{-1} \delta K L^{-\top}$, and the features by as much in the other direction.
    """

    prior: _Joint
    values: Array
    condition: Array
    half: Array


def _prior(kernel: Kernel, mean: Mean, inputs: Array) -> _Joint:
    kernel, mean = (deepcopy(module).double() for module in (kernel, mean))
    X = torch.from_numpy(inputs)
    mu, K = _array(mean(X)), _array(kernel(X).to_dense())
    spread = square_root(_diagonal(K))
    # A relative error of the distance moves a stationary kernel by a share of its height, not of its value.
    return _Joint(mu, K, np.abs(mu), _outer(spread, spread))


def _features(joint: _Joint, m: int, jitter: Any) -> _ReferenceFeatures:
    """The features of all inputs after the first `m`, which are the inducing points."""
    size = joint.covariance_condition
    L = cholesky(joint.covariance[..., :m, :m] + jitter * np.eye(m))
    backward = np.abs(inverse(L))
    half = np.tril(backward @ size[..., :m, :m] @ _t(backward)) + backward @ np.abs(L)
    phi = solve(L, joint.covariance[..., :m, m:])
    condition = half @ np.abs(phi) + backward @ size[..., :m, m:]
    return _ReferenceFeatures(joint.part(slice(m, None)), phi, condition, half)


def _sparse(gp: SparseGP, inputs: Array, *, is_derived: bool = False) -> _Joint:
    """The distribution of a sparse GP whose belief was given, or else derived from observations."""
    if not gp.inducing_points.shape[-2]:
        return _belief(
            _linear_features(gp, inputs),
            _array(gp.whitened_mean),
            S := _array(gp.whitened_covariance),
            np.zeros_like(S),
            np.zeros_like(S[..., 0]),
        )
    Z = _array(gp.inducing_points)
    batch = np.broadcast_shapes(Z.shape[:-2], inputs.shape[:-2])
    both = np.concatenate([np.broadcast_to(part, (*batch, *part.shape[-2:])) for part in (Z, inputs)], axis=-2)
    features = _features(_prior(gp.kernel, gp.mean, both), Z.shape[-2], gp.process.jitter)
    m, S = _array(gp.whitened_mean), _array(gp.whitened_covariance)
    if not is_derived:
        return _belief(features, m, S, np.zeros_like(S), np.zeros_like(m))
    inverse_S = inverse(S)
    precision, pull = np.abs(inverse_S - np.eye(S.shape[-1])), np.abs(_apply(inverse_S, m))
    half = features.half @ precision
    return _belief(features, m, S, half + _t(half) + precision, _apply(features.half, pull) + pull)


def _linear_features(gp: SparseGP, inputs: Array) -> _ReferenceFeatures:
    """The features of linear functions with a constant, as `random_feature_gp` draws them, by their definition."""
    kernel: Any = gp.kernel
    linear, constant = kernel.kernels
    scale = _array(linear.outputscale)[..., None, None] * _array(linear.base_kernel.variance)
    offset = np.broadcast_to(_array(constant.constant)[..., None], (*inputs.shape[:-1], 1))
    phi = _t(square_root(np.concatenate([scale + 0 * inputs, offset], axis=-1)))
    phi = phi * _t(np.concatenate([inputs, np.ones_like(offset)], axis=-1))
    return _ReferenceFeatures(_prior(gp.kernel, gp.mean, inputs), phi, np.abs(phi), np.zeros_like(phi @ _t(phi)))


def _belief(
    features: _ReferenceFeatures, m: Array, S: Array, precision_condition: Array, pull_condition: Array
) -> _Joint:
    r"""The distribution that follows from a whitened belief $\mathcal N(\bar m, \bar S)$.

    The last two arguments are what the precision $\Lambda = \bar S^{-1} - I$ and the precision-weighted mean magnify:
    zero for a belief that was given, and not derived.
    """
    prior, phi, size = features.prior, features.values, np.abs(features.values)
    eye = np.eye(S.shape[-1])
    S_condition = np.abs(S) @ precision_condition @ np.abs(S)
    m_condition = _apply(np.abs(S), pull_condition + _apply(precision_condition, np.abs(m)))
    moved = _t(features.condition) @ np.abs((eye - S) @ phi)
    return _Joint(
        prior.mean + _apply(_t(phi), m),
        prior.covariance - _t(phi) @ (eye - S) @ phi,
        prior.mean_condition + _apply(_t(features.condition), np.abs(m)) + _apply(_t(size), np.abs(m) + m_condition),
        prior.covariance_condition + moved + _t(moved) + _t(size) @ (eye + np.abs(S) + S_condition) @ size,
    )


def _condition(joint: _Joint, y: Array, noise: Array) -> _Joint:
    """Condition on observations at the last inputs; changes pass through $[I, -G]$, with the gain $G$."""
    n = y.shape[-1]
    before = joint.part(slice(0, joint.mean.shape[-1] - n))
    if not n:
        return before
    cross, A = joint.covariance[..., -n:, :-n], joint.covariance[..., -n:, -n:] + noise
    gain = _t(solve(A, cross))
    residual = y - joint.mean[..., -n:]
    alpha = solve(A, residual[..., None])[..., 0]
    spread, size = square_root(_diagonal(A)), np.abs(gain)
    corner = joint.covariance_condition[..., -n:, -n:] + _outer(spread, spread)
    edge = joint.covariance_condition[..., :-n, -n:]
    through = edge + size @ corner
    moved = _apply(size, joint.mean_condition[..., -n:] + np.abs(y)) + _apply(through, np.abs(alpha))
    return _Joint(
        before.mean + _apply(gain, residual),
        before.covariance - gain @ cross,
        before.mean_condition + moved,
        before.covariance_condition + size @ _t(edge) + through @ _t(size),
    )


def _moments(joint: _Joint) -> ReferenceMoments:
    return ReferenceMoments(*(torch.from_numpy(np.ascontiguousarray(to_float(part))) for part in vars(joint).values()))


def _join(*inputs: Tensor) -> Array:
    """All inputs, one after the other."""
    batch = np.broadcast_shapes(*(part.shape[:-2] for part in inputs))
    return np.concatenate([_array(part.expand(*batch, *part.shape[-2:])) for part in inputs], axis=-2)


def _t(matrix: Array) -> Array:
    return np.swapaxes(matrix, -1, -2)


def _apply(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]


def _outer(one: Array, other: Array) -> Array:
    return one[..., :, None] * other[..., None, :]


def _diagonal(matrix: Array) -> Array:
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def _array(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()
