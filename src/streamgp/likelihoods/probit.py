r"""The probit curve $\Phi$ (the normal distribution function), as classes and preferences use it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["log_probit", "probit_derivatives", "signs"]


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
