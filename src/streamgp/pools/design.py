"""The first members to observe, before there is a model, and seeds that repeat."""

import numpy as np
import torch
from gpytorch.kernels import RBFKernel
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.training.inducing import kmeans_points

__all__ = ["first_members", "seeded"]

_DESIGN = 0


def seeded(seed: int, *counters: int) -> torch.Generator:
    """A generator that depends on counters, so that each use has its own and a run can be taken up anywhere."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence([seed, *counters]).generate_state(1)[0]))


def first_members(
    scaled: Float[Tensor, "n d"], available: Int[Tensor, " a"], q: int, *, num_initial: int, num_before: int, seed: int
) -> Int[Tensor, " q"]:
    """Members nearest to centres of clusters of the whole pool, which fill it as it is filled.

    Args:
        scaled: Inputs in units in which distances mean something.
        available: Members that may be chosen, at least `q`.
        q: How many.
        num_initial: Number of clusters.
        num_before: How many were chosen before; the centres are gone through in a random order, again and again.
        seed: Of everything random.
    """
    generator = seeded(seed, _DESIGN)
    kernel = RBFKernel().to(scaled)
    kernel.lengthscale = 1.0
    centres = kmeans_points(kernel, scaled, num_initial, generator=generator)
    order = torch.randperm(len(centres), generator=generator)
    chosen = []
    for k in range(num_before, num_before + q):
        centre = centres[order[k % len(order)]]
        nearest = available[(scaled[available] - centre).square().sum(-1).argmin()]
        chosen.append(nearest)
        available = available[available != nearest]
    return torch.stack(chosen)
