"""The collapsed bound of the kernel that streams have by default, with its gradient, in NumPy.

What a stream learns its hyperparameters from is so little data that modules, constraints and graphs of torch take
several times as long as the arithmetic.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import MaternKernel, ScaleKernel
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.errors import NumericalError
from streamgp.training.parameters import Space

__all__ = ["PlainBound", "is_plain"]

_NAMES = ("kernel.raw_outputscale", "kernel.base_kernel.raw_lengthscale", "likelihood.noise_variance")
_POINTS = "inducing_points"
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Logarithms of hyperparameters up to which nothing overflows; a line search may try others.
_MOST_LOG = 100.0


def is_plain(space: Space) -> bool:
    """Whether a scaled Matérn-5/2, a noise variance and perhaps points are learned, without priors of their own."""
    kernel: Any = space.base.kernel
    if (
        space.names not in (_NAMES, (*_NAMES, _POINTS))
        or type(kernel) is not ScaleKernel
        or type(kernel.base_kernel) is not MaternKernel
    ):
        return False
    base = kernel.base_kernel
    constraints = kernel.raw_outputscale_constraint, base.raw_lengthscale_constraint
    return (
        base.nu == 2.5
        and base.ard_num_dims == space.base.inducing_points.shape[-1]
        and base.active_dims is kernel.active_dims is None
        and not kernel.batch_shape
        and all(type(each) is Positive for each in constraints)
        and not any(True for _ in kernel.named_priors())
    )


@final
@dataclass(frozen=True, eq=False)
class PlainBound:
    r"""Titsias' bound, summed over targets, and the `"dim_scaled"` priors, as `gaussian_bound` and `read_priors` say.

    A function of the logarithms of outputscale, lengthscales and noise variance, in this order; and then, if these are
    learned, of the inducing points.

    Attributes:
        inputs: $X$ `(n, d)`.
        targets: $Y$ `(c, n)`.
        points: $Z$ `(m, d)`.
        variance: Of the targets.
        jitter: On the diagonal of $K_{zz}$, in units of the outputscale.
        unit: Of the coordinates of points `(d,)`; None where these stay.
    """

    inputs: np.ndarray
    targets: np.ndarray
    points: np.ndarray
    variance: float
    jitter: float
    unit: np.ndarray | None = None

    @classmethod
    def of(cls, space: Space, X: Tensor, Y: Tensor, variance: float, jitter: float) -> "PlainBound":
        """In the coordinates of a space that `is_plain`."""
        last, unit = space.coordinates[-1], None
        if last.name == _POINTS:
            unit = last.to_value(torch.ones_like(last.start))[0].numpy()
        return cls(X.numpy(), Y.numpy(), space.base.inducing_points.numpy(), variance, jitter, unit)

    def __call__(self, x: Tensor) -> Tensor:
        """The bound at a vector, differentiable once."""
        fused: Any = _Evaluation  # torch leaves `apply` untyped
        value: Tensor = fused.apply(x, self)
        return value

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The bound, and its gradient in all coordinates."""
        means, deviations = self._priors
        x, rest = x[: len(means)], x[len(means) :]
        points = self.points if self.unit is None else rest.reshape(self.points.shape) * self.unit
        value, gradient, by_points = self._bound(x, points)
        z = (x - means) / deviations
        value -= float((x + 0.5 * z * z + np.log(deviations)).sum()) + len(x) * _LOG_ROOT_TWO_PI
        gradient -= 1.0 + z / deviations
        return value, gradient if self.unit is None else np.concatenate([gradient, (by_points * self.unit).ravel()])

    @cached_property
    def _priors(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and deviations of the logarithms."""
        d, log_variance = self.inputs.shape[-1], math.log(self.variance)
        lengthscale = math.sqrt(2.0) + 0.5 * math.log(d)
        means = np.array([1.0 + log_variance, *[lengthscale] * d, -4.0 + log_variance])
        return means, np.array([1.0, *[math.sqrt(3.0)] * d, 1.0])

    def _bound(self, x: np.ndarray, points: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Without the priors, with gradients by `x` and points; letters and formulas are those of `gaussian_bound`."""
        if not np.abs(x).max() < _MOST_LOG:
            raise NumericalError("A hyperparameter of the bound is beyond what float64 can hold. Take a shorter step.")
        values = np.exp(x)
        outputscale, noise = float(values[0]), float(values[-1])
        inverse = math.sqrt(5.0) / values[1:-1]
        X, Z = self.inputs * inverse, points * inverse
        Kzx, slope_x = _matern(cdist(Z, X), outputscale)
        Kzz, slope_z = _matern(cdist(Z, Z), outputscale)
        m, (c, n) = len(Z), self.targets.shape
        Kzz.reshape(-1)[:: m + 1] += self.jitter * outputscale
        root = math.sqrt(noise)
        L = _cholesky(Kzz)
        G = _solve(L, Kzx) / root
        r = self.targets / root
        A = G @ G.T
        A.reshape(-1)[:: m + 1] += 1.0
        L_A = _cholesky(A)
        a = _solve(L_A, _solve(L_A, G @ r.T), is_transposed=True).T
        w = r - a @ G
        slack = n * outputscale / noise - (float(np.trace(A)) - m)
        T = float((r * w).sum()) + c * (2.0 * float(np.log(np.diagonal(L_A)).sum()) + slack)
        value = -0.5 * (T + c * n * math.log(2.0 * math.pi * noise))

        A_inverse, _ = dpotri(L_A, lower=1)
        A_inverse = np.tril(A_inverse) + np.tril(A_inverse, -1).T
        eye = np.eye(m)
        left = _solve(L, np.concatenate([c * (A_inverse - eye), a.T], -1), is_transposed=True)
        # Derivatives of T by Kzx, and by Kzz.
        by_x = (left[:, :m] @ G - left[:, m:] @ w) * (2.0 / root)
        half = _solve(L, c * (A - 2.0 * eye + A_inverse) + a.T @ a, is_transposed=True)
        by_z = _solve(L, half.T, is_transposed=True)
        explained = float((by_x * Kzx).sum())
        by_outputscale = explained + float((by_z * Kzz).sum()) + c * n * outputscale / noise
        by_noise = -0.5 * explained - float((w * r).sum()) - c * n * outputscale / noise
        H_x, H_z = by_x * slope_x, by_z * slope_z
        pull_x, pull_z = _pull(H_x, Z, X), _pull(H_z, Z, Z)
        by_lengthscale = -_squares(H_x, pull_x, Z, X) - _squares(H_z, pull_z, Z, Z)
        gradient = np.concatenate([[by_outputscale], by_lengthscale, [by_noise + c * n]])
        by_points = (pull_x + pull_z + _pull(H_z.T, Z, Z)) * inverse
        return value, -0.5 * gradient, -0.5 * by_points


class _Evaluation(torch.autograd.Function):
    """The bound and its gradient, found together."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bound: PlainBound) -> Tensor:
        value, ctx.gradient = bound.value_and_gradient(x.numpy())
        return torch.tensor(value, dtype=torch.float64)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return g * torch.from_numpy(ctx.gradient), None


def _matern(s: np.ndarray, outputscale: float) -> tuple[np.ndarray, np.ndarray]:
    """The kernel at scaled distances, and its slope by them divided by them."""
    e = outputscale * np.exp(-s)
    t = e * (s + 1.0)
    e *= s
    e *= s * (1.0 / 3.0)
    e += t
    t *= -1.0 / 3.0
    return e, t


def _pull(H: np.ndarray, Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    r"""The sums $\sum_j H_{ij} (z_{ik} - x_{jk})$ for each point $i$ and column $k$."""
    return H.sum(1)[:, None] * Z - H @ X


def _squares(H: np.ndarray, pull: np.ndarray, Z: np.ndarray, X: np.ndarray) -> np.ndarray:
    r"""The sums $\sum_{ij} H_{ij} (z_{ik} - x_{jk})^2$ for each column $k$, with those of `_pull`."""
    return 2.0 * (Z * pull).sum(0) - H.sum(1) @ (Z * Z) + H.sum(0) @ (X * X)


def _cholesky(K: np.ndarray) -> np.ndarray:
    L, info = dpotrf(K, lower=1, clean=1)
    if info:
        raise NumericalError("A matrix of the bound is not positive definite. Take fewer inducing points.")
    return L


def _solve(L: np.ndarray, B: np.ndarray, *, is_transposed: bool = False) -> np.ndarray:
    return dtrtrs(L, B, lower=1, trans=int(is_transposed))[0]
