"""Joint Gaussians of functions at inputs, with what their moments magnify: the algebra of the dense references."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean
from numpy.typing import NDArray
from tests.support.high_precision import (
    cholesky,
    in_digits,
    inverse,
    kernel_condition,
    kernel_matrix,
    solve,
    square_root,
)
from torch import Tensor

from streamgp.conditioning import SparseGP

__all__ = [
    "DenseFeatures",
    "Joint",
    "apply",
    "belief_joint",
    "condition_joint",
    "features_of",
    "join_inputs",
    "precise_prior",
    "prior_joint",
    "sparse_joint",
    "to_array",
    "transpose",
]

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class Joint:
    """The joint distribution of a Gaussian process at inputs, and what its moments magnify."""

    mean: Array
    covariance: Array
    mean_condition: Array
    covariance_condition: Array

    def part(self, rows: slice) -> "Joint":
        """The distribution at some of the inputs."""
        return Joint(
            self.mean[..., rows],
            self.covariance[..., rows, rows],
            self.mean_condition[..., rows],
            self.covariance_condition[..., rows, rows],
        )


@final
@dataclass(frozen=True)
class DenseFeatures:
    r"""Features $\phi(x) = L^{-1} k(Z, x)$ at inputs, with $L L^\top = k(Z, Z) + jI$, and what they magnify.

    To first order, a change $\delta K$ of the kernel matrix changes $L$ by $L$ times the lower half of
    $L^{-1} \delta K L^{-\top}$, and the features by as much in the other direction.
    """

    prior: Joint
    values: Array
    condition: Array
    half: Array


def prior_joint(kernel: Kernel, mean: Mean, inputs: Array) -> Joint:
    """The prior at inputs."""
    kernel, mean = (deepcopy(module).double() for module in (kernel, mean))
    X = torch.from_numpy(inputs)
    mu, K = to_array(mean(X)), to_array(kernel(X).to_dense())
    spread = square_root(_diagonal(K))
    # A relative error of the distance moves a stationary kernel by a share of its height, not of its value.
    return Joint(mu, K, np.abs(mu), _outer(spread, spread))


def precise_prior(kernel: Kernel, mean: Mean, inputs: Array, rounding: float) -> Joint:
    """The prior at inputs in sixty digits; its condition is relative to the rounding of a dtype."""
    X = in_digits(inputs)
    K = kernel_matrix(kernel, X)
    mu = in_digits(np.zeros(len(inputs)))
    if isinstance(mean, ConstantMean):
        mu = mu + in_digits(to_array(mean.constant))
    condition = in_digits(kernel_condition(kernel, inputs, rounding))
    return Joint(mu, K, np.abs(mu), condition)


def features_of(joint: Joint, m: int, jitter: Any) -> DenseFeatures:
    """The features of all inputs after the first `m`, which are the inducing points."""
    size = joint.covariance_condition
    L = cholesky(joint.covariance[..., :m, :m] + jitter * np.eye(m))
    backward = np.abs(inverse(L))
    half = np.tril(backward @ size[..., :m, :m] @ transpose(backward)) + backward @ np.abs(L)
    phi = solve(L, joint.covariance[..., :m, m:])
    condition = half @ np.abs(phi) + backward @ size[..., :m, m:]
    return DenseFeatures(joint.part(slice(m, None)), phi, condition, half)


def sparse_joint(gp: SparseGP, inputs: Array, *, is_derived: bool = False) -> Joint:
    """The distribution of a sparse GP whose belief was given, or else derived from observations."""
    if not gp.inducing_points.shape[-2]:
        return belief_joint(
            _linear_features(gp, inputs),
            to_array(gp.whitened_mean),
            S := to_array(gp.whitened_covariance),
            np.zeros_like(S),
            np.zeros_like(S[..., 0]),
        )
    Z = to_array(gp.inducing_points)
    batch = np.broadcast_shapes(Z.shape[:-2], inputs.shape[:-2])
    both = np.concatenate([np.broadcast_to(part, (*batch, *part.shape[-2:])) for part in (Z, inputs)], axis=-2)
    features = features_of(prior_joint(gp.kernel, gp.mean, both), Z.shape[-2], gp.process.jitter)
    m, S = to_array(gp.whitened_mean), to_array(gp.whitened_covariance)
    if not is_derived:
        return belief_joint(features, m, S, np.zeros_like(S), np.zeros_like(m))
    inverse_S = inverse(S)
    precision, pull = np.abs(inverse_S - np.eye(S.shape[-1])), np.abs(apply(inverse_S, m))
    half = features.half @ precision
    return belief_joint(features, m, S, half + transpose(half) + precision, apply(features.half, pull) + pull)


def _linear_features(gp: SparseGP, inputs: Array) -> DenseFeatures:
    """The features of linear functions with a constant, as `random_feature_gp` draws them, by their definition."""
    kernel: Any = gp.kernel
    linear, constant = kernel.kernels
    scale = to_array(linear.outputscale)[..., None, None] * to_array(linear.base_kernel.variance)
    offset = np.broadcast_to(to_array(constant.constant)[..., None], (*inputs.shape[:-1], 1))
    phi = transpose(square_root(np.concatenate([scale + 0 * inputs, offset], axis=-1)))
    phi = phi * transpose(np.concatenate([inputs, np.ones_like(offset)], axis=-1))
    return DenseFeatures(prior_joint(gp.kernel, gp.mean, inputs), phi, np.abs(phi), np.zeros_like(phi @ transpose(phi)))


def belief_joint(
    features: DenseFeatures, m: Array, S: Array, precision_condition: Array, pull_condition: Array
) -> Joint:
    r"""The distribution that follows from a whitened belief $\mathcal N(\bar m, \bar S)$.

    The last two arguments are what the precision $\Lambda = \bar S^{-1} - I$ and the precision-weighted mean magnify:
    zero for a belief that was given, and not derived.
    """
    prior, phi, size = features.prior, features.values, np.abs(features.values)
    eye = np.eye(S.shape[-1])
    S_condition = np.abs(S) @ precision_condition @ np.abs(S)
    m_condition = apply(np.abs(S), pull_condition + apply(precision_condition, np.abs(m)))
    moved = transpose(features.condition) @ np.abs((eye - S) @ phi)
    return Joint(
        prior.mean + apply(transpose(phi), m),
        prior.covariance - transpose(phi) @ (eye - S) @ phi,
        prior.mean_condition
        + apply(transpose(features.condition), np.abs(m))
        + apply(transpose(size), np.abs(m) + m_condition),
        prior.covariance_condition
        + moved
        + transpose(moved)
        + transpose(size) @ (eye + np.abs(S) + S_condition) @ size,
    )


def condition_joint(joint: Joint, y: Array, noise: Array) -> Joint:
    """Condition on observations at the last inputs; changes pass through $[I, -G]$, with the gain $G$."""
    n = y.shape[-1]
    before = joint.part(slice(0, joint.mean.shape[-1] - n))
    if not n:
        return before
    cross, A = joint.covariance[..., -n:, :-n], joint.covariance[..., -n:, -n:] + noise
    gain = transpose(solve(A, cross))
    residual = y - joint.mean[..., -n:]
    alpha = solve(A, residual[..., None])[..., 0]
    spread, size = square_root(_diagonal(A)), np.abs(gain)
    corner = joint.covariance_condition[..., -n:, -n:] + _outer(spread, spread)
    edge = joint.covariance_condition[..., :-n, -n:]
    through = edge + size @ corner
    moved = apply(size, joint.mean_condition[..., -n:] + np.abs(y)) + apply(through, np.abs(alpha))
    return Joint(
        before.mean + apply(gain, residual),
        before.covariance - gain @ cross,
        before.mean_condition + moved,
        before.covariance_condition + size @ transpose(edge) + through @ transpose(size),
    )


def join_inputs(*inputs: Tensor) -> Array:
    """All inputs, one after the other."""
    batch = np.broadcast_shapes(*(part.shape[:-2] for part in inputs))
    return np.concatenate([to_array(part.expand(*batch, *part.shape[-2:])) for part in inputs], axis=-2)


def transpose(matrix: Array) -> Array:
    """The last two axes exchanged."""
    return np.swapaxes(matrix, -1, -2)


def apply(matrix: Array, vector: Array) -> Array:
    """Matrix times vector."""
    return (matrix @ vector[..., None])[..., 0]


def _outer(one: Array, other: Array) -> Array:
    return one[..., :, None] * other[..., None, :]


def _diagonal(matrix: Array) -> Array:
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def to_array(tensor: Tensor) -> Array:
    """Numbers of a tensor in double precision."""
    return tensor.detach().double().cpu().numpy()
