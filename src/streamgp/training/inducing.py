"""Choosing inducing points among the inputs."""

import warnings
from collections.abc import Callable

import numpy as np
import torch
from gpytorch.kernels import AdditiveKernel, Kernel
from jaxtyping import Float
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import cdist
from torch import Tensor

from streamgp.gp import AbstractSpectralKernel, read_kernel
from streamgp.linalg import pivoted_cholesky

__all__ = ["extend_points", "kernel_units", "kmeans_points", "leading_kernel", "pivoted_points"]

# Candidates of the greedy choice, which takes a pass over them for each point; more are drawn at random.
_MOST_CANDIDATES = 20_000
# Inputs for each center that is looked for, and steps of Lloyd's iteration: the centers are a start, not an end.
_ROWS_OF_CENTER, _NUM_LLOYD_STEPS = 20, 10


def pivoted_points(
    kernel: Kernel,
    inputs: Float[Tensor, "n d"],
    num_inducing: int,
    *,
    weights: Float[Tensor, " n"] | None = None,
    generator: torch.Generator,
) -> Float[Tensor, "m d"]:
    """Choose by greedy pivoted Cholesky of the weighted kernel matrix.

    Args:
        kernel: Current kernel.
        inputs: Candidates.
        num_inducing: How many; fewer come back if the others are copies of those chosen.
        weights: How much each input's observation tells, up to a factor.
        generator: Draws the candidates, where there are more than 20 000.
    """
    candidates, weights = _candidates(inputs, weights, generator, most=_MOST_CANDIDATES)
    function = read_kernel(kernel)
    with torch.no_grad():
        chosen = pivoted_cholesky(
            function.matrix,
            candidates,
            num_inducing,
            variance=function.diagonal(candidates).expand(len(candidates)).contiguous(),
            weights=weights,
        )
    return candidates[chosen.pivots]


def extend_points(
    kernel: Kernel,
    points: Float[Tensor, "m d"],
    inputs: Float[Tensor, "n d"],
    num_inducing: int,
    *,
    generator: torch.Generator,
) -> Float[Tensor, "k d"]:
    """Add inputs to given inducing points until there are enough, each where the others explain least."""
    num_more = num_inducing - len(points)
    if num_more <= 0:
        return points
    candidates, _ = _candidates(inputs, None, generator, most=_MOST_CANDIDATES)
    everything = torch.cat([points, candidates])
    function: Callable[[Tensor, Tensor], Tensor] = read_kernel(kernel).matrix
    with torch.no_grad():
        chosen = pivoted_cholesky(
            function,
            everything,
            num_inducing,
            variance=read_kernel(kernel).diagonal(everything).expand(len(everything)).contiguous(),
            start=torch.arange(len(points), device=points.device),
        )
    return everything[chosen.pivots]


def kmeans_points(
    kernel: Kernel, inputs: Float[Tensor, "n d"], num_inducing: int, *, generator: torch.Generator
) -> Float[Tensor, "m d"]:
    """Centers of clusters of the inputs, by Lloyd's iteration from k-means++ starts.

    Distances are in units of the kernel's lengthscales, where it is a stationary one.

    Args:
        kernel: Current kernel.
        inputs: What is clustered; a random part of them where there are many.
        num_inducing: How many; fewer come back if there are fewer distinct inputs.
        generator: Source of randomness.
    """
    candidates, _ = _candidates(inputs, None, generator, most=max(_ROWS_OF_CENTER * num_inducing, 1000))
    distinct = torch.unique(candidates, dim=0)
    if len(distinct) <= num_inducing:
        return distinct
    scale = kernel_units(kernel, like=inputs)
    rng = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
    points = (distinct / scale).cpu().numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of clusters that became empty, which are left out
        starts = _spread_starts(points, num_inducing, rng)
        centers, labels = kmeans2(points, starts, minit="matrix", iter=_NUM_LLOYD_STEPS)
    return torch.from_numpy(centers[np.unique(labels)]).to(inputs) * scale


def _spread_starts(
    points: Float[np.ndarray, "n d"], num_starts: int, rng: np.random.Generator
) -> Float[np.ndarray, "k d"]:
    """k-means++: each start is drawn in proportion to its squared distance from the nearest one before it.

    Distances are kept from one start to the next, so that this takes O(kn), where SciPy's own takes O(k²n).
    """
    chosen = [int(rng.integers(len(points)))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < num_starts:
        nearest = np.minimum(nearest, cdist(points[chosen[-1:]], points, "sqeuclidean")[0])
        cumulative = (nearest / nearest.sum()).cumsum()
        chosen.append(min(int(np.searchsorted(cumulative, rng.uniform())), len(points) - 1))
    return points[chosen].astype(np.float64)


def kernel_units(kernel: Kernel, *, like: Tensor) -> Float[Tensor, "*u d"]:
    """Units of a kernel's distances: lengthscales of a stationary one, or of the first part of a sum, else 1."""
    if isinstance(kernel, AdditiveKernel):
        return kernel_units(kernel.kernels[0], like=like)
    function = read_kernel(kernel)
    return function.lengthscale.detach() if isinstance(function, AbstractSpectralKernel) else like.new_ones(1)


def leading_kernel(kernel: Kernel) -> Kernel:
    """The kernel by which points are chosen, that of the first latent function if there are several."""
    first: Kernel = kernel[0] if kernel.batch_shape else kernel
    return first


def _candidates(
    inputs: Tensor, weights: Tensor | None, generator: torch.Generator, *, most: int
) -> tuple[Tensor, Tensor | None]:
    if len(inputs) <= most:
        return inputs, weights
    chosen = torch.randperm(len(inputs), generator=generator)[:most].to(inputs.device)
    return inputs[chosen], None if weights is None else weights[chosen]
