"""Moments of rows of evidence under a prior: sums of values and slopes, whose covariances the kernel gives."""

from collections.abc import Iterator

import torch
from gpytorch.means import ConstantMean, Mean, ZeroMean
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.evidence import Evidence
from streamgp.gp.jets import Moving, slopes_of
from streamgp.gp.kernel_function import AbstractFeatureKernel, AbstractKernelFunction
from streamgp.shapes import broadcast_shapes

__all__ = ["evaluate_rows", "row_covariance", "row_features", "row_magnitude", "row_mean", "row_variance"]

# Numbers of one block of a kernel matrix between atoms, times its dimensions where there are slopes; larger ones are
# taken block by block, so that areas of many inputs need memory for their rows alone.
_BLOCK_NUMBERS = 4_000_000

Inputs = Tensor | Evidence


def row_mean(mean: Mean, rows: Evidence) -> Float[Tensor, "*c k"]:
    """Prior mean of each row."""
    summed = _summed_mean(mean, rows)
    return summed if rows.offsets is None else summed + rows.offsets


def _summed_mean(mean: Mean, rows: Evidence) -> Float[Tensor, "*c k"]:
    x, c = rows.points, rows.value_weights
    if c is None or type(mean) in (ConstantMean, ZeroMean):  # whose slopes are zero
        value = mean(x)
        return rows.sums(value if c is None else value * c)
    value, slope = slopes_of(mean, Moving(x, rows.directions), f"The mean {type(mean).__name__}")
    assert slope is not None
    return rows.sums(value * c + slope)


def evaluate_rows(kernel: AbstractKernelFunction, first: Inputs, second: Inputs) -> Float[Tensor, "*e k j"]:
    """Prior covariance between two sets of inputs or rows."""
    if isinstance(first, Evidence) or isinstance(second, Evidence):
        return row_covariance(kernel, first, second)
    return kernel.matrix(first, second)


