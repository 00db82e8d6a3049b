"""The noise of an observation before it is made: known for Gaussian ones, from the curvature for others."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError, UnsupportedError
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood, Bernoulli, Gaussian

__all__ = ["expected_curvature", "expected_noise_variance"]

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
    if isinstance(likelihood, Gaussian):
        noise = likelihood.noise_variance.to(prediction.inputs)
        return noise.mean().unsqueeze(-1)
    if likelihood.num_inputs != 1:
        raise UnsupportedError(
            f"A {type(likelihood).__name__} observation looks at {likelihood.num_inputs} inputs, so there is none at "
            "single inputs to fantasise. Pass the noise variance of a latent observation as a tensor."
        )
    W = expected_curvature(likelihood, prediction.mean, prediction.variance)
    return 1.0 / W.clamp_min(_LEAST_PRECISION)


def expected_curvature(
    likelihood: AbstractLikelihood, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    r"""The precision with which an observation to come is expected to tell of its latent value.

    $$
    W = -\mathbb{E}_{\hat y} \, \mathbb{E}_{f \sim \mathcal N(m, v)} [\partial_f^2 \log p(\hat y \mid f)],
    $$

    where $\hat y$ takes the values $M \pm \sqrt V$ with equal probability, $M$ and $V$ being the predicted mean and
    variance of $y$; for two classes it takes 0 and 1 with their predicted probabilities. Counts and logit classes have
    a curvature that does not depend on $\hat y$.

    Args:
        likelihood: Of one observation given its latent value.
        mean: $m$, the predicted mean of $f$.
        variance: $v$, its variance.
    """
    m, v = torch.broadcast_tensors(mean, variance)
    M = likelihood.predictive_mean(m, v)
    if isinstance(likelihood, Bernoulli):
        outcomes, weights = (torch.zeros_like(M), torch.ones_like(M)), (1.0 - M, M)
    else:
        spread = likelihood.predictive_variance(m, v).clamp_min(0.0).sqrt()
        outcomes, weights = (M - spread, M + spread), (torch.full_like(M, 0.5), torch.full_like(M, 0.5))
    curvatures = [likelihood.expected_derivatives(m, v, y.detach())[1] for y in outcomes]
    return -(weights[0] * curvatures[0] + weights[1] * curvatures[1])
