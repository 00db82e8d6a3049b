"""Look-ahead Thompson sampling."""

from dataclasses import dataclass, replace
from typing import final

import torch
from botorch.models.model import Model
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.samplers import AbstractSampler, read_sampler
from streamgp.acquisition.space import CandidateSource, read_candidates
from streamgp.acquisition.thompson import best_of_each, thompson_sampling
from streamgp.checks import check_count

__all__ = ["LookaheadPaths", "extend_paths", "lookahead_thompson_sampling", "start_paths"]


@final
@dataclass(frozen=True, eq=False)
class LookaheadPaths:
    """Functions that are being followed, each known by its values at the points it was followed to.

    Attributes:
        points: Points of all paths.
        index: Which of them each path went to, in order.
        values: Value of each path there, in the units of the sampler.
    """

    points: Float[Tensor, "k d"]
    index: Int[Tensor, "s t"]
    values: Float[Tensor, "s t"]

    def union(self) -> tuple[Float[Tensor, "u d"], Float[Tensor, " u"]]:
        """All points once, with the value of the path that came first to each."""
        inputs, values = self.points[self.index.mT.flatten()], self.values.mT.flatten()
        distinct, group = torch.unique(inputs, dim=0, return_inverse=True)
        order = torch.arange(len(inputs), device=inputs.device)
        first = torch.full((len(distinct),), len(inputs), device=inputs.device).scatter_reduce(0, group, order, "amin")
        return inputs[first], values[first]


@torch.no_grad()
def lookahead_thompson_sampling(
    model: Model,
    candidates: CandidateSource,
    *,
    q: int = 1,
    depth: int = 4,
    num_paths: int = 10,
    num_candidates: int = 5000,
    sampling: str = "auto",
    maximize: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Choose points by Thompson sampling from a model that has looked ahead.

    1. One function is drawn at candidates, and the best $l$ points with their values start $l$ paths.
    2. At each further depth, each path draws a function given its own values so far, without noise, so that a path is
       one function throughout; all paths in one batch. It goes on to that function's best candidate.
    3. The model is conditioned on the points of all paths, at most $l T$, with their values. As these come from
       different functions, they are taken for observations with the noise that the model expects of them.
    4. Plain Thompson sampling from the conditioned model gives the points.

    At depth 0 it is plain Thompson sampling.

    Args:
        model: `OnlineGP`, or another BoTorch model with Gaussian posteriors; of one output, whose latent
            function is followed.
        candidates: A set `(n, d)` for all depths, or a function that draws a set of a given number of points.
        q: Number of points.
        depth: Depth $T$.
        num_paths: Number of paths $l$.
        num_candidates: How many to ask the function for at the end; the depths before share as many between them.
        sampling: As in `thompson_sampling`.
        maximize: Whether large values are wanted, or small ones.
        generator: Source of randomness.

    Returns:
        Points `(q, d)`, all different candidates.

    References:
        Maddox, Stanton, Wilson (2021), Conditioning sparse variational Gaussian processes for online decision-making;
        the algorithm is corrected where its listing would leave the look-ahead without effect.
    """
    q, num_paths = check_count(q, "q"), check_count(num_paths, "num_paths")
    depth = check_count(depth, "depth", minimum=0)
    if depth == 0:
        return thompson_sampling(
            model,
            candidates,
            q=q,
            num_candidates=num_candidates,
            sampling=sampling,
            maximize=maximize,
            generator=generator,
        )
    sampler = read_sampler(model, sampling, maximize=maximize)
    share, needed = max(num_candidates // depth, num_paths), max(num_paths, depth)
    paths = start_paths(sampler, read_candidates(candidates, share, at_least=needed), num_paths, generator)
    for _ in range(depth - 1):
        paths = extend_paths(sampler, paths, read_candidates(candidates, share, at_least=needed), generator)
    points, values = paths.union()
    C = read_candidates(candidates, num_candidates, at_least=q)
    samples = sampler.sample(points, C, num_samples=q, generator=generator)
    return C[best_of_each(samples.given_values(values, sampler.noise_variance(points), generator))]


def start_paths(
    sampler: AbstractSampler, candidates: Float[Tensor, "n d"], num_paths: int, generator: torch.Generator | None
) -> LookaheadPaths:
    """Draw one function, and start a path at each of its best points."""
    samples = sampler.sample(candidates[:0], candidates, num_samples=1, generator=generator)
    best = samples.at_candidates.squeeze(0).topk(num_paths)
    index = torch.arange(num_paths, device=candidates.device).unsqueeze(-1)
    return LookaheadPaths(candidates[best.indices], index, best.values.unsqueeze(-1))


def extend_paths(
    sampler: AbstractSampler, paths: LookaheadPaths, candidates: Float[Tensor, "n d"], generator: torch.Generator | None
) -> LookaheadPaths:
    """Draw a function for each path, given its values so far, and follow it to its best point that is new to it."""
    samples = sampler.sample(paths.points, candidates, num_samples=len(paths.index), generator=generator)
    values = samples.given_own_values(paths.index, paths.values)
    is_same = (paths.points.unsqueeze(1) == candidates).all(-1)
    best = values.masked_fill(is_same[paths.index].any(1), -torch.inf).max(-1)
    # Paths that go to the same candidate share a point.
    chosen, position = torch.unique(best.indices, return_inverse=True)
    index = len(paths.points) + position
    return replace(
        paths,
        points=torch.cat([paths.points, candidates[chosen]]),
        index=torch.cat([paths.index, index.unsqueeze(-1)], dim=-1),
        values=torch.cat([paths.values, best.values.unsqueeze(-1)], dim=-1),
    )
