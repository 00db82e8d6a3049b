"""Points that do not come from a model: the initial design, candidates, and seeds that repeat."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

__all__ = ["apart", "candidates_around", "derived_seed", "sobol_points"]

# Two suggestions closer than this, in every coordinate of the unit cube, are taken for the same one.
_APART = 5e-3
# Candidates near good points are this far from them at least and at most, and change so many coordinates on average.
_NEAR, _FAR, _NUM_CHANGED = 0.005, 0.2, 20


def derived_seed(seed: int, *counters: int) -> int:
    """A seed that depends on counters, so that each use has its own and a run can be taken up anywhere."""
    return int(np.random.SeedSequence([seed, *counters]).generate_state(1)[0])


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


def candidates_around(
    centres: Float[Tensor, "c d"], num_points: int, *, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Candidates, half over the whole cube and half around given points at distances of all sizes.

    Args:
        centres: Good points; at least one.
        num_points: Number of candidates.
        generator: Source of randomness.
    """
    d, num_near = centres.shape[-1], num_points // 2
    seed = int(torch.randint(2**31, (), generator=generator))
    wide = sobol_points(num_points - num_near, d, seed=seed)
    index = torch.randint(len(centres), (num_near,), generator=generator)
    share = torch.rand(num_near, 1, generator=generator, dtype=torch.float64)
    distance = _NEAR * (_FAR / _NEAR) ** share
    step = distance * torch.randn(num_near, d, generator=generator, dtype=torch.float64)
    is_changed = torch.rand(num_near, d, generator=generator) < min(1.0, _NUM_CHANGED / d)
    near = (centres[index] + torch.where(is_changed, step, 0.0)).clamp(0.0, 1.0)
    return torch.cat([wide, near])


def apart(points: Float[Tensor, "q d"], taken: Float[Tensor, "p d"], *, seed: int) -> Float[Tensor, "q d"]:
    """Replace points that repeat a taken one, or one before them, by points of a Sobol sequence.

    Acquisition functions that know of pending points do not repeat them unless little is left to learn; this makes
    sure. If the cube is too full for any point to be new, the one farthest from the others is taken.

    Args:
        points: Suggestions.
        taken: Points not to be suggested again.
        seed: Of the sequence.
    """
    kept = taken
    for point in points:
        if _distance(point.unsqueeze(0), kept) < _APART:
            others = sobol_points(256, points.shape[-1], seed=seed)
            distances = _distances(others, kept)
            is_new = distances >= _APART
            point = others[int(is_new.double().argmax() if is_new.any() else distances.argmax())]
        kept = torch.cat([kept, point.unsqueeze(0)])
    return kept[len(taken) :]


def _distance(point: Float[Tensor, "1 d"], others: Float[Tensor, "p d"]) -> float:
    return float(_distances(point, others))


def _distances(points: Float[Tensor, "n d"], others: Float[Tensor, "p d"]) -> Float[Tensor, " n"]:
    """Largest difference of a coordinate to the nearest other point."""
    if not len(others):
        return points.new_full((len(points),), torch.inf)
    return (points.unsqueeze(1) - others).abs().amax(-1).amin(-1)
