"""Centers of clusters of all inputs, wherever they are: Lloyd's iteration as sums over shards."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.scaling import Scaling
from streamgp.training.sharding.shards import AbstractShards, blocks_of

__all__ = ["Clusters", "kmeans_over_shards"]

# Passes over all rows, and the share of the inertia that one must gain to be followed by another.
_MOST_STEPS, _LEAST_GAIN = 30, 1e-4


class Clusters(NamedTuple):
    """Centers of clusters.

    Attributes:
        centers: One for each cluster.
        inertia: The sum of all squared distances to the closest center, at the last pass.
        num_steps: Passes over all rows.
    """

    centers: Float[Tensor, "m d"]
    inertia: float
    num_steps: int


def kmeans_over_shards(
    shards: AbstractShards,
    centers: Float[Tensor, "m d"],
    *,
    units: Float[Tensor, "*u d"] | float = 1.0,
    likelihood: AbstractLikelihood | None = None,
    scaling: Scaling | None = None,
) -> Clusters:
    """Move centers to the means of the inputs that are closest to them, until there is little to gain.

    A pass sends the centers to each shard, and brings back the sum and the number of the inputs of each cluster:
    `m (d + 1)` numbers. How the rows are divided makes no difference but for rounding. A center without inputs stays.

    Args:
        shards: Pairs (X, y).
        centers: Where to start, in the units of training.
        units: What distances are divided by in each dimension.
        likelihood: What checks the targets.
        scaling: Units of training.

    References:
        Lloyd (1982), Least squares quantization in PCM.
    """
    inertia, num_steps, is_done = float("inf"), 0, False
    while not is_done and num_steps < _MOST_STEPS:
        question = _Assign(centers, torch.as_tensor(units).to(centers), likelihood, scaling)
        (tally,) = shards.ask(question, plus=_Tally.plus)
        gain, inertia, num_steps = inertia - float(tally.inertia), float(tally.inertia), num_steps + 1
        is_done = gain <= _LEAST_GAIN * inertia
        if not is_done:
            centers = centers + tally.moves / tally.counts.clamp_min(1.0).unsqueeze(-1)
    return Clusters(centers, inertia, num_steps)


class _Tally(NamedTuple):
    """Sums over the inputs of each cluster: differences from the center, their number, and all squared distances."""

    moves: Float[Tensor, "m d"]
    counts: Float[Tensor, " m"]
    inertia: Tensor

    def plus(self, other: "_Tally") -> "_Tally":
        return _Tally(self.moves + other.moves, self.counts + other.counts, self.inertia + other.inertia)


@final
@dataclass(frozen=True, eq=False)
class _Assign:
    """Find the closest center of each input of a shard."""

    centers: Tensor
    units: Tensor
    likelihood: AbstractLikelihood | None
    scaling: Scaling | None

    def __call__(self, index: int, shard: Any, kept: Any) -> _Tally:
        C = self.centers
        total = _Tally(torch.zeros_like(C), C.new_zeros(len(C)), C.new_zeros(()))
        for data in blocks_of(index, shard, likelihood=self.likelihood, scaling=self.scaling):
            X = data.all_inputs.to(C)
            labels = torch.cdist(X / self.units, C / self.units).argmin(-1)
            differences = X - C[labels]
            moves = torch.zeros_like(C).index_add_(0, labels, differences)
            counts = torch.bincount(labels, minlength=len(C)).to(C)
            total = total.plus(_Tally(moves, counts, (differences / self.units).square().sum()))
        return total
