"""Absorbing a row under a policy of inducing points."""

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning import SparseGP
from streamgp.conditioning.selection import site_information
from streamgp.linalg import pivoted_cholesky

__all__ = ["absorb_row", "printed_points", "resample_points"]


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
        policy: `"pivoted"` chooses inducing points by what they explain, `"printed"` likewise with the weights that the
            paper prints, `"resample"` replaces a random one by the input, `"fixed"` keeps them.
        noise_variance: Variance of the noise.
        generator: Source of randomness, for `"resample"`.
    """
    if policy == "resample":
        points = resample_points(gp.inducing_points, x, generator)
        return gp.absorb(x, y, noise_variance=noise_variance, inducing=points)[0]
    if policy == "printed":
        points = printed_points(gp, x, noise_variance)
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


def printed_points(gp: SparseGP, x: Float[Tensor, "1 d"], noise_variance: float) -> Float[Tensor, "m d"]:
    r"""Choose points by pivoted Cholesky of $\Sigma^{-1/2} K \Sigma^{-1/2}$ over the old points and the new input.

    The noise of an old point is that of its pseudo-observation, the inverse of the information held at it. The rule of
    the library takes the geometric mean of that information and of the new input's precision.

    Args:
        gp: Belief before the row.
        x: The new input, a row.
        noise_variance: Variance of its noise.
    """
    process = gp.process
    candidates = torch.cat([process.inducing_points, x])
    information = site_information(process).clamp_min(0.0)
    weights = torch.cat([information, information.new_tensor([1.0 / noise_variance])])
    chosen = pivoted_cholesky(
        process.prior.covariance,
        candidates,
        len(process.inducing_points),
        variance=process.prior.variance(candidates),
        weights=weights,
    )
    return candidates[chosen.pivots.sort().values]
