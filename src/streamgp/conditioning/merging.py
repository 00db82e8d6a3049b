"""Beliefs about one prior add: what was learned apart is merged."""

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module

from streamgp.conditioning.multi_output import MultiOutputGP
from streamgp.conditioning.selection import site_information
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.conditioning.transport import inverse_root, transport
from streamgp.errors import OptionError, ShapeError, StreamGPWarning
from streamgp.gp import SparseProcess
from streamgp.linalg import apply, cholesky, pivoted_cholesky, solve_lower, solve_vector

__all__ = ["check_same_prior", "merge", "merge_processes"]

# The share of information whose loss is worth a warning where beliefs are carried to common inducing points.
_WORTH_A_WARNING = 1e-3


Mergeable = TypeVar("Mergeable", SparseGP, MultiOutputGP)


def merge(gps: Sequence[Mergeable]) -> Mergeable:
    """Merge GPs that learned from different data, starting from the same prior, into one that knows all of it.

    Exact where all have the same inducing points: merging equals absorbing the union with the points kept, in any
    order. Beliefs at different points are carried to common ones first, with a warning if that loses anything.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel

    X = torch.linspace(0, 1, 20, dtype=torch.float64).unsqueeze(-1)
    prior = sg.SparseGP.from_prior(RBFKernel(), X[::4])
    north, _ = prior.absorb(X[:10], X[:10, 0], noise_variance=0.1, inducing="keep")
    south, _ = prior.absorb(X[10:], X[10:, 0], noise_variance=0.1, inducing="keep")
    both = sg.merge([north, south])
    ```

    Args:
        gps: Beliefs of one kind with equal kernels, means and jitter. What several of them learned from the same
            observations counts several times.

    Returns:
        The merged GP.
    """
    gps = tuple(gps) if isinstance(gps, Sequence) else (gps,)
    kinds = sorted({type(gp).__name__ for gp in gps})
    beliefs: Any = gps
    merged: Any
    if kinds == ["MultiOutputGP"]:
        merged = MultiOutputGP(SparseGP(merge_processes([gp.row_gp.process for gp in beliefs])))
        return merged
    if kinds != ["SparseGP"]:
        got = ", ".join(kinds) or "nothing"
        raise OptionError(f"merge takes a list of at least one SparseGP, or of MultiOutputGPs, but got {got}.")
    merged = SparseGP(merge_processes([gp.process for gp in beliefs]))
    return merged


def merge_processes(processes: Sequence[SparseProcess]) -> SparseProcess:
    r"""Multiply the sites of beliefs that share a prior.

    With the whitened sites $\bar\Lambda_i = \bar S_i^{-1} - I$ and $\bar\lambda_i = \bar S_i^{-1} \bar m_i$ at the same
    inducing points, the merged belief has

    $$
    \bar S^{-1} = I + \sum_i \bar\Lambda_i, \qquad \bar S^{-1} \bar m = \sum_i \bar\lambda_i ,
    $$

    as if one GP had absorbed all observations with its points kept. Beliefs at different points are carried to a
    common set first, chosen among all of them, which can lose what the chosen points cannot express.

    Args:
        processes: At least one; their priors have equal hyperparameters.

    Returns:
        The merged belief. The algebra runs in double precision whatever the dtype.
    """
    first = processes[0]
    if len({process.inducing.is_movable for process in processes}) > 1:
        raise OptionError(
            "Some of the beliefs are about values at inducing points and others about the weights of features. Start "
            "all of them from one prior."
        )
    for other in processes[1:]:
        check_same_prior(first, other)
    if len(processes) == 1:
        return first
    if not all(_has_points(other, first.inducing_points) for other in processes):
        processes = _carried_to_common_points(processes)
        first = processes[0]
    inverses = [inverse_root(process.whitened_root.double()) for process in processes]
    eye = torch.eye(inverses[0].shape[-1], dtype=torch.float64, device=inverses[0].device)
    precision = sum((inverse.mT @ inverse for inverse in inverses), start=(1.0 - len(processes)) * eye)
    precision_mean = sum(
        (
            apply(inverse.mT, apply(inverse, process.whitened_mean.double()))
            for inverse, process in zip(inverses, processes, strict=True)
        ),
        start=torch.zeros_like(eye[0]),
    )
    scale = precision.diagonal(dim1=-2, dim2=-1) + len(processes)
    L, _ = cholesky(precision, scale=scale, name="the precision of the merged belief")
    mean = solve_vector(L, solve_vector(L, precision_mean), is_transposed=True)
    root = solve_lower(L, eye.expand_as(L)).mT.contiguous()
    dtype = first.whitened_mean.dtype
    return first.with_belief(mean.to(dtype), root.to(dtype), _summed_information(processes))


