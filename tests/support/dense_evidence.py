"""Moments of rows of evidence by their definition: derivatives by differences in sixty digits, inverses spelled out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from streamgp.conditioning import SparseGP

__all__ = ["KERNELS", "DenseBelief", "Row", "dense_belief"]

# Weight, input, direction; no direction for a value.
Atom = tuple[float, Any, Any]
Row = list[Atom]
_STEP = mpmath.mpf(10) ** -18


def _squared(x: Sequence[Any], z: Sequence[Any], lengthscale: Sequence[float]) -> Any:
    return sum(((a - b) / mpmath.mpf(float(s))) ** 2 for a, b, s in zip(x, z, lengthscale, strict=True))


def _rbf(x: Any, z: Any, lengthscale: Any) -> Any:
    return mpmath.exp(-_squared(x, z, lengthscale) / 2)


def _matern(nu: int) -> Callable[..., Any]:
    def kernel(x: Any, z: Any, lengthscale: Any) -> Any:
        s = mpmath.sqrt(nu * _squared(x, z, lengthscale))
        polynomial = 1 + s if nu == 3 else 1 + s + s**2 / 3
        return polynomial * mpmath.exp(-s)

    return kernel


def _linear(x: Any, z: Any, variance: float) -> Any:
    return mpmath.mpf(variance) * sum(a * b for a, b in zip(x, z, strict=True))


# Functions of two inputs, lengthscales, the variance of a linear kernel and that of a constant.
KERNELS: dict[str, Callable[..., Any]] = {
    "rbf": lambda x, z, s, *_: _rbf(x, z, s),
    "matern 3/2": lambda x, z, s, *_: _matern(3)(x, z, s),
    "matern 5/2": lambda x, z, s, *_: _matern(5)(x, z, s),
    "rbf + linear": lambda x, z, s, a, _: _rbf(x, z, s) + _linear(x, z, a),
    "matern 5/2 x linear": lambda x, z, s, a, c: _matern(5)(x, z, s) * (_linear(x, z, a) + mpmath.mpf(c)),
}


def _moved(x: Any, v: Any, step: Any) -> list[Any]:
    shift = [0.0] * len(x) if v is None else v
    return [mpmath.mpf(float(a)) + step * mpmath.mpf(float(b)) for a, b in zip(x, shift, strict=True)]


def _atoms_covariance(kernel: Callable[[Any, Any], Any], first: Atom, second: Atom) -> Any:
    (_, x, v), (_, z, w) = first, second
    steps = [
        [(mpmath.mpf(1), 0)] if each is None else [(1 / (2 * _STEP), _STEP), (-1 / (2 * _STEP), -_STEP)]
        for each in (v, w)
    ]
    return sum(a * b * kernel(_moved(x, v, s), _moved(z, w, t)) for a, s in steps[0] for b, t in steps[1])


def covariance(kernel: Callable[[Any, Any], Any], first: list[Row], second: list[Row]) -> np.ndarray:
    """Covariance of rows of evidence."""
    with mpmath.workdps(60):
        values = [
            [
                float(
                    sum(mpmath.mpf(a[0]) * mpmath.mpf(b[0]) * _atoms_covariance(kernel, a, b) for a in one for b in two)
                )
                for two in second
            ]
            for one in first
        ]
    return np.array(values).reshape(len(first), len(second))


@dataclass(frozen=True)
class DenseBelief:
    """A sparse posterior by its definition, with a linear prior mean.

    Attributes:
        kernel: The kernel of two inputs.
        slope: Of the prior mean.
        constant: Likewise.
        points: Inducing points as rows.
        gp: The sparse GP, for its whitened belief and jitter.
    """

    kernel: Callable[[Any, Any], Any]
    slope: np.ndarray
    constant: float
    points: list[Row]
    gp: SparseGP

    def prior_mean(self, rows: list[Row]) -> np.ndarray:
        """Prior mean of rows."""
        return np.array(
            [
                sum(w * (self.slope @ x + self.constant if v is None else self.slope @ v) for w, x, v in row)
                for row in rows
            ]
        )

    def moments(self, rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of rows."""
        K = covariance(self.kernel, self.points, self.points)
        L = np.linalg.cholesky(K + float(self.gp.process.total_jitter) * np.eye(len(K)))
        phi = np.linalg.inv(L) @ covariance(self.kernel, self.points, rows)
        m, S = self.gp.whitened_mean.double().numpy(), self.gp.whitened_covariance.double().numpy()
        own = covariance(self.kernel, rows, rows)
        return self.prior_mean(rows) + phi.T @ m, own - phi.T @ phi + phi.T @ S @ phi

    def condition(
        self, rows: list[Row], y: np.ndarray, noise: np.ndarray, tests: list[Row]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of test rows after observations."""
        mean, joint = self.moments(rows + tests)
        n = len(rows)
        gain = joint[n:, :n] @ np.linalg.inv(joint[:n, :n] + np.diag(noise))
        return mean[n:] + gain @ (y - mean[:n]), joint[n:, n:] - gain @ joint[:n, n:]


def dense_belief(gp: SparseGP, name: str) -> DenseBelief:
    """The reference of a GP with one of these kernels and a linear mean."""
    modules = {type(module).__name__: module for module in gp.kernel.modules()}
    stationary: Any = modules.get("RBFKernel") or modules["MaternKernel"]
    linear, constant = modules.get("LinearKernel"), modules.get("ConstantKernel")
    parameters = (
        stationary.lengthscale.double().flatten().tolist(),
        0.0 if linear is None else float(linear.variance),
        0.0 if constant is None else float(constant.constant),
    )
    mean: Any = gp.mean
    points = [[(1.0, z, None)] for z in gp.inducing_points.double().numpy()]
    return DenseBelief(
        lambda x, z: KERNELS[name](x, z, *parameters),
        mean.weights.detach().double().flatten().numpy(),
        float(mean.bias),
        points,
        gp,
    )
