"""Online GPs with a limited number of basis vectors, after Csató and Opper; plain and weighted."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ShapeError, ValueRangeError

__all__ = ["BasisVectorGP", "SquaredExponential"]


@final
@dataclass(frozen=True, eq=False)
class SquaredExponential:
    r"""The kernel $s \exp(-\frac12 \sum_j b_j (x_j - x'_j)^2)$.

    Attributes:
        signal_variance: The variance $s$.
        inverse_squares: Inverse squared lengthscales $b$, one for each input.
    """

    signal_variance: float
    inverse_squares: Float[Tensor, " d"]

    def __call__(self, A: Float[Tensor, "*b n d"], B: Float[Tensor, "m d"]) -> Float[Tensor, "*b n m"]:
        """Covariances between two sets of inputs."""
        scale = self.inverse_squares.sqrt()
        # Centered first: settings of machines are far from zero, and distances would be lost to rounding.
        center = B.mean(0) if len(B) else torch.zeros_like(scale)
        A, B = (A - center) * scale, (B - center) * scale
        squares = A.square().sum(-1, keepdim=True) - 2.0 * (A @ B.mT) + B.square().sum(-1)
        return self.signal_variance * (-0.5 * squares.clamp_min(0.0)).exp()


@final
@dataclass(frozen=True, eq=False)
class BasisVectorGP:
    r"""A GP that has seen rows one by one, and keeps at most a number of them as basis vectors.

    Values $f = \mu_0 + L v$ at the basis vectors, with covariance $K = L L^\top$ a priori, are known as
    $v \sim N(m, S)$; elsewhere the prior given $f$ holds. Csató and Opper write the same with
    $\alpha = L^{-\top} m$ and $C = L^{-\top} (S - I) L^{-1}$, which lose all digits where basis vectors are close.

    A row whose input the basis vectors explain but for a share of `novelty` moves $m$ and $S$ only; another one becomes
    a basis vector. If there are too many, one is deleted: the process forgets what is known of its value beyond what
    the others say, $v_i = 0$ along the direction $w_i$ in which it differs from them. Deleted is the one that
    changes the process least: by the divergence of Csató and Opper, $(w_i^\top m)^2 / w_i^\top S w_i$; or, weighted, by
    that of McIntire et al., in which functions count by how large they are where the mean is large. Without deletions
    it is an exact GP.

    Attributes:
        kernel: The kernel; it stays as it is.
        noise_variance: Variance of the noise.
        max_basis: Most basis vectors.
        prior_mean: The prior mean $\mu_0$.
        is_weighted: Whether large values count more when a basis vector is deleted.
        novelty: Share of its variance that a row must not have explained to become a basis vector.
        points: The basis vectors.
        root: The triangular factor $L$; signs of its diagonal are free.
        mean: The vector $m$.
        covariance: The matrix $S$.

    References:
        Csató, Opper (2002), Sparse on-line Gaussian processes.
        McIntire, Ratner, Ermon (2016), Sparse Gaussian processes for Bayesian optimization.
    """

    kernel: SquaredExponential
    noise_variance: float
    max_basis: int
    prior_mean: float
    is_weighted: bool
    novelty: float
    points: Float[Tensor, "m d"]
    root: Float[Tensor, "m m"]
    mean: Float[Tensor, " m"]
    covariance: Float[Tensor, "m m"]

    @staticmethod
    def empty(
        kernel: SquaredExponential,
        *,
        noise_variance: float,
        max_basis: int,
        prior_mean: float = 0.0,
        is_weighted: bool = False,
        novelty: float = 1e-6,
    ) -> "BasisVectorGP":
        """A GP that has seen nothing.

        Raises:
            ValueRangeError: If the noise is not positive, or there may be no basis vector.
        """
        if not 0.0 < noise_variance < math.inf or max_basis < 1:
            raise ValueRangeError(
                f"noise_variance and max_basis must be positive, but are {noise_variance!r} and {max_basis!r}."
            )
        none = kernel.inverse_squares.new_zeros(0)
        points, square = none.reshape(0, len(kernel.inverse_squares)), none.reshape(0, 0)
        return BasisVectorGP(
            kernel, noise_variance, max_basis, prior_mean, is_weighted, novelty, points, square, none, square
        )

    @property
    def weights(self) -> Float[Tensor, " m"]:
        r"""The vector $\alpha$, with which the mean is $\mu_0 + k(x)^\top \alpha$."""
        return torch.linalg.solve_triangular(self.root.mT, self.mean.unsqueeze(-1), upper=True).squeeze(-1)

    def predict(self, X: Float[Tensor, "*b n d"]) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n"]]:
        """Means and variances of the function."""
        A = self._coordinates(X)
        unexplained = self.kernel.signal_variance - A.square().sum(-1)
        variance = unexplained.clamp_min(0.0) + ((A @ self.covariance) * A).sum(-1)
        return self.prior_mean + A @ self.mean, variance

    def learn(self, X: Tensor, y: Tensor) -> "BasisVectorGP":
        """Learn rows `(n, d)` with targets `(n)`, in their order."""
        if X.shape[:1] != y.shape:
            raise ShapeError(
                f"y must have shape {tuple(X.shape[:1])}, one value for each row of X {tuple(X.shape)}, but has shape "
                f"{tuple(y.shape)}."
            )
        gp = self
        for x, target in zip(X, y, strict=True):
            gp = gp._learn(x, target)
        return gp

    def _coordinates(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n m"]:
        """What the values at inputs are expected to be, as products with the coordinates."""
        k = self.kernel(X, self.points)
        return torch.linalg.solve_triangular(self.root, k.mT, upper=False).mT

    def _learn(self, x: Float[Tensor, " d"], target: Float[Tensor, ""]) -> "BasisVectorGP":
        a, own = self._coordinates(x.unsqueeze(0)).squeeze(0), self.kernel.signal_variance
        unexplained = own - float(a.square().sum())
        if unexplained < self.novelty * own:
            return self._observed(a, target)
        row = torch.cat([a, a.new_full((1,), math.sqrt(unexplained))])
        root, covariance = _padded(self.root), _padded(self.covariance)
        root[-1] = row
        covariance[-1, -1] = 1.0
        points = torch.cat([self.points, x.unsqueeze(0)])
        grown = replace(self, points=points, root=root, mean=_padded(self.mean), covariance=covariance)
        learned = grown._observed(row, target)
        return learned if len(points) <= self.max_basis else learned._without_least()

    def _observed(self, a: Float[Tensor, " m"], target: Float[Tensor, ""]) -> "BasisVectorGP":
        """The process after a noisy observation of the product of `a` with the coordinates."""
        Sa = self.covariance @ a
        spread = a @ Sa + self.noise_variance
        return replace(
            self,
            mean=self.mean + Sa * ((target - self.prior_mean - a @ self.mean) / spread),
            covariance=_symmetric(self.covariance - torch.outer(Sa, Sa) / spread),
        )

    def _without_least(self) -> "BasisVectorGP":
        """The process without the basis vector whose loss changes it least."""
        # Columns: the directions in which the value at a basis vector differs from what the others say.
        eye = torch.eye(len(self.points), dtype=self.root.dtype)
        directions = torch.linalg.solve_triangular(self.root, eye, upper=False)
        directions = directions / directions.norm(dim=0)
        spreads = (directions * (self.covariance @ directions)).sum(0)
        losses = (directions.mT @ self.mean).square() / spreads
        if self.is_weighted:
            losses = self._weighted_losses(directions, spreads)
        index = int(losses.argmin())
        w, spread = directions[:, index], spreads[index]
        Sw = self.covariance @ w
        if self.is_weighted:
            target = self._tilted_mean()
            mean = target - (w @ target) * w
        else:
            mean = self.mean - Sw * ((w @ self.mean) / spread)
        covariance = self.covariance - torch.outer(Sw, Sw) / spread
        # Rows of the others, A = L' H with L' triangular: new coordinates are H v, and differ from the index on only.
        A = self.root[index + 1 :, index:]
        H, R = torch.linalg.qr(A.mT)
        kept = torch.arange(len(self.points)) != index
        root = self.root[kept][:, :-1].clone()
        root[index:, index:] = R.mT
        covariance = torch.cat([covariance[:index], H.mT @ covariance[index:]])
        covariance = torch.cat([covariance[:, :index], covariance[:, index:] @ H], dim=1)
        return replace(
            self,
            points=self.points[kept],
            root=root,
            mean=torch.cat([mean[:index], H.mT @ mean[index:]]),
            covariance=_symmetric(covariance),
        )

    def _tilted_mean(self) -> Float[Tensor, " m"]:
        r"""The mean if functions count by $m^\top v$, how large they are where the mean is: $m + S m / m^\top m$."""
        scale = self.mean.square().sum().clamp_min(torch.finfo(self.mean.dtype).tiny)
        return self.mean + self.covariance @ self.mean / scale

    def _weighted_losses(self, directions: Float[Tensor, "m m"], spreads: Float[Tensor, " m"]) -> Float[Tensor, " m"]:
        r"""Weighted divergences to the processes without one basis vector each, but for constants.

        With $t$ the tilted mean, $w$ a direction of unit length, $\hat m = t - w w^\top t$, $P = S^{-1}$ and
        $\hat P$ the precision that has lost $w$, the divergence is
        $(2t - m - \hat m)^\top \hat P (m - \hat m) + w^\top P w \, w^\top S w + w^\top S w - \log w^\top S w$.
        """
        t, m, W = self._tilted_mean(), self.mean, directions
        P = torch.cholesky_inverse(torch.linalg.cholesky(self.covariance))
        means = t.unsqueeze(-1) - W * (W.mT @ t)
        left, right = (2.0 * t - m).unsqueeze(-1) - means, m.unsqueeze(-1) - means
        # The precision without w: P on what is orthogonal to w, and one along it.
        along = (W * left).sum(0) * (W * right).sum(0)
        left_rest, right_rest = left - W * (W * left).sum(0), right - W * (W * right).sum(0)
        distance = (left_rest * (P @ right_rest)).sum(0) + along
        certainty = (W * (P @ W)).sum(0)
        return distance + certainty * spreads + spreads - spreads.log()


def _padded(values: Tensor) -> Tensor:
    """Zeros at the end of all axes."""
    return torch.nn.functional.pad(values, (0, 1) * values.dim())


def _symmetric(matrix: Float[Tensor, "m m"]) -> Float[Tensor, "m m"]:
    return 0.5 * (matrix + matrix.mT)