def _summed_information(processes: Sequence[SparseProcess]) -> Float[Tensor, "*b m"] | None:
    known = [process.information for process in processes]
    return None if any(one is None for one in known) else torch.stack([one for one in known if one is not None]).sum(0)


def _has_points(process: SparseProcess, points: Tensor) -> bool:
    return process.inducing_points.shape == points.shape and torch.equal(process.inducing_points, points)


def _carried_to_common_points(processes: Sequence[SparseProcess]) -> list[SparseProcess]:
    """Carry all beliefs to as many points as the largest has, chosen among all by the information at them."""
    prior = processes[0].prior
    if processes[0].batch_shape:
        raise ShapeError(
            "Beliefs with leading axes can be merged at equal inducing points alone, but theirs differ. Absorb with "
            'inducing="keep" from the same points, or merge the members one by one.'
        )
    points = torch.cat([process.inducing_points for process in processes])
    information = torch.cat([site_information(process).clamp_min(0.0) for process in processes])
    num_inducing = max(len(process.inducing_points) for process in processes)
    chosen = pivoted_cholesky(
        prior.covariance,
        points,
        num_inducing,
        variance=prior.variance(points).expand(len(points)),
        weights=information + 1e-6 * information.mean() + torch.finfo(points.dtype).tiny,
    )
    common = points[chosen.pivots.sort(-1).values]
    carried, lost, total = [], 0.0, 0.0
    for process in processes:
        moved, info = transport(process, common, prior)
        carried.append(moved)
        lost += float(info.lost_trace)
        total += float((site_information(process) * prior.variance(process.inducing_points)).clamp_min(0.0).sum())
    if lost > _WORTH_A_WARNING * total:
        warnings.warn(
            f"The beliefs have different inducing points, and {len(common)} common ones cannot express all of them: "
            f"{lost:.3g} of the trace {total:.3g} of their sites is lost. Learn from the same points with "
            'inducing="keep" to merge without loss.',
            StreamGPWarning,
            stacklevel=4,
        )
    return carried


def check_same_prior(first: SparseProcess, second: SparseProcess) -> None:
    """Refuse beliefs whose priors differ."""
    ours, theirs = first.inducing_points, second.inducing_points
    if (ours.dtype, ours.device, ours.shape[-1]) != (theirs.dtype, theirs.device, theirs.shape[-1]):
        raise ShapeError(
            f"Beliefs that are merged must share dtype, device and input dimension, but one has {ours.dtype} on "
            f"{ours.device} with {ours.shape[-1]} dimensions, another {theirs.dtype} on {theirs.device} with "
            f"{theirs.shape[-1]}."
        )
    pairs: list[tuple[str, Module, Module]] = [
        ("kernel", first.prior.kernel, second.prior.kernel),
        ("mean", first.prior.mean_function, second.prior.mean_function),
    ]
    for name, one, other in pairs:
        if not _is_equal(one, other):
            raise OptionError(
                f"Beliefs that are merged must have the same prior, but their {name}s differ "
                f"({_named(one)} and {_named(other)}, or other hyperparameters). Start all of them from one fitted GP, "
                "or carry one to the other's prior first with absorb, which takes a changed kernel and mean."
            )
    if abs(first.jitter - second.jitter) > 1e-6 * max(first.jitter, second.jitter):
        raise OptionError(
            f"Beliefs that are merged must have the same jitter, but have {first.jitter:.3g} and {second.jitter:.3g}. "
            "Start all of them from one fitted GP."
        )


def _is_equal(one: Module, other: Module) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return (
        _structure(one) == _structure(other)
        and ours.keys() == theirs.keys()
        and all(torch.equal(value, theirs[name]) for name, value in ours.items())
    )


def _structure(module: Module) -> list[tuple[str, type, object]]:
    return [(name, type(part), getattr(part, "nu", None)) for name, part in module.named_modules()]


def _named(module: Module) -> str:
    return (
        type(module.base_kernel).__name__
        if isinstance(getattr(module, "base_kernel", None), Kernel)
        else type(module).__name__
    )
