"""Posteriors on the scale of the responses: rates, probabilities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from botorch.posteriors.posterior import Posterior
from botorch.posteriors.transformed import TransformedPosterior
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood

__all__ = ["response_posterior"]


def response_posterior(
    posterior: Posterior, likelihoods: tuple[AbstractLikelihood | None, ...], *, is_observed: bool
) -> TransformedPosterior:
    r"""The posterior of the expected response $g(f) = \mathbb{E}[y \mid f]$ of each output, or of outcomes $y$.

    Samples are $g$ of latent samples, differentiable, or outcomes drawn for them from torch's global generator, which
    are not. Means are exact, and variances of $g(f)$ are where they have a closed form. Outputs with a Gaussian
    likelihood, or none, stay as they are.

    Args:
        posterior: Of the latent functions; with noise for Gaussian outputs, if outcomes are asked for.
        likelihoods: One for each output.
        is_observed: Whether to predict outcomes.
    """
    links = _Links(tuple(None if one is None or one.is_gaussian else one for one in likelihoods))
    if is_observed:
        return TransformedPosterior(posterior, links.outcome, links.mean, links.outcome_variance)
    return TransformedPosterior(posterior, links.response, links.mean, links.variance)


@final
@dataclass(frozen=True)
class _Links:
    """The maps from latent values to responses, column by column; None leaves a column as it is."""

    likelihoods: tuple[AbstractLikelihood | None, ...]

    def mean(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self._columns(lambda one, m, v: one.predictive_mean(m, v), mean, mean, variance)

    def response(self, samples: Tensor) -> Tensor:
        return self._columns(lambda one, f: one.conditional_mean(f), samples, samples)

    def variance(self, mean: Tensor, variance: Tensor) -> Tensor:
        def spread(one: AbstractLikelihood, m: Tensor, v: Tensor) -> Tensor:
            somewhere = torch.ones_like(m)  # where no response is zero
            trials = one.conditional_mean(somewhere) / one.response(somewhere)  # or exposure
            return (trials.square() * one.response_variance(m, v)).clamp_max(torch.finfo(v.dtype).max)

        return self._columns(spread, variance, mean, variance)

    def outcome(self, samples: Tensor) -> Tensor:
        return self._columns(lambda one, f: one.sample(f), samples, samples)

    def outcome_variance(self, mean: Tensor, variance: Tensor) -> Tensor:
        return self._columns(lambda one, m, v: one.predictive_variance(m, v), variance, mean, variance)

    def _columns(self, link: Callable[..., Tensor], default: Tensor, *arguments: Tensor) -> Tensor:
        columns = [
            default[..., j] if one is None else link(one, *(value[..., j] for value in arguments))
            for j, one in enumerate(self.likelihoods)
        ]
        return torch.stack(columns, dim=-1)
