"""The response scale: prevalences, rates and values instead of latent numbers and counts."""

import math
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import DTypeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import (
    AbstractLikelihood,
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from streamgp.likelihoods.quadrature import gauss_hermite

__all__ = ["exceedance_probability", "expected_slope", "latent_threshold", "single_response", "spread_of_response"]

_NUM_NODES = 32


def single_response(likelihood: AbstractLikelihood) -> AbstractLikelihood:
    """The likelihood of one trial, or of a unit of exposure, whose mean is the response: a prevalence or a rate."""
    if isinstance(likelihood, Binomial):
        return replace(likelihood, total_count=torch.tensor(1.0, dtype=torch.float64))
    if isinstance(likelihood, Poisson):
        return replace(likelihood, exposure=torch.tensor(1.0, dtype=torch.float64))
    return likelihood


def expected_slope(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    r"""The expected slope of the response, $\mathbb{E}[g'(f)] = \partial \mathbb{E}[g(f)] / \partial m$.

    Args:
        likelihood: Gives the response $g$.
        mean: Mean $m$ of the latent value.
        variance: Its variance.
    """
    _check_response(likelihood)
    with torch.enable_grad():
        m = mean.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(single_response(likelihood).predictive_mean(m, variance.detach()).sum(), m)
    return slope


def spread_of_response(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " n"], variance: Float[Tensor, " n"]
) -> Float[Tensor, " n"]:
    r"""The variance of the response, $\operatorname{Var} g(f)$, without the noise of an observation; by quadrature.

    Args:
        likelihood: Gives the response $g$.
        mean: Mean of the latent value.
        variance: Its variance.
    """
    _check_response(likelihood)
    nodes, weights = gauss_hermite(_NUM_NODES, mean.dtype, mean.device)
    values = _respond(likelihood, mean.unsqueeze(-1) + variance.sqrt().unsqueeze(-1) * nodes)
    return (values - (values @ weights).unsqueeze(-1)).square() @ weights


def latent_threshold(likelihood: AbstractLikelihood, threshold: Any) -> float:
    """The latent value whose response is a threshold; the larger the one, the larger the other.

    Args:
        likelihood: Gives the link.
        threshold: A prevalence, a rate, or a value.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise DTypeError(f"threshold must be a number, but is a {type(threshold).__name__}.")
    if isinstance(likelihood, Bernoulli | Binomial):
        _check_between(threshold, 1.0, likelihood)
        if isinstance(likelihood, Bernoulli) and likelihood.link == "probit":
            return float(torch.special.ndtri(torch.tensor(threshold, dtype=torch.float64)))
        return math.log(threshold) - math.log1p(-threshold)
    if isinstance(likelihood, Poisson | NegativeBinomial):
        _check_between(threshold, math.inf, likelihood)
        return math.log(threshold)
    _check_response(likelihood)
    if not math.isfinite(threshold):
        raise ValueRangeError(f"threshold must be finite, but is {threshold}.")
    return float(threshold)


def exceedance_probability(
    mean: Float[Tensor, " n"], variance: Float[Tensor, " n"], latent: float
) -> Float[Tensor, " n"]:
    """The probability that a latent value is above a threshold."""
    deviation = variance.clamp_min(torch.finfo(variance.dtype).tiny).sqrt()
    probability: Tensor = torch.special.ndtr((mean - latent) / deviation)
    return probability


def _respond(likelihood: AbstractLikelihood, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The response at a latent value."""
    if isinstance(likelihood, Bernoulli | Binomial):
        is_probit = isinstance(likelihood, Bernoulli) and likelihood.link == "probit"
        return torch.special.ndtr(f) if is_probit else torch.sigmoid(f)
    return f.exp() if isinstance(likelihood, Poisson | NegativeBinomial) else f


def _check_response(likelihood: AbstractLikelihood) -> None:
    if not isinstance(likelihood, Gaussian | StudentT | Bernoulli | Binomial | Poisson | NegativeBinomial):
        raise UnsupportedError(
            f"What the response of a {type(likelihood).__name__} likelihood is, is not known. Those with a response "
            "are Gaussian, StudentT, Bernoulli, Binomial, Poisson and NegativeBinomial."
        )


def _check_between(threshold: float, most: float, likelihood: AbstractLikelihood) -> None:
    if not 0.0 < threshold < most:
        what = "a prevalence between 0 and 1" if most == 1.0 else "a positive, finite rate"
        raise ValueRangeError(
            f"threshold of a {type(likelihood).__name__} likelihood must be {what}, but is {threshold!r}. Counts "
            "become prevalences or rates when divided by their totals or exposures."
        )
