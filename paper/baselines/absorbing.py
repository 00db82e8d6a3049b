"""Absorbing a row under a policy of inducing points."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP

__all__ = ["absorb_row", "resample_points"]


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


def resample_points(
    points: Float[Tensor, "m d"], x: Float[Tensor, "1 d"], generator: torch.Generator
) -> Float[Tensor, "m d"]:
    """Replace a random inducing point by a new input.

    Args:
        points: The points so far.
        x: The new input, a row.
        generator: Source of randomness.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
    """
    left = int(torch.randint(len(points), (1,), generator=generator))
    return torch.cat([points[:left], points[left + 1 :], x])