def row_covariance(kernel: AbstractKernelFunction, first: Inputs, second: Inputs) -> Float[Tensor, "*e k j"]:
    """Prior covariance between two sets of rows, of which one may be plain inputs."""
    if not isinstance(first, Evidence):
        return row_covariance(kernel, second, first).mT
    num_first, num_second = (
        each.atoms.shape[-2] if isinstance(each, Evidence) else each.shape[-2] for each in (first, second)
    )
    has_slopes = first.has_slopes or (isinstance(second, Evidence) and second.has_slopes)
    size = max(1, _BLOCK_NUMBERS // max(1, num_second * (first.num_dims if has_slopes else 1)))
    if num_first <= size or first.row_of is None or first.weights is None:
        return first.sum_rows(_columns(_block(kernel, first, second, slice(None)), second))
    total: Tensor | None = None
    for start in range(0, num_first, size):
        part = slice(start, start + size)
        block = _columns(_block(kernel, first, second, part), second) * first.weights[part].unsqueeze(-1)
        if total is None:
            total = block.new_zeros(*block.shape[:-2], first.num_rows, block.shape[-1])
        total = total.index_add(-2, first.row_of[part], block)
    assert total is not None
    return total


def row_variance(kernel: AbstractKernelFunction, rows: Evidence, batch_shape: torch.Size) -> Float[Tensor, "*c k"]:
    """Prior variance of each row, without the covariances between rows.

    Args:
        kernel: The kernel.
        rows: The rows.
        batch_shape: Leading axes of the kernel.
    """
    if rows.row_of is None and not rows.has_slopes:
        return kernel.diagonal(rows.points)
    batch = broadcast_shapes(rows.atoms.shape[:-2], batch_shape)
    atoms = rows.atoms.expand(*batch, *rows.atoms.shape[-2:])
    variance = atoms.new_zeros(*batch, rows.num_rows)
    for chosen, members, weights in _equal_sizes(rows):
        # Rows come before the leading axes of the kernel, `(j, *b, size, a)`.
        taken = atoms[..., members.flatten(), :].unflatten(-2, members.shape).movedim(-3, 0)
        part = Evidence(taken, rows.num_dims, None, None, ((taken.shape[-2],),))
        w = weights.reshape(len(members), *[1] * len(batch), members.shape[-1])
        own = (_block(kernel, part, part, slice(None)) * w.unsqueeze(-1) * w.unsqueeze(-2)).sum((-2, -1))
        variance = variance.index_copy(-1, chosen, own.movedim(0, -1))
    return variance


def row_magnitude(kernel: AbstractKernelFunction, rows: Evidence, batch_shape: torch.Size) -> Float[Tensor, "*c k"]:
    r"""Evaluate $(\sum_i \lvert w_i \rvert \sqrt{\operatorname{var} a_i})^2$, whose rounding covariances carry."""
    alone = Evidence(rows.atoms, rows.num_dims, None, None, ((rows.atoms.shape[-2],),))
    deviations = row_variance(kernel, alone, batch_shape).detach().clamp_min(0.0).sqrt()
    if rows.row_of is None or rows.weights is None:
        return deviations.square()
    sums = deviations.new_zeros(*deviations.shape[:-1], rows.num_rows)
    return sums.index_add(-1, rows.row_of, deviations * rows.weights.detach().abs()).square()


def row_features(kernel: AbstractFeatureKernel, rows: Evidence) -> Float[Tensor, "*c k r"]:
    """Features of each row, for a kernel of finite rank."""
    if rows.value_weights is None:
        return rows.sum_rows(kernel.features(rows.points))
    value, slope = kernel.moving_features(Moving(rows.points, rows.directions))
    assert slope is not None
    return rows.sum_rows(value * rows.value_weights.unsqueeze(-1) + slope)


def _block(kernel: AbstractKernelFunction, first: Evidence, second: Inputs, part: slice) -> Tensor:
    """Covariances of some atoms of the one with all atoms of the other."""
    x, v, c = _moving(first, part)
    z, w, e = _moving(second, slice(None))
    if v is None and w is None:
        return kernel.matrix(x, z)
    jet = kernel.jet(Moving(x, v), Moving(z, w))
    return jet.blend(1.0 if c is None else c.unsqueeze(-1), 1.0 if e is None else e.unsqueeze(-2))


def _moving(rows: Inputs, part: slice) -> tuple[Tensor, Tensor | None, Tensor | None]:
    if isinstance(rows, Tensor):
        return rows[..., part, :], None, None
    v, c = rows.directions, rows.value_weights
    return (
        rows.points[..., part, :],
        None if v is None else v[..., part, :],
        None if c is None else c[..., part],
    )


def _columns(block: Tensor, second: Inputs) -> Tensor:
    if isinstance(second, Tensor) or second.row_of is None:
        return block
    return second.sum_rows(block.mT).mT


def _equal_sizes(
    rows: Evidence,
) -> Iterator[tuple[Int[Tensor, " j"], Int[Tensor, "j size"], Float[Tensor, "j size"]]]:
    """Rows of about as many atoms each, those atoms, and their weights, zero where a row has fewer.

    Few enough at once that their covariances fit into a block.
    """
    device, n = rows.atoms.device, rows.atoms.shape[-2]
    if rows.row_of is None or rows.weights is None:
        counts = torch.ones(n, dtype=torch.long, device=device)
        all_weights = rows.atoms.new_ones(n)
    else:
        counts, all_weights = torch.bincount(rows.row_of, minlength=rows.num_rows), rows.weights
    starts = counts.cumsum(0) - counts
    octaves = counts.clamp_min(1).double().log2().ceil().long()
    for octave in octaves.unique().tolist():
        alike = (octaves == octave).nonzero().squeeze(-1)
        size = int(counts[alike].max())
        at_once = max(1, _BLOCK_NUMBERS // max(1, size * size * rows.num_dims))
        for chosen in alike.split(at_once):
            offset = torch.arange(size, device=device)
            is_there = offset < counts[chosen].unsqueeze(-1)
            members = torch.where(is_there, starts[chosen].unsqueeze(-1) + offset, starts[chosen].unsqueeze(-1))
            yield chosen, members, torch.where(is_there, all_weights[members], 0.0)
