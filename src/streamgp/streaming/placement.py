"""Where the inducing points of a stream are placed when it is learned anew."""

from typing import NamedTuple

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from streamgp.gp import read_kernel
from streamgp.linalg import pivoted_cholesky
from streamgp.streaming.bank import Bank
from streamgp.streaming.settings import Room
from streamgp.training.inducing import extend_points, kmeans_points

__all__ = ["Placement", "place_points"]

# Of the latest rows, so many for each inducing point are where half of the points are placed.
_LATEST_OF_POINT = 3
# What points that suffice may leave of the prior variance, in units of the noise. With five times as much, lengthscales
# were learned that are too long: for each value, half of this is missing in the bound.
_ENOUGH_SLACK = 0.01


class Placement(NamedTuple):
    """Where inducing points are.

    Attributes:
        points: The points.
        is_enough: Whether they leave next to nothing open.
    """

    points: Float[Tensor, "m d"]
    is_enough: bool


def place_points(
    kernel: Kernel,
    inputs: Float[Tensor, "n d"],
    anchor: Bank | None,
    room: Room,
    noise: float,
    *,
    seed: int,
    current: Float[Tensor, "k d"] | None = None,
) -> Placement:
    """Inducing points for the inputs and for what was believed before.

    Greedily, where so many suffice for all of it. Otherwise they stay where they were learned to be, and moved since,
    and where there is room for more, these are for all inputs. Where none were learned, half are for the latest inputs,
    and of the other half one half for all inputs and one for what was believed before them, which is known at few
    points alone.

    Args:
        kernel: The kernel.
        inputs: The inputs, the latest last.
        anchor: What was believed before them.
        room: How many points there may be.
        noise: The noise variance.
        seed: Of random choices.
        current: Where points are that were learned under a similar kernel.
    """
    candidates = inputs if anchor is None else torch.cat([inputs, anchor.inducing_points])
    most = room.most
    greedy, slack = _greedy_points(kernel, candidates, room, _ENOUGH_SLACK * noise)
    if slack <= _ENOUGH_SLACK * noise:
        return Placement(greedy, is_enough=True)
    generator = torch.Generator().manual_seed(seed)
    if current is not None:
        return Placement(extend_points(kernel, current, inputs, most, generator=generator), is_enough=False)
    half = most - most // 2
    everywhere = kmeans_points(kernel, inputs, half if anchor is None else half - half // 2, generator=generator)
    if anchor is not None:
        everywhere = extend_points(kernel, everywhere, anchor.inducing_points, half, generator=generator)
    latest = inputs[-_LATEST_OF_POINT * most :]
    return Placement(extend_points(kernel, everywhere, latest, most, generator=generator), is_enough=False)


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
