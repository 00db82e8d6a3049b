"""The search for the maximum of an acquisition function over the unit cube."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from botorch.generation.gen import gen_candidates_scipy
from botorch.utils.sampling import manual_seed
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import Search
from streamgp.seeds import seeded, sobol_points
from streamgp.threads import limit_threads

__all__ = ["candidates_around", "climb", "evaluate_in_parts", "maximize_in_cube", "one_after_the_other"]

# Candidates near good points are this far from them at least and at most, and change so many coordinates on average.
_NEAR, _FAR, _NUM_CHANGED = 0.005, 0.2, 20
# Points that are evaluated at once.
_PART = 256


def maximize_in_cube(
    function: Any,
    q: int,
    search: Search,
    *,
    num_dims: int,
    seed: int,
    centers: Float[Tensor, "c d"] | None = None,
) -> Float[Tensor, "q d"]:
    """Maximize by L-BFGS from several starts; several points one after the other.

    Starts are the best of random points: half of them the best over the whole cube, and half of them the best near good
    points, where a function that knows a lot has narrow peaks.

    Args:
        function: Acquisition function of BoTorch.
        q: Number of points.
        search: How much work to do.
        num_dims: Dimension of the cube.
        seed: Of the random starts.
        centers: Good points; without them, all random points are over the whole cube.
    """
    with limit_threads(), manual_seed(seed):

        def maximize(k: int) -> Tensor:
            first = _choose_starts(function, search, num_dims=num_dims, seed=seed + k, centers=centers)
            points, values = climb(function, first, search, lower=0.0, upper=1.0)
            return points[values.argmax()].unsqueeze(0)

        return one_after_the_other(function, q, maximize)


def climb(
    function: Any, starts: Float[Tensor, "r d"], search: Search, *, lower: Any, upper: Any, **options: Any
) -> tuple[Float[Tensor, "r d"], Float[Tensor, " r"]]:
    """Improve points of the cube by gradients, each for itself.

    Args:
        function: Acquisition function.
        starts: The points.
        search: How much work to do.
        lower: Lower bounds.
        upper: Upper bounds.
        **options: Of `gen_candidates_scipy` of BoTorch.
    """
    # A line search that ends early leaves a point where it is; BoTorch would warn of it, whatever the filters say.
    with warnings.catch_warnings(record=True):
        points, values = gen_candidates_scipy(
            starts.unsqueeze(1), function, lower, upper, options={"maxiter": search.max_iterations}, **options
        )
    return points.detach().squeeze(1).clamp(0.0, 1.0), values.detach()


def one_after_the_other(function: Any, q: int, maximize: Callable[[int], Tensor]) -> Float[Tensor, "q d"]:
    """Choose points, each given that those before it are pending.

    Args:
        function: Acquisition function, whose pending points are as before in the end.
        q: Number of points.
        maximize: Finds the point `(1, d)` of the given number.
    """
    before = function.X_pending if q > 1 else None
    chosen = maximize(0)
    for k in range(1, q):
        function.set_X_pending(chosen if before is None else torch.cat([before, chosen]))
        chosen = torch.cat([chosen, maximize(k)])
    if q > 1:
        function.set_X_pending(before)
    return chosen


@torch.no_grad()
def evaluate_in_parts(function: Any, points: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """Values of an acquisition function at single points."""
    return torch.cat([function(part.unsqueeze(-2)) for part in points.split(_PART)])


def candidates_around(
    centers: Float[Tensor, "c d"], num_points: int, *, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Candidates, half over the whole cube and then half around given points at distances of all sizes.

    Args:
        centers: Good points; at least one.
        num_points: Number of candidates.
        generator: Source of randomness.
    """
    d, num_near = centers.shape[-1], num_points // 2
    seed = int(torch.randint(2**31, (), generator=generator))
    wide = sobol_points(num_points - num_near, d, seed=seed)
    index = torch.randint(len(centers), (num_near,), generator=generator)
    share = torch.rand(num_near, 1, generator=generator, dtype=torch.float64)
    distance = _NEAR * (_FAR / _NEAR) ** share
    step = distance * torch.randn(num_near, d, generator=generator, dtype=torch.float64)
    is_changed = torch.rand(num_near, d, generator=generator) < min(1.0, _NUM_CHANGED / d)
    near = (centers[index] + torch.where(is_changed, step, 0.0)).clamp(0.0, 1.0)
    return torch.cat([wide, near])


def _choose_starts(
    function: Any, search: Search, *, num_dims: int, seed: int, centers: Tensor | None
) -> Float[Tensor, "r d"]:
    num_starts = search.num_restarts
    if centers is None:
        raw = sobol_points(max(search.raw_samples, num_starts), num_dims, seed=seed)
        return raw[evaluate_in_parts(function, raw).topk(num_starts).indices]
    raw = candidates_around(centers, max(search.raw_samples, 2 * num_starts), generator=seeded(seed))
    values, num_wide = evaluate_in_parts(function, raw), len(raw) - len(raw) // 2
    wide = values[:num_wide].topk(num_starts - num_starts // 2).indices
    near = values[num_wide:].topk(num_starts // 2).indices + num_wide
    return raw[torch.cat([wide, near])]
