"""Points of a scrambled Sobol sequence."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

__all__ = ["sobol_points"]


def sobol_points(num_points: int, num_dims: int, *, seed: int, skip: int = 0) -> Float[Tensor, "n d"]:
    """Points of a scrambled Sobol sequence in the unit cube.

    Args:
        num_points: How many.
        num_dims: Number of dimensions.
        seed: Of the scrambling.
        skip: How many to leave out first.
    """
    engine = SobolEngine(num_dims, scramble=True, seed=seed)
    if skip:
        engine.fast_forward(skip)
    return engine.draw(num_points, dtype=torch.float64)
