"""Features of single inputs at inducing points, in NumPy: for so few numbers torch takes several times as long."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch

from streamgp.gp import Prior
from streamgp.gp.stationary import StationaryKernel

__all__ = ["KernelColumn", "RowFeatures"]

# Beyond this scaled distance a kernel is zero, and its polynomial factors are still finite.
_FAR = 1e4


@final
class KernelColumn:
    r"""The covariances of one input with inducing points, and its variance.

    The kernel that streams have by default, a scaled Matérn-5/2 of which all inputs are active, is written out; others
    are asked as they are.
    """

    def __init__(self, prior: Prior) -> None:
        """Read the kernel."""
        self._prior = prior
        function = prior.kernel_function
        self._inverse: np.ndarray | None = None
        if isinstance(function, StationaryKernel) and function.smoothness == 2.5 and not prior.batch_shape:
            self._inverse = function.factor / function.lengthscale.detach().double().numpy()
            self._variance = float(function.outputscale)

    def __call__(self, points: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Covariances `(m,)` with points `(m, d)`, and the variance, of an input `(1, d)`."""
        if self._inverse is None:
            Z, X = torch.from_numpy(points), torch.from_numpy(x)
            return self._prior.covariance(Z, X).numpy()[:, 0], float(self._prior.variance(X))
        difference = (points - x) * self._inverse
        s = np.sqrt(np.einsum("ij,ij->i", difference, difference))
        np.minimum(s, _FAR, out=s)
        k = np.exp(-s)
        k *= (s * (1.0 / 3.0) + 1.0) * s + 1.0
        k *= self._variance
        return k, self._variance


@final
@dataclass(frozen=True, eq=False)
class RowFeatures:
    r"""Features $\phi(x) = W k(Z, x)$ with any $W$ for which $W^\top W = K^{-1}$; a frozen value.

    Attributes:
        points: Inducing points $Z$ `(m, d)`.
        whitening: $W$ `(m, m)`.
        column: The kernel.
        jitter: What stands on the diagonal of $K$.
    """

    points: np.ndarray
    whitening: np.ndarray
    column: KernelColumn
    jitter: float

    def at(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Features `(m,)` of an input `(1, d)`, and its prior variance."""
        k, variance = self.column(self.points, x)
        return self.whitening @ k, variance

    @cached_property
    def leave_one_out(self) -> np.ndarray:
        r"""The prior variance of each inducing value given the others, $1 / (K^{-1})_{ii}$."""
        return 1.0 / np.einsum("ij,ij->j", self.whitening, self.whitening)

    def losses(self, features: np.ndarray) -> np.ndarray:
        r"""By how much prior variances of inputs would grow without each point, $w_i^2 / (K^{-1})_{ii}$."""
        weights = self.whitening.T @ features
        weights *= weights
        weights *= self.leave_one_out[:, None]
        return weights

    def _own(self, phi: np.ndarray, variance: float) -> float:
        """The standard deviation of what the points leave of an input."""
        return math.sqrt(max(variance + self.jitter - float(phi @ phi), self.jitter))

    def joined(self, x: np.ndarray) -> "RowFeatures":
        """With an input as one more point: the features so far stay, and one is added."""
        phi, variance = self.at(x)
        own, m = self._own(phi, variance), len(phi)
        W = np.zeros((m + 1, m + 1))
        W[:m, :m] = self.whitening
        W[m, :m] = phi @ self.whitening / -own
        W[m, m] = 1.0 / own
        return RowFeatures(np.concatenate([self.points, x]), W, self.column, self.jitter)

    def exchanged(self, x: np.ndarray, index: int) -> tuple["RowFeatures", "Exchange"]:
        r"""With an input as the last point, in place of another.

        Beside the features so far, let there be one for what they leave of $x$. In these $m + 1$ coordinates, the unit
        vector $n$ is what the new points cannot express of the one that goes. A reflection $I - 2 v v^\top$ takes it to
        the last coordinate; the others are the new ones. So all changes by a step of rank one.
        """
        W, m = self.whitening, len(self.points)
        phi, variance = self.at(x)
        own = self._own(phi, variance)
        direction = W[:, index]
        n = np.append(direction, float(phi @ direction) / -own)
        n /= math.sqrt(float(n @ n))
        v = n.copy()
        v[m] += math.copysign(1.0, n[m])
        v /= math.sqrt(float(v @ v))
        a, b = v[:m], float(v[m])
        extended = np.zeros((m, m + 1))
        extended[:, :m] = W
        extended -= (2.0 * a)[:, None] * np.append(a @ W - (b / own) * (phi @ W), b / own)
        points = np.concatenate([np.delete(self.points, index, 0), x])
        return RowFeatures(points, np.delete(extended, index, 1), self.column, self.jitter), Exchange(n, v)


@final
@dataclass(frozen=True, eq=False)
class Exchange:
    """What an exchange of a point does to coordinates; both have one entry for what is new of the input, at the end.

    Attributes:
        lost: The unit vector of what is lost, $n$ `(m + 1,)`.
        axis: The unit vector of the reflection, $v$ `(m + 1,)`.
    """

    lost: np.ndarray
    axis: np.ndarray

    def moved(self, mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r"""Beliefs `(e, c, k)` and `(e, c, k, k)` about states that begin with the coordinates.

        The new coordinates are $T u + t \xi$ with $T = I - 2 a a^\top$, $t = -2 a b$ and what is new of the input,
        $\xi \sim \mathcal N(0, 1)$. The carried site is the old one at $n = 0$, and the carried belief the old one
        given $n = 0$.
        """
        k = mean.shape[-1]
        a, n = np.zeros(k), np.zeros(k)
        a[: len(self.axis) - 1], n[: len(self.lost) - 1] = self.axis[:-1], self.lost[:-1]
        b, last = float(self.axis[-1]), float(self.lost[-1])
        Sa, Sn = covariance @ a, covariance @ n
        w = 2.0 * Sa - (2.0 * (Sa @ a + b * b))[..., None] * a
        c = Sn - (2.0 * (Sn @ a + b * last))[..., None] * a
        scaled = c / (Sn @ n + last * last)[..., None]
        moved = mean - (2.0 * (mean @ a))[..., None] * a - scaled * (mean @ n)[..., None]
        a_each = np.broadcast_to(a, w.shape)
        step = np.stack([a_each, w, scaled], -1) @ np.stack([w, a_each, c], -2)
        return moved, np.subtract(covariance, step, out=step)
