"""The logarithm of expected improvement and of probabilities, accurate far into their tails."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["log_expected_improvement", "log_probability_between"]

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
# Below the first, terms are rearranged so that none cancels; below the second, two terms of the expansion are exact.
_TAIL, _FAR_TAIL = -1.0, -1e5


def log_expected_improvement(u: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Evaluate $h(u) = \log \mathbb E[(u + Z)_+] = \log(\varphi(u) + u \Phi(u))$ for a standard normal $Z$.

    The improvement of $\mathcal N(m, \sigma^2)$ over $b$ is $\log \sigma + h((m - b) / \sigma)$. The gradient
    $\Phi(u) e^{-h(u)}$ is in closed form, too.

    References:
        Ament, Daulton, Eriksson, Balandat, Bakshy (2023), Unexpected improvements to expected improvement for Bayesian
        optimization.
    """
    function: Any = _LogImprovement  # torch leaves `apply` untyped
    return function.apply(u)


class _LogImprovement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        upper = u.clamp_min(_TAIL)
        bulk = torch.log(torch.exp(-0.5 * upper.square() - _LOG_ROOT) + upper * torch.special.ndtr(upper))
        lower = u.clamp(_FAR_TAIL, _TAIL)
        # 1 + u Phi / phi, by the ratio of Mills; it falls like 1 / u^2.
        share = 1.0 + math.sqrt(0.5 * math.pi) * lower * torch.special.erfcx(-lower / math.sqrt(2.0))
        log_share = torch.where(u < _FAR_TAIL, -2.0 * torch.log(-u.clamp_max(_TAIL)), torch.log(share))
        value = torch.where(u > _TAIL, bulk, -0.5 * u.square() - _LOG_ROOT + log_share)
        ctx.save_for_backward(u, value)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:
        u, value = ctx.saved_tensors
        # Far out both logarithms are about -u^2 / 2, and what is left of their difference is log(-u).
        slope = torch.where(u < _FAR_TAIL, -u, torch.exp(torch.special.log_ndtr(u.clamp_min(_FAR_TAIL)) - value))
        return grad_outputs[0] * slope


def log_probability_between(
    mean: Float[Tensor, "..."], deviation: Float[Tensor, "..."], lower: float | None, upper: float | None
) -> Float[Tensor, "..."]:
    """The logarithm of the probability that a normal value lies between two limits, of which one may be missing.

    Args:
        mean: Of the value.
        deviation: Its standard deviation.
        lower: The least value; None for no such limit.
        upper: The most.
    """
    if lower is None or upper is None:
        z = torch.full_like(mean, math.inf)
        if upper is not None:
            z = (upper - mean) / deviation
        elif lower is not None:
            z = (mean - lower) / deviation
        return torch.special.log_ndtr(z)
    # On the side of the nearer limit, so that both probabilities are small and differ in their logarithms.
    is_above = mean > 0.5 * (lower + upper)
    near = torch.where(is_above, upper - mean, mean - lower) / deviation
    far = torch.where(is_above, lower - mean, mean - upper) / deviation
    log_near, log_far = torch.special.log_ndtr(near), torch.special.log_ndtr(far)
    return log_near + torch.log(-torch.expm1(torch.clamp_max(log_far - log_near, -1e-12)))
