"""The noise of an observation before it is made: known for Gaussian ones, from the curvature for others."""

from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError, UnsupportedError
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["expected_noise_variance"]

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
