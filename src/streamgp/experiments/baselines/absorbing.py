"""Absorbing a row under a policy of inducing points."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.experiments.baselines.resampling import resample_points

__all__ = ["absorb_row"]


def absorb_row(
    gp: SparseGP,
    x: Float[Tensor, "1 d"],
    y: Float[Tensor, " 1"],
    *,
    policy: str,
    noise_variance: float,
    generator: torch.Generator,
) -> SparseGP:
    """Absorb a row; its cost does not depend on how many came before.

    Args:
        gp: Belief before the row.
        x: Input.
        y: Target.
        policy: `"pivoted"` chooses inducing points by what they explain, `"resample"` replaces a random one by the
            input, `"fixed"` keeps them.
        noise_variance: Variance of the noise.
        generator: Source of randomness, for `"resample"`.
    """
    if policy == "resample":
        points = resample_points(gp.inducing_points, x, generator)
        return gp.absorb(x, y, noise_variance=noise_variance, inducing=points)[0]
    inducing = {"pivoted": "pivoted", "fixed": "keep"}[policy]
    return gp.absorb(x, y, noise_variance=noise_variance, inducing=inducing)[0]
