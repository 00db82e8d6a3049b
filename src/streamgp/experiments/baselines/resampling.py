"""Inducing points by resampling: each new row takes the place of a random one."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["resample_points"]


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
