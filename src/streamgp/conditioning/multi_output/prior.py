"""Priors of several outputs, and where their latent functions have inducing points."""

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.checks import ArrayLike, check_finite, check_float
from streamgp.errors import ShapeError
from streamgp.gp.coregionalization import CoregionalizationKernel, OutputMean, latent_column
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.shapes import broadcast_shapes

__all__ = ["latent_rows", "prior_modules", "read_points"]


def prior_modules(
    kernels: Kernel | Sequence[Kernel], like: Tensor, *, mixing: ArrayLike, mean: ArrayLike | None
) -> tuple[CoregionalizationKernel, OutputMean]:
    """Kernel and mean of inputs with a column for the output, checked.

    Args:
        kernels: One for each latent function, or a single one for all.
        like: Inputs without that column.
        mixing: The matrix of outputs and latent functions.
        mean: A constant for each output; zero by default.
    """
    mixing = check_finite(check_float(mixing, "mixing", like=like), "mixing")
    if mixing.dim() != 2 or 0 in mixing.shape:
        raise ShapeError(
            f"mixing must have shape (o, l), one row for each output and one column for each latent function, but "
            f"has shape {tuple(mixing.shape)}."
        )
    o, num_latents = mixing.shape
    parts = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    if len(parts) not in (1, num_latents):
        raise ShapeError(
            f"There must be one kernel for all {num_latents} latent functions (columns of mixing), or one for each, "
            f"but there are {len(parts)} kernels."
        )
    for part in parts:
        check_num_dims(part, like.shape[-1])
    kernel = CoregionalizationKernel(*parts, num_outputs=o, num_latents=num_latents).to(like)
    kernel.mixing.data = mixing.detach().clone()
    means = OutputMean(num_outputs=o).to(like)
    if mean is not None:
        constants = check_finite(check_float(mean, "mean", like=like), "mean")
        if constants.shape != (o,):
            raise ShapeError(f"mean must have shape ({o},), one for each output, but has {tuple(constants.shape)}.")
        means.constants.data = constants.detach().clone()
    return kernel, means


def read_points(inducing_points: Any, name: str = "inducing_points", *, like: Tensor | None = None) -> list[Tensor]:
    """One set of points for all latent functions, or a list with one for each.

    Args:
        inducing_points: Points `(*b, m, d)`, or a list of such.
        name: What to call them.
        like: Inputs whose dimension, dtype and device they must share; those of the first set by default.
    """
    is_list = isinstance(inducing_points, list | tuple) and len(inducing_points) and not _is_rows(inducing_points)
    given = list(inducing_points) if is_list else [inducing_points]
    first = check_float(given[0], name, like=like) if like is None else like
    points = [check_finite(check_float(each, name, like=first), name).detach() for each in given]
    d = first.shape[-1] if first.dim() else 1
    for each in points:
        if each.dim() < 2 or each.shape[-1] != d or 0 in each.shape:
            raise ShapeError(
                f"{name} must have shape (..., m, {d}) with at least one point, or be a list of such, but one has "
                f"shape {tuple(each.shape)}. Pass one row for each point and one column for each input dimension."
            )
    return points


def latent_rows(sets: Sequence[Tensor], num_latents: int) -> Tensor:
    """Sets of points of latent functions, one for all or one for each, as inducing points of one kernel."""
    if len(sets) not in (1, num_latents):
        raise ShapeError(
            f"There must be one set of inducing points for all {num_latents} latent functions (columns of mixing), "
            f"or one for each, but there are {len(sets)}."
        )
    each = list(sets) * (num_latents // len(sets))
    batch = broadcast_shapes(*(points.shape[:-2] for points in each))
    rows = [latent_column(points.expand(*batch, *points.shape[-2:]), j) for j, points in enumerate(each)]
    return torch.cat(rows, dim=-2)


def _is_rows(values: Sequence[Any]) -> bool:
    """Tell if a list holds rows of numbers, and not sets of points."""
    first = values[0]
    return isinstance(first, list | tuple) and bool(len(first)) and not isinstance(first[0], list | tuple)
