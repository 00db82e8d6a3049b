"""The likelihoods of a model as the module that BoTorch and GPyTorch look for."""

from typing import Any, final

import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError, UnsupportedError
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["ObservationModel", "expected_noise_variance"]

# Where an observation would tell nothing, its noise is bounded at this precision, as in the paper's code.
_LEAST_PRECISION = 1e-6


def expected_noise_variance(likelihood: AbstractLikelihood | None, prediction: Prediction) -> Float[Tensor, "..."]:
    r"""The variance of the Gaussian noise with which an observation to come would tell of the latent function.

    For a Gaussian likelihood its noise variance; the mean, where each past observation had its own. For others
    $W^{-1}$, with the expected curvature $W$. Differentiable in the moments.
    """
    if likelihood is None:
        raise OptionError(
            "The model was made without a likelihood, so the noise of an observation is not known. "
            "Pass a likelihood to OnlineGP, or the noise variance as a tensor."
        )
    noise = likelihood.gaussian_noise_variance
    if noise is not None:
        return noise.to(prediction.process.reference).mean().unsqueeze(-1)
    if likelihood.num_inputs != 1:
        raise UnsupportedError(
            f"A {type(likelihood).__name__} observation looks at {likelihood.num_inputs} inputs, so there is none at "
            "single inputs to fantasize. Pass the noise variance of a latent observation as a tensor."
        )
    W = likelihood.expected_curvature(prediction.mean, prediction.variance)
    return 1.0 / W.clamp_min(_LEAST_PRECISION)


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
