"""Where the inducing points of a stream are placed when it is learned anew."""

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import read_kernel
from streamgp.linalg import pivoted_cholesky
from streamgp.streaming.bank import Bank
from streamgp.streaming.settings import Room
from streamgp.training.inducing import extend_points, kmeans_points

__all__ = ["place_points"]

# Of the latest rows, so many for each inducing point are where half of the points are placed.
_LATEST_OF_POINT = 3
# What points that suffice may leave of the prior variance beside the noise; and what they may leave of it before there
# are more, where there is room for them.
_ENOUGH_SLACK, _LEAST_SLACK = 0.05, 0.01


def place_points(
    kernel: Kernel, inputs: Float[Tensor, "n d"], anchor: Bank | None, room: Room, noise: float, *, seed: int
) -> Float[Tensor, "m d"]:
    """Inducing points for the inputs and for what was believed before.

    Greedily, where so many suffice for all of it. Otherwise half are for the latest inputs, and of the other half one
    half for all inputs and one for what was believed before them, which is known at few points alone.

    Args:
        kernel: The kernel.
        inputs: The inputs, the latest last.
        anchor: What was believed before them.
        room: How many points there may be.
        noise: The noise variance.
        seed: Of random choices.
    """
    candidates = inputs if anchor is None else torch.cat([inputs, anchor.inducing_points])
    most = room.most
    greedy, slack = _greedy_points(kernel, candidates, room, _LEAST_SLACK * noise)
    if slack <= _ENOUGH_SLACK * noise:
        return greedy
    generator = torch.Generator().manual_seed(seed)
    half = most - most // 2
    everywhere = kmeans_points(kernel, inputs, half if anchor is None else half - half // 2, generator=generator)
    if anchor is not None:
        everywhere = extend_points(kernel, everywhere, anchor.inducing_points, half, generator=generator)
    return extend_points(kernel, everywhere, inputs[-_LATEST_OF_POINT * most :], most, generator=generator)


def _greedy_points(
    kernel: Kernel, inputs: Float[Tensor, "n d"], room: Room, tolerance: float
) -> tuple[Float[Tensor, "m d"], float]:
    """Points chosen greedily until little of the prior variance is left, on average; and what is left."""
    function = read_kernel(kernel)
    with torch.no_grad():
        variance = function.diagonal(inputs).expand(len(inputs)).contiguous()
        size = room.least
        while True:
            chosen = pivoted_cholesky(function.matrix, inputs, size, variance=variance)
            slack = float(chosen.residual.mean())
            if slack <= tolerance or size >= min(room.most, len(inputs)):
                return inputs[chosen.pivots], slack
            size = min(2 * size, room.most)
