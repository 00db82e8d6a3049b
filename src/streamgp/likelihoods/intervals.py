r"""The probability that a normal variable falls between two bounds, as grades and detection limits ask for it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.probit import log_probit, probit_derivatives

__all__ = ["interval_derivatives", "log_interval", "standardized"]

# Bounds farther away than this stand for none: squares of it are finite in every precision.
_FAR = 1e10
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def standardized(
    bound: Float[Tensor, "..."], mean: Float[Tensor, "..."], deviation: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Put a bound in standard deviations from the mean; one at infinity has no gradient."""
    bound, is_finite = bound.double(), torch.isfinite(bound)
    distance = (torch.where(is_finite, bound, 0.0) - mean.double()) / deviation.double()
    return torch.where(is_finite, distance, bound.detach())


def log_interval(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Evaluate $\log(\Phi(b) - \Phi(a))$ for $a < b$, either of which may be infinite."""
    a, b = (bound.double().clamp(-_FAR, _FAR) for bound in (a, b))
    # On the side where both distribution functions are small, where their difference keeps its digits.
    is_right = (a + b) > 0
    a, b = torch.where(is_right, -b, a), torch.where(is_right, -a, b)
    upper = log_probit(b)
    ratio = (log_probit(a) - upper).clamp_max(-torch.finfo(a.dtype).tiny)
    return upper + torch.where(ratio > -math.log(2.0), (-torch.expm1(ratio)).log(), torch.log1p(-ratio.exp()))


def interval_derivatives(
    a: Float[Tensor, "..."], b: Float[Tensor, "..."]
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    r"""Evaluate both derivatives of $\log(\Phi(b - z) - \Phi(a - z))$ at $z = 0$.

    With $r_a = \phi(a) / (\Phi(b) - \Phi(a))$ and $r_b$ likewise they are $r_a - r_b$ and
    $a r_a - b r_b - (r_a - r_b)^2$, and never more than zero the second.
    """
    a, b = (bound.double().clamp(-_FAR, _FAR) for bound in (a, b))
    log_mass = log_interval(a, b)
    r_a, r_b = ((-0.5 * bound.square() - _LOG_ROOT_TWO_PI - log_mass).exp() for bound in (a, b))
    first = r_a - r_b
    second = (a * r_a - b * r_b - first.square()).clamp_max(0.0)
    # With one bound these are those of the probit curve, which keep their digits in its tails.
    (below, below_second), (above, above_second) = probit_derivatives(b), probit_derivatives(-a)
    first = torch.where(a <= -_FAR, -below, torch.where(b >= _FAR, above, first))
    second = torch.where(a <= -_FAR, below_second, torch.where(b >= _FAR, above_second, second))
    is_open = (a <= -_FAR) & (b >= _FAR)
    return torch.where(is_open, 0.0, first), torch.where(is_open, 0.0, second)
