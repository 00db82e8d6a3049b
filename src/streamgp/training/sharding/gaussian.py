"""The collapsed bound of Gaussian observations as sums over shards: two passes for value and gradient."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.linalg import cholesky, solve_lower, solve_lower_transpose, solve_vector
from streamgp.training.collapsed import solve_both
from streamgp.training.features import inducing_covariance, prior_moments
from streamgp.training.minibatch import NaturalBelief
from streamgp.training.parameters import Hyperparameters
from streamgp.training.sharding.place import Layout, Place
from streamgp.training.sharding.rows import blocks_of
from streamgp.training.sharding.shards import AbstractShards

__all__ = ["GaussianTotals", "gaussian_objective", "gaussian_totals"]


class GaussianTotals(NamedTuple):
    r"""Sums over observations, with $\phi = L^{-1} K_{zx}$ and residuals $r = y - \mu$.

    Attributes:
        gram: $\phi \phi^\top$.
        pull: $\phi r$.
        squares: $r^\top r$.
        variance: $\operatorname{tr} K_{xx}$.
        num_data: $n$.
    """

    gram: Float[Tensor, "m m"]
    pull: Float[Tensor, " m"]
    squares: Tensor
    variance: Tensor
    num_data: int

    def plus(self, other: "GaussianTotals") -> "GaussianTotals":
        """The sums over both."""
        return GaussianTotals(
            self.gram + other.gram,
            self.pull + other.pull,
            self.squares + other.squares,
            self.variance + other.variance,
            self.num_data + other.num_data,
        )


def gaussian_totals(shards: AbstractShards, place: Place, jitter: float) -> GaussianTotals:
    """The first pass: sums at given hyperparameters."""
    (total,) = shards.ask(_Sum(place, jitter), plus=GaussianTotals.plus)
    return total


@final
@dataclass(frozen=True, eq=False)
class _Sum:
    place: Place
    jitter: float

    def __call__(self, index: int, shard: Any, kept: Any) -> GaussianTotals:
        layout, setting = self.place.layout, self.place.setting
        with torch.no_grad():
            L, _ = cholesky(inducing_covariance(setting, self.jitter), name="the kernel matrix of the inducing points")
            gram, pull = torch.zeros_like(L), L.new_zeros(len(L))
            total = GaussianTotals(gram, pull, L.new_zeros(()), L.new_zeros(()), 0)
            for data in blocks_of(index, shard, likelihood=layout.likelihood, scaling=layout.scaling):
                moments = prior_moments(setting, data)
                phi, r = solve_lower(L, moments.cross), data.targets - moments.mean
                total = total.plus(GaussianTotals(phi @ phi.mT, phi @ r, r @ r, moments.variance.sum(), len(r)))
        return total


class _Adjoint(NamedTuple):
    r"""What the second pass needs.

    With $A = I + s^2 \phi\phi^\top$, $s^2 = 1 / (\beta \sigma^2)$ and $a = s^2 A^{-1} \phi r$.

    Attributes:
        left: $L^{-\top} (A^{-1} - I)$.
        column: $L^{-\top} a$.
        mean: $a$.
        weight: $-\frac12 \beta s^2$.
    """

    left: Float[Tensor, "m m"]
    column: Float[Tensor, " m"]
    mean: Float[Tensor, " m"]
    weight: float


def gaussian_objective(shards: AbstractShards, layout: Layout, jitter: float, *, beta: float) -> Any:
    """The bound as a differentiable function of the coordinates that a layout has."""
    summed: Any = _SummedBound
    return lambda x: summed.apply(x, shards, layout, jitter, beta)


class _SummedBound(torch.autograd.Function):
    """As `streamgp.training.collapsed`, where the formulas are, with the observations elsewhere."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, shards: AbstractShards, layout: Layout, jitter: float, beta: float) -> Tensor:
        place = Place(layout, x.detach())
        totals = gaussian_totals(shards, place, jitter)
        ctx.shards, ctx.place, ctx.jitter, ctx.beta, ctx.totals = shards, place, jitter, beta, totals
        return bound_of(totals, place.setting, beta=beta)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        place, totals, beta = ctx.place, ctx.totals, ctx.beta
        scale, A, L_A, a = _collapsed(totals, place.setting, beta=beta)
        L, _ = cholesky(inducing_covariance(place.setting, ctx.jitter), name="the kernel matrix of the inducing points")
        eye = torch.eye(len(A), dtype=A.dtype, device=A.device)
        A_inverse = torch.cholesky_inverse(L_A)
        M, t = A_inverse - eye, -0.5 * beta
        grad_Kzz = t * solve_both(L, A - 2.0 * eye + A_inverse + torch.outer(a, a))
        others = 2.0 * scale * (totals.squares - totals.pull @ a + totals.variance)
        change = 2.0 * ((M * (A - eye)).sum() - a @ a) + others
        noise = _noise(place.setting)
        grad_noise = -0.5 * (t * change + totals.num_data) / noise

        def here(setting: Hyperparameters) -> Tensor:
            own = (grad_Kzz * inducing_covariance(setting, ctx.jitter)).sum()
            return own + grad_noise * _noise(setting)

        leaf = place.x.clone().requires_grad_(True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(place.space.evaluate(leaf, here), leaf)
        adjoint = _Adjoint(solve_lower_transpose(L, M), solve_vector(L, a, is_transposed=True), a, float(t * scale))
        (elsewhere,) = ctx.shards.ask(_Differentiate(place, ctx.jitter, adjoint), plus=torch.add)
        return g * (gradient + elsewhere), None, None, None, None


@final
@dataclass(frozen=True, eq=False)
class _Differentiate:
    """The second pass: the product of the bound's derivatives in the sums with theirs in the hyperparameters."""

    place: Place
    jitter: float
    adjoint: _Adjoint

    def __call__(self, index: int, shard: Any, kept: Any) -> Tensor:
        layout, setting, space = self.place.layout, self.place.setting, self.place.space
        left, column, a, weight = self.adjoint
        L, _ = cholesky(inducing_covariance(setting, self.jitter), name="the kernel matrix of the inducing points")
        gradient = torch.zeros_like(self.place.x)
        for data in blocks_of(index, shard, likelihood=layout.likelihood, scaling=layout.scaling):

            def product(s: Hyperparameters, data: Any = data) -> Tensor:
                moments = prior_moments(s, data)
                with torch.no_grad():
                    phi = solve_lower(L, moments.cross)
                    w = data.targets - moments.mean - a @ phi
                    grad_Kzx = (left @ phi).addr_(column, w, alpha=-1.0).mul_(2.0 * weight)
                return (
                    (grad_Kzx * moments.cross).sum()
                    + weight * moments.variance.sum()
                    - 2.0 * weight * (w * moments.mean).sum()
                )

            leaf = self.place.x.clone().requires_grad_(True)
            with torch.enable_grad():
                (part,) = torch.autograd.grad(space.evaluate(leaf, product), leaf)
            gradient += part
        return gradient


def bound_of(totals: GaussianTotals, setting: Hyperparameters, *, beta: float) -> Float[Tensor, ""]:
    """The collapsed bound of given sums."""
    scale, A, L_A, a = _collapsed(totals, setting, beta=beta)
    quadratic = scale * (totals.squares - totals.pull @ a)
    slack = scale * totals.variance - (A.diagonal().sum() - len(A))
    T = quadratic + 2.0 * L_A.diagonal().log().sum() + slack
    return -0.5 * (beta * T + totals.num_data * torch.log(2.0 * math.pi * _noise(setting)))


def belief_of(totals: GaussianTotals, setting: Hyperparameters, *, beta: float) -> NaturalBelief:
    """The optimal belief of given sums."""
    scale, A, _, _ = _collapsed(totals, setting, beta=beta)
    return NaturalBelief(A, scale * totals.pull)


def slack_of(totals: GaussianTotals, setting: Hyperparameters) -> float:
    """What the inducing points leave unexplained of an observation, in units of its noise."""
    return float((totals.variance - totals.gram.diagonal().sum()) / _noise(setting)) / totals.num_data


def _collapsed(
    totals: GaussianTotals, setting: Hyperparameters, *, beta: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    scale = 1.0 / (beta * _noise(setting).detach())
    eye = torch.eye(len(totals.gram), dtype=totals.gram.dtype, device=totals.gram.device)
    A = eye + scale * totals.gram
    L_A, _ = cholesky(A, name="the information of the observations")
    a = solve_vector(L_A, solve_vector(L_A, scale * totals.pull), is_transposed=True)
    return scale, A, L_A, a


def _noise(setting: Hyperparameters) -> Tensor:
    noise = setting.likelihood.gaussian_noise_variance
    assert noise is not None
    return noise.to(setting.inducing_points)
