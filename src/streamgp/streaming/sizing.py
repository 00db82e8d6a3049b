"""How many inducing points a stream needs."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["num_unexplained"]

# What the inducing points may leave unexplained of an observation, in units of its noise; as in fit.
_SLACK_TOLERANCE = 0.05


def num_unexplained(
    gp: SparseGP, likelihood: AbstractLikelihood, X: Float[Tensor, "n d"], y: Float[Tensor, " n"]
) -> int:
    r"""Count observations whose latent value the inducing points leave open, compared with what is observed of it.

    Counted is $\tau (k(x, x) - \phi(x)^\top \phi(x)) > 0.05$, with the expected curvature $\tau$ of the observation's
    log density, the inverse noise variance for Gaussian ones.
    """
    process = gp.process
    slack = process.prior.variance(X) - process.features(X).square().sum(-2)
    _, curvature = likelihood.expected_derivatives(process.mean(X), process.variance(X).clamp_min(0.0), y)
    return int(torch.count_nonzero(-curvature * slack > _SLACK_TOLERANCE))
