"""The response scale: prevalences, rates and values instead of latent numbers and counts."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ArgumentTypeError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["exceedance_probability", "expected_slope", "latent_threshold"]


def expected_slope(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    r"""The expected slope of the response, $\mathbb{E}[g'(f)] = \partial \mathbb{E}[g(f)] / \partial m$.

    Args:
        likelihood: Gives the response $g$.
        mean: Mean $m$ of the latent value.
        variance: Its variance.
    """
    with torch.enable_grad():
        m = mean.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(likelihood.per_unit().predictive_mean(m, variance.detach()).sum(), m)
    return slope


def latent_threshold(likelihood: AbstractLikelihood, threshold: Any) -> float:
    """The latent value whose response is a threshold; the larger the one, the larger the other.

    Args:
        likelihood: Gives the response.
        threshold: A prevalence, a rate, or a value.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise ArgumentTypeError(f"threshold must be a number, but is a {type(threshold).__name__}.")
    return float(likelihood.inverse_response(likelihood.check_response(threshold, "threshold")))


def exceedance_probability(
    mean: Float[Tensor, " n"], variance: Float[Tensor, " n"], latent: float
) -> Float[Tensor, " n"]:
    """The probability that a latent value is above a threshold."""
    deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    probability: Tensor = torch.special.ndtr((mean - latent) / deviation)
    return probability
