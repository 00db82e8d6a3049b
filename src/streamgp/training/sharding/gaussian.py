"""The collapsed bound of Gaussian observations over shards: two passes for value and gradient."""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.linalg import cholesky, solve_lower
from streamgp.training.collapsed import Adjoint, Sums, collapse, differentiate
from streamgp.training.features import inducing_covariance, prior_moments
from streamgp.training.parameters import Hyperparameters
from streamgp.training.sharding.shards import AbstractShards, ParameterPoint

__all__ = ["gaussian_objective", "gaussian_sums"]


def gaussian_sums(shards: AbstractShards, point: ParameterPoint, jitter: float, *, beta: float) -> Sums:
    """The first pass: sums over all observations at given hyperparameters."""
    (total,) = shards.ask(_Sum(point, jitter, beta), plus=Sums.plus)
    return total


@final
@dataclass(frozen=True, eq=False)
class _Sum:
    point: ParameterPoint
    jitter: float
    beta: float

    def __call__(self, index: int, shard: Any, kept: Any) -> Sums:
        setting = self.point.setting
        with torch.no_grad():
            L, parts = _factor(setting, self.jitter), []
            for data in self.point.blocks_of(index, shard):
                moments = prior_moments(setting, data)
                phi, r = solve_lower(L, moments.cross), data.targets - moments.mean
                parts.append(Sums.of(phi, moments.variance, r, _noise(setting), self.beta))
        return reduce(Sums.plus, parts)


def gaussian_objective(shards: AbstractShards, start: ParameterPoint, jitter: float, *, beta: float) -> Any:
    """The bound as a differentiable function of the coordinates of a point."""
    summed: Any = _SummedBound
    return lambda x: summed.apply(x, shards, start, jitter, beta)


class _SummedBound(torch.autograd.Function):
    """As `streamgp.training.collapsed`, where the formulas are, with the observations elsewhere."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, shards: AbstractShards, start: ParameterPoint, jitter: float, beta: float
    ) -> Tensor:
        point = replace(start, x=x.detach())
        sums = gaussian_sums(shards, point, jitter, beta=beta)
        optimum = collapse(sums, beta)
        ctx.shards, ctx.point, ctx.jitter, ctx.beta, ctx.sums, ctx.optimum = shards, point, jitter, beta, sums, optimum
        return optimum.bound

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        point, jitter = ctx.point, ctx.jitter
        adjoint = differentiate(_factor(point.setting, jitter), ctx.sums, ctx.optimum, ctx.beta)

        def here(setting: Hyperparameters) -> Tensor:
            own = (adjoint.by_inducing * inducing_covariance(setting, jitter)).sum()
            return own + adjoint.by_log_noise * _noise(setting).log()

        leaf = point.x.clone().requires_grad_(True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(point.space.evaluate(leaf, here), leaf)
        question = _Differentiate(point, jitter, adjoint, ctx.optimum.mean, ctx.beta)
        (elsewhere,) = ctx.shards.ask(question, plus=torch.add)
        return g * (gradient + elsewhere), None, None, None, None


@final
@dataclass(frozen=True, eq=False)
class _Differentiate:
    """The second pass: the product of the bound's derivatives in the sums with theirs in the hyperparameters."""

    point: ParameterPoint
    jitter: float
    adjoint: Adjoint
    mean: Tensor
    beta: float

    def __call__(self, index: int, shard: Any, kept: Any) -> Tensor:
        setting, space = self.point.setting, self.point.space
        weight = float(-0.5 / _noise(setting))  # beta times that of the observations
        L = _factor(setting, self.jitter)
        gradient = torch.zeros_like(self.point.x)
        for data in self.point.blocks_of(index, shard):

            def product(s: Hyperparameters, data: Any = data) -> Tensor:
                moments = prior_moments(s, data)
                with torch.no_grad():
                    phi = solve_lower(L, moments.cross)
                    w = data.targets - moments.mean - self.mean @ phi
                    by_cross = (self.adjoint.left @ phi).sub_(self.adjoint.columns * w).mul_(2.0 * weight)
                return (
                    (by_cross * moments.cross).sum()
                    + weight * moments.variance.sum()
                    - 2.0 * weight * (w * moments.mean).sum()
                )

            leaf = self.point.x.clone().requires_grad_(True)
            with torch.enable_grad():
                (part,) = torch.autograd.grad(space.evaluate(leaf, product), leaf)
            gradient += part
        return gradient


def _factor(setting: Hyperparameters, jitter: float) -> Tensor:
    """The factor of the inducing points' kernel matrix."""
    return cholesky(inducing_covariance(setting, jitter), name="the kernel matrix of the inducing points")[0]


def _noise(setting: Hyperparameters) -> Tensor:
    noise = setting.likelihood.gaussian_noise_variance
    assert noise is not None
    return noise.to(setting.inducing_points)
