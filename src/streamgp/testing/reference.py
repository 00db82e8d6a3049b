"""Dense references in double precision: textbook algebra on whole matrices, for small problems without leading axes.

Nothing here shares code with the library. Kernels are evaluated by GPyTorch, systems are solved by NumPy.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from numpy.typing import NDArray
from torch import Tensor

from streamgp.conditioning import SparseGP

__all__ = ["Moments", "condition_dense", "condition_pseudo_data", "exact_gp", "predict_dense", "sgpr"]

Array = NDArray[np.float64]


class Moments(NamedTuple):
    """Mean and covariance at the test inputs."""

    mean: Tensor
    covariance: Tensor


def predict_dense(gp: SparseGP, W: Tensor) -> Moments:
    """The sparse posterior by its definition, integrating over the inducing values."""
    mean, covariance = _sparse_moments(gp)
    return _moments(mean(_array(W)), covariance(_array(W), _array(W)))


def condition_dense(gp: SparseGP, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> Moments:
    """Gaussian conditioning of the joint distribution of observations and test values."""
    mean, covariance = _sparse_moments(gp)
    return _gaussian(mean, covariance, _array(X), _array(y), _array(noise_covariance), _array(W))


def condition_pseudo_data(gp: SparseGP, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> Moments:
    r"""The paper's route: an exact GP on pseudo-data at the inducing points and the new observations.

    $\hat\Sigma = (S^{-1} - K^{-1})^{-1}$ and $\hat y = \mu(Z) + \hat\Sigma S^{-1} (m - \mu(Z))$, so it needs a
    belief that is narrower than the prior in every direction.
    """
    Z, K, m, S = _unwhitened(gp)
    prior_mean, prior_covariance = _prior(gp.kernel, gp.mean)
    noise_hat = np.linalg.inv(np.linalg.inv(S) - np.linalg.inv(K))
    y_hat = prior_mean(Z) + noise_hat @ np.linalg.solve(S, m)
    inputs = np.concatenate([Z, _array(X)])
    noise = np.block([[noise_hat, np.zeros((len(Z), len(X)))], [np.zeros((len(X), len(Z))), _array(noise_covariance)]])
    # The jitter on K belongs to the inducing values, so it is part of their prior here too.
    noise[: len(Z), : len(Z)] += K - prior_covariance(Z, Z)
    return _gaussian(prior_mean, prior_covariance, inputs, np.concatenate([y_hat, _array(y)]), noise, _array(W))


def exact_gp(kernel: Kernel, mean: Mean, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor) -> Moments:
    """Exact GP regression."""
    return _gaussian(*_prior(kernel, mean), _array(X), _array(y), _array(noise_covariance), _array(W))


def sgpr(
    kernel: Kernel, mean: Mean, Z: Tensor, X: Tensor, y: Tensor, noise_covariance: Tensor, W: Tensor, *, jitter: float
) -> Moments:
    r"""Titsias' sparse regression, with $C = K_{zx} \Sigma^{-1} K_{xz}$: mean $K_{wz} (K + C)^{-1} c$."""
    mu, k = _prior(kernel, mean)
    z, x, w = _array(Z), _array(X), _array(W)
    K = k(z, z) + jitter * np.eye(len(z))
    weighted = np.linalg.solve(_array(noise_covariance), k(x, z))
    C, c = k(z, x) @ weighted, weighted.T @ (_array(y) - mu(x))
    covariance = k(w, w) - k(w, z) @ (np.linalg.solve(K, k(z, w)) - np.linalg.solve(K + C, k(z, w)))
    return _moments(mu(w) + k(w, z) @ np.linalg.solve(K + C, c), covariance)


def _gaussian(
    mean: Callable[[Array], Array],
    covariance: Callable[[Array, Array], Array],
    X: Array,
    y: Array,
    noise: Array,
    W: Array,
) -> Moments:
    gain = np.linalg.solve(covariance(X, X) + noise, covariance(X, W)).T if len(X) else np.zeros((len(W), 0))
    return _moments(mean(W) + gain @ (y - mean(X)), covariance(W, W) - gain @ covariance(X, W))


def _sparse_moments(gp: SparseGP) -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    Z, K, m, S = _unwhitened(gp)
    prior_mean, k = _prior(gp.kernel, gp.mean)
    middle = np.linalg.inv(K) - np.linalg.solve(K, np.linalg.solve(K, S).T)

    def mean(X: Array) -> Array:
        return prior_mean(X) + k(X, Z) @ np.linalg.solve(K, m)

    def covariance(X: Array, Y: Array) -> Array:
        return k(X, Y) - k(X, Z) @ middle @ k(Z, Y)

    return mean, covariance


def _unwhitened(gp: SparseGP) -> tuple[Array, Array, Array, Array]:
    Z = _array(gp.inducing_points)
    K = _prior(gp.kernel, gp.mean)[1](Z, Z) + gp.process.jitter * np.eye(len(Z))
    L = np.linalg.cholesky(K)
    return Z, K, L @ _array(gp.whitened_mean), L @ _array(gp.whitened_covariance) @ L.T


def _prior(kernel: Kernel, mean: Mean) -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    kernel_64, mean_64 = (deepcopy(module).double() for module in (kernel, mean))

    def prior_mean(X: Array) -> Array:
        return _array(mean_64(torch.from_numpy(X)))

    def covariance(X: Array, Y: Array) -> Array:
        if not len(X) or not len(Y):
            return np.zeros((len(X), len(Y)))
        return _array(kernel_64(torch.from_numpy(X), torch.from_numpy(Y)).to_dense())

    return prior_mean, covariance


def _array(tensor: Tensor) -> Array:
    return tensor.detach().double().cpu().numpy()


def _moments(mean: Array, covariance: Array) -> Moments:
    return Moments(torch.from_numpy(mean), torch.from_numpy(covariance))
