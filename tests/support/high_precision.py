"""Arithmetic of arrays in any precision: NumPy's floats, or numbers of mpmath in arrays of objects.

Enough linear algebra to run the references of `tests.support.reference` in fifty digits, and all kernels that can be
saved, by their formulas. Nothing here shares code with the library or with GPyTorch.
"""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from gpytorch import kernels
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["cholesky", "in_digits", "inverse", "kernel_condition", "kernel_matrix", "solve", "square_root", "to_float"]

Array = NDArray[Any]

_DIGITS = 60
mpmath.mp.dps = _DIGITS


def in_digits(values: Array) -> Array:
    """Convert numbers to objects of mpmath."""
    digits = np.frompyfunc(mpmath.mpf, 1, 1)(values) if values.size else values
    return np.asarray(digits, dtype=object)  # also of a single number


def to_float(values: Array) -> Array:
    """Round to double precision."""
    return values.astype(np.float64)


def square_root(values: Array) -> Array:
    """The square root of each number."""
    return _elementwise(mpmath.sqrt, np.sqrt, values)


def cholesky(A: Array) -> Array:
    """The lower factor of positive definite matrices."""
    if A.dtype != object:
        return np.linalg.cholesky(A)
    n = len(A)
    L = np.full((n, n), mpmath.mpf(0), dtype=object)
    for j in range(n):
        pivot = A[j, j] - L[j, :j] @ L[j, :j] if j else A[j, j]
        if pivot <= 0:
            raise np.linalg.LinAlgError(f"not positive definite: pivot {j} is {mpmath.nstr(pivot)}")
        L[j, j] = mpmath.sqrt(pivot)
        for i in range(j + 1, n):
            L[i, j] = ((A[i, j] - L[i, :j] @ L[j, :j]) if j else A[i, j]) / L[j, j]
    return L


def inverse(A: Array) -> Array:
    """The inverse of matrices that are lower triangular, or else positive definite."""
    if A.dtype != object:
        return np.linalg.inv(A)
    eye = in_digits(np.eye(len(A)))
    return solve(A, eye)


def solve(A: Array, B: Array) -> Array:
    """Solve with matrices that are lower triangular, or else positive definite."""
    if A.dtype != object:
        return np.linalg.solve(A, B)
    if not np.triu(A, 1).any():
        return _solve_lower(A, B)
    L = cholesky(A)
    # With rows and columns in reverse, the transposed factor is lower triangular again.
    return _solve_lower(L.T[::-1, ::-1], _solve_lower(L, B)[::-1])[::-1]


def kernel_matrix(kernel: Any, X: Array) -> Array:
    """Evaluate a GPyTorch kernel without leading axes between all rows, by its formula, with the precision of `X`."""
    if kernel.active_dims is not None:
        X = X[:, kernel.active_dims.numpy()]
    name = type(kernel).__name__
    if name == "ScaleKernel":
        return _values(kernel.outputscale, X) * kernel_matrix(kernel.base_kernel, X)
    if name in ("AdditiveKernel", "ProductKernel"):
        parts = [kernel_matrix(part, X) for part in kernel.kernels]
        total = parts[0]
        for part in parts[1:]:
            total = total + part if name == "AdditiveKernel" else total * part
        return total
    return _FORMULAS[name](kernel, X)


def _squared_exponential(kernel: kernels.RBFKernel, X: Array) -> Array:
    return _exp(-_squared_distance(kernel, X) / 2)


