"""Seeds that depend on counters, so that each use has its own and a run can be taken up anywhere."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from streamgp.checks import check_seed

__all__ = ["derived_seed", "seeded", "sobol_points"]


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


def derived_seed(seed: int, *counters: int) -> int:
    """A seed for one use of many, each of which has other counters."""
    return int(np.random.SeedSequence([check_seed(seed), *counters]).generate_state(1)[0])


def seeded(seed: int, *counters: int) -> torch.Generator:
    """A generator that starts from a derived seed."""
    return torch.Generator().manual_seed(derived_seed(seed, *counters))
