"""The likelihoods of a model as the module that BoTorch and GPyTorch look for."""

from typing import Any, final

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from torch import Tensor

from streamgp.errors import UnsupportedError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["ObservationModel"]


@final
class ObservationModel(torch.nn.Module):
    """Likelihoods of all outputs; has no parameters.

    Attributes:
        likelihoods: One for each output, None where there is none.
    """

    def __init__(self, likelihoods: tuple[AbstractLikelihood | None, ...]) -> None:
        """Keep the likelihoods."""
        super().__init__()
        self.likelihoods = likelihoods

    @property
    def noise(self) -> Tensor:
        """Noise variance of each output, where all are Gaussian; the mean, where observations have their own."""
        values = []
        for j, one in enumerate(self.likelihoods):
            noise = None if one is None else one.gaussian_noise_variance
            if noise is None:
                raise UnsupportedError(
                    f"Output {j} has no Gaussian noise: its likelihood is {type(one).__name__}. "
                    "Use model.likelihoods, or posterior with observation_noise=True."
                )
            values.append(noise.mean())
        return torch.stack(values)

    def forward(self, distribution: MultivariateNormal, *args: Any, **kwargs: Any) -> MultivariateNormal:
        """Add Gaussian noise to a distribution in the units of the GPs, as GPyTorch's likelihoods do."""
        noise = kwargs.get("noise")
        covariance, mean = distribution.lazy_covariance_matrix, distribution.mean
        noise = self.noise.to(mean) if noise is None else noise
        if not isinstance(distribution, MultitaskMultivariateNormal):
            return MultivariateNormal(mean, covariance.add_diagonal(noise.expand(mean.shape)))
        # Tasks are one after the other on the diagonal, unless they are interleaved.
        noise = noise.expand(mean.shape)
        rows = noise if distribution._interleaved else noise.mT
        is_interleaved = distribution._interleaved
        total = covariance.add_diagonal(rows.flatten(-2))
        return MultitaskMultivariateNormal(mean, total, interleaved=is_interleaved)