def _matern(kernel: kernels.MaternKernel, X: Array) -> Array:
    r = square_root(int(2 * kernel.nu) * _squared_distance(kernel, X))
    polynomial = {0.5: 1 + 0 * r, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[kernel.nu]
    return polynomial * _exp(-r)


def _rational_quadratic(kernel: kernels.RQKernel, X: Array) -> Array:
    alpha = _values(kernel.alpha, X)
    return _exp(-alpha * _log(1 + _squared_distance(kernel, X) / (2 * alpha)))


def _periodic(kernel: kernels.PeriodicKernel, X: Array) -> Array:
    angle = _differences(X) * _pi(X) / _values(kernel.period_length, X)
    return _exp((-2 * _sin(angle) ** 2 / _values(kernel.lengthscale, X)).sum(-1))


def _cosine(kernel: kernels.CosineKernel, X: Array) -> Array:
    return _cos(square_root((_differences(X) ** 2).sum(-1)) * _pi(X) / _values(kernel.period_length, X))


def _linear(kernel: kernels.LinearKernel, X: Array) -> Array:
    return (X * _values(kernel.variance, X)) @ X.T


def _polynomial(kernel: kernels.PolynomialKernel, X: Array) -> Array:
    return (X @ X.T + _values(kernel.offset, X).reshape(1, 1)) ** int(kernel.power)


def _constant(kernel: kernels.ConstantKernel, X: Array) -> Array:
    return _values(kernel.constant, X).reshape(1, 1) + 0 * (X @ X.T)


def _spectral_mixture(kernel: kernels.SpectralMixtureKernel, X: Array) -> Array:
    tau = _differences(X)
    weights, scales, means = (
        _values(values, X).reshape(kernel.num_mixtures, -1)
        for values in (kernel.mixture_weights, kernel.mixture_scales, kernel.mixture_means)
    )
    pi = _pi(X)
    total = np.zeros_like(tau)
    for weight, scale, mean in zip(weights, scales, means, strict=True):
        total = total + weight * _exp(-2 * (pi * tau * scale) ** 2) * _cos(2 * pi * tau * mean)
    return np.asarray(total).prod(-1)


_FORMULAS: dict[str, Callable[[Any, Array], Array]] = {
    "RBFKernel": _squared_exponential,
    "MaternKernel": _matern,
    "RQKernel": _rational_quadratic,
    "PeriodicKernel": _periodic,
    "CosineKernel": _cosine,
    "LinearKernel": _linear,
    "PolynomialKernel": _polynomial,
    "ConstantKernel": _constant,
    "SpectralMixtureKernel": _spectral_mixture,
}


def _solve_lower(L: Array, B: Array) -> Array:
    out = B.copy()
    for i in range(len(L)):
        out[i] = (B[i] - L[i, :i] @ out[:i] if i else B[i]) / L[i, i]
    return out


def _differences(X: Array) -> Array:
    return X[:, None, :] - X[None, :, :]


def _squared_distance(kernel: Any, X: Array) -> Array:
    return ((_differences(X) / _values(kernel.lengthscale, X)) ** 2).sum(-1)


def _values(values: Tensor, like: Array) -> Array:
    array = values.detach().double().cpu().numpy()
    return in_digits(array) if like.dtype == object else array


def _elementwise(precise: Callable[[Any], Any], ufunc: Callable[[Array], Array], values: Array) -> Array:
    return np.asarray(np.frompyfunc(precise, 1, 1)(values), dtype=object) if values.dtype == object else ufunc(values)


def _exp(values: Array) -> Array:
    return _elementwise(mpmath.exp, np.exp, values)


def _log(values: Array) -> Array:
    return _elementwise(mpmath.log, np.log, values)


def _sin(values: Array) -> Array:
    return _elementwise(mpmath.sin, np.sin, values)


def _cos(values: Array) -> Array:
    return _elementwise(mpmath.cos, np.cos, values)


def _pi(like: Array) -> Any:
    return mpmath.mpf(mpmath.pi) if like.dtype == object else np.pi


def kernel_condition(kernel: Any, X: Array, rounding: float, *, is_direct: bool = True) -> Array:
    r"""Bound the error of each entry of a kernel matrix, in units of rounding, if its inputs are exact.

    Differences of inputs are exact where inputs are close, so that the matrix of a stationary kernel is off by a few
    units of its height, wherever its inputs are. GPyTorch, which evaluates all but the scaled stationary ones, expands
    squares instead, and loses as many digits as the square of the largest distance has.

    Args:
        kernel: A GPyTorch kernel.
        X: All inputs, in double precision.
        rounding: That of the dtype.
        is_direct: True if differences are taken before they are scaled and squared.
    """
    if kernel.active_dims is not None:
        X = X[:, kernel.active_dims.numpy()]
        is_direct = False
    name = type(kernel).__name__
    if name == "ScaleKernel":
        inner = kernel_condition(kernel.base_kernel, X, rounding, is_direct=is_direct)
        return _values(kernel.outputscale, X) * (inner + np.abs(kernel_matrix(kernel.base_kernel, X)))
    if name in ("AdditiveKernel", "ProductKernel"):
        pairs = [
            (np.abs(kernel_matrix(part, X)), kernel_condition(part, X, rounding, is_direct=False))
            for part in kernel.kernels
        ]
        value, condition = pairs[0]
        for other, other_condition in pairs[1:]:
            if name == "AdditiveKernel":
                value, condition = value + other, condition + other_condition + other
            else:
                value, condition = value * other, value * other_condition + condition * other + value * other
        return condition
    if name == "LinearKernel":
        return (np.abs(X) * _values(kernel.variance, X)) @ np.abs(X.T)
    if name == "PolynomialKernel":
        return int(kernel.power) * (np.abs(X) @ np.abs(X.T) + _values(kernel.offset, X)) ** int(kernel.power)
    if name == "ConstantKernel":
        return _constant(kernel, X)
    return np.full((len(X), len(X)), _largest_slope(kernel, X, rounding, is_direct=is_direct))


def _largest_slope(kernel: Any, X: Array, rounding: float, *, is_direct: bool) -> float:
    """Bound the error of any value of a stationary kernel of height one, in units of rounding."""
    name = type(kernel).__name__
    if name == "SpectralMixtureKernel":
        frequency = _values(kernel.mixture_scales, X).max() + _values(kernel.mixture_means, X).max()
        return float(_values(kernel.mixture_weights, X).sum() * (1 + (7 * np.abs(X).max() * frequency) ** 2))
    if name in ("PeriodicKernel", "CosineKernel"):
        distance = float((np.ptp(X, axis=0) / _values(kernel.period_length, X).min()).max()) * np.pi * X.shape[-1]
        steepness = 1 / float(_values(kernel.lengthscale, X).min()) if name == "PeriodicKernel" else 1.0
        return 1 + 4 * (steepness + 1) * max(distance, distance**2)
    if is_direct and name in ("RBFKernel", "MaternKernel"):
        return 1.0
    distance = float(np.sqrt(((np.ptp(X, axis=0) / _values(kernel.lengthscale, X).reshape(-1)) ** 2).sum()))
    # The square root of a rounded square has half the digits.
    return 1 + max(distance, distance**2) + (distance / np.sqrt(rounding) if getattr(kernel, "nu", 1.5) < 1 else 0.0)
