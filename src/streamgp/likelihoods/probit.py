r"""The probit curve $\Phi$ (the normal distribution function), as classes and preferences use it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.quadrature import gauss_hermite_pairs

__all__ = [
    "expected_log_probit",
    "expected_probit_derivatives",
    "log_probit",
    "probit_derivatives",
    "signs",
]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Below, where it is about to underflow, the normal distribution function comes from its asymptotic series, whose next
# term is 945 / 36^10.
_FAR = -36.0


def signs(y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Map targets 0 and 1 to -1 and 1."""
    return 2.0 * y - 1.0


def log_probit(z: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Evaluate $\log \Phi(z)$, also where $\Phi(z)$ underflows."""
    value: Tensor = torch.special.log_ndtr(z)
    return value


def probit_derivatives(z: Float[Tensor, "..."]) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    r"""Evaluate both derivatives of $\log \Phi(z)$.

    With $\lambda = \phi(z) / \Phi(z)$ they are $\lambda$ and $-\lambda (z + \lambda)$, between 0 and -1.
    """
    # Left of zero the ratio comes from the scaled complementary error function, which does not
    # underflow; right of zero that function overflows, and the normal density can be taken as it is.
    left, right = z.clamp(max=0.0), z.clamp(min=0.0)
    tail = math.sqrt(2.0 / math.pi) / torch.special.erfcx(-left / math.sqrt(2.0))
    bulk = torch.exp(-0.5 * right.square() - torch.special.log_ndtr(right)) / math.sqrt(2.0 * math.pi)
    ratio = torch.where(z < 0, tail, bulk)
    return ratio, -ratio * (z + ratio)


def expected_probit_derivatives(mean: float, variance: float, *, num_nodes: int) -> tuple[float, float]:
    r"""Evaluate the expectations of both derivatives of $\log \Phi(z)$ under $z \sim \mathcal N(m, v)$, in numbers."""
    deviation = math.sqrt(variance)
    first = second = 0.0
    for node, weight in gauss_hermite_pairs(num_nodes):
        z = mean + deviation * node
        if z > _FAR:
            ratio = math.exp(-0.5 * z * z - _LOG_ROOT_TWO_PI - _log_probit_of_one(z))
            excess = ratio + z
        else:
            excess = _excess(z)
            ratio = excess - z
        first += weight * ratio
        second -= weight * ratio * excess
    return first, second


def expected_log_probit(mean: float, variance: float, *, num_nodes: int) -> float:
    r"""Evaluate the expectation of $\log \Phi(z)$ under $z \sim \mathcal N(m, v)$, in numbers."""
    deviation = math.sqrt(variance)
    pairs = gauss_hermite_pairs(num_nodes)
    return sum(weight * _log_probit_of_one(mean + deviation * node) for node, weight in pairs)


def _log_probit_of_one(z: float) -> float:
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * math.sqrt(0.5)))
    if z > _FAR:
        return math.log(0.5 * math.erfc(-z * math.sqrt(0.5)))
    x = 1.0 / (z * z)
    return -0.5 * z * z - _LOG_ROOT_TWO_PI - math.log(-z) + math.log1p(-x * (1.0 - x * (3.0 - x * (15.0 - 105.0 * x))))


def _excess(z: float) -> float:
    r"""Evaluate $\phi(z) / \Phi(z) + z$ far below zero, where the two cancel, by its series."""
    x = 1.0 / (z * z)
    return -(1.0 - x * (2.0 - x * (10.0 - x * (74.0 - 706.0 * x)))) / z
