"""The kinds of evidence that users make: values, averages, totals, differences, gradients, derivatives."""

from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamgp.checks import ArrayLike, check_finite, check_float
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.evidence.rows import Evidence, join

__all__ = ["average", "combine", "derivative", "difference", "gradient", "total", "values"]


def values(X: ArrayLike) -> Evidence:
    """Observe values of the function, as inputs alone do.

    Args:
        X: Inputs `(*b, n, d)`; targets are `(n,)`.
    """
    X = _inputs(X, "X")
    return Evidence(X, X.shape[-1], None, None, ((X.shape[-2],),))


def average(X: ArrayLike, groups: Any, weights: ArrayLike | None = None, *, rates: bool = False) -> Evidence:
    r"""Observe averages over groups of inputs, $y_g = \sum_i w_{gi} f(x_{gi})$ with weights that add up to one.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel

    pixels = torch.rand(100, 2, dtype=torch.float64)
    districts = ["east" if x > 0.5 else "west" for x in pixels[:, 0]]
    means = sg.evidence.average(pixels, districts)
    means.labels  # ('east', 'west'): the order of the targets
    gp = sg.SparseGP.from_prior(RBFKernel(), pixels[:20])
    gp.condition(means, torch.tensor([1.0, -1.0], dtype=torch.float64), noise_variance=0.01).predict(pixels).mean
    ```

    Args:
        X: Inputs `(n, d)`.
        groups: The label of each input's group, `(n,)`: numbers or text. Targets have one value for each group, in
            sorted order of the labels, which is that of `.labels`.
        weights: How much each input counts, `(n,)`, such as its population; equally by default. They are divided by
            their sum in each group.
        rates: Whether it is responses that are averaged, such as the rates or prevalences of pixels, and not latent
            values: a count of a district is `Poisson(population)` of such a row, positive tests are `Binomial(tested)`.
            Targets are then observations of a likelihood, and the rows are made linear around the belief.
    """
    X, rows, labels, weights = _grouped(X, groups, weights)
    sums = weights.new_zeros(len(labels)).index_add(0, rows, weights)
    sizes = weights.detach().new_zeros(len(labels)).index_add(0, rows, weights.detach().abs())
    is_lost = sums.detach() <= weights.shape[0] * torch.finfo(weights.dtype).eps * sizes
    if bool(is_lost.any()):
        bad = labels[int(is_lost.nonzero()[0])]
        raise ValueRangeError(
            f"weights of a group must add up to a positive number, but those of group {bad!r} add up to "
            f"{float(sums[is_lost][0]):.3g}. Leave the group out, or use evidence.total, which takes weights as they "
            "are."
        )
    if rates and bool((weights < 0).any()):
        raise ValueRangeError("weights of averages of rates must not be negative, as those of people. Leave rows out.")
    return Evidence(X, X.shape[-1], rows, weights / sums[rows], ((len(labels),),), labels, is_rate=rates)


def total(X: ArrayLike, groups: Any, weights: ArrayLike | None = None) -> Evidence:
    r"""Observe sums over groups of inputs, $y_g = \sum_i w_{gi} f(x_{gi})$.

    Args:
        X: Inputs `(n, d)`.
        groups: The label of each input's group, as in `average`.
        weights: What each value is multiplied with, `(n,)`, of any sign; one by default.
    """
    X, rows, labels, weights = _grouped(X, groups, weights)
    sizes = weights.detach().new_zeros(len(labels)).index_add(0, rows, weights.detach().abs())
    if bool((sizes == 0).any()):
        bad = labels[int((sizes == 0).nonzero()[0])]
        raise ValueRangeError(f"weights of group {bad!r} are all zero, so its total tells nothing. Leave it out.")
    return Evidence(X, X.shape[-1], rows, weights, ((len(labels),),), labels)


def difference(A: ArrayLike, B: ArrayLike) -> Evidence:
    """Observe differences $f(a) - f(b)$, by how much the one is better than the other.

    Args:
        A: First inputs `(*b, n, d)`.
        B: Second inputs, of the same shape; targets are `(n,)`.
    """
    A, B = _inputs(A, "A"), _inputs(B, "B")
    if A.shape != B.shape:
        raise ShapeError(
            f"A and B must have the same shape, one row of each for each difference, but have shapes {tuple(A.shape)} "
            f"and {tuple(B.shape)}. Repeat one with expand, if it is compared with many."
        )
    n, d = A.shape[-2:]
    atoms = torch.stack([A, B.to(A)], dim=-2).flatten(-3, -2)
    rows = torch.arange(n, device=A.device).repeat_interleave(2)
    weights = torch.tensor([1.0, -1.0], dtype=A.dtype, device=A.device).repeat(n)
    return Evidence(atoms, d, rows, weights, ((n,),))


def gradient(X: ArrayLike) -> Evidence:
    """Observe gradients of the function.

    Args:
        X: Inputs `(*b, n, d)`; targets are `(n, d)`, NaN where a component is not known.
    """
    X = _inputs(X, "X")
    n, d = X.shape[-2:]
    eye = torch.eye(d, dtype=X.dtype, device=X.device).repeat(n, 1)
    return Evidence(_slopes(X.repeat_interleave(d, dim=-2), eye), d, None, None, ((n, d),))


def derivative(X: ArrayLike, along: ArrayLike) -> Evidence:
    r"""Observe directional derivatives $v \cdot \nabla f(x)$.

    Args:
        X: Inputs `(*b, n, d)`; targets are `(n,)`, NaN where one is not known.
        along: The direction $v$, `(d,)` for all inputs or `(n, d)`, with its length: the slope along $2 v$ is twice
            that along $v$.
    """
    X = _inputs(X, "X")
    v = check_finite(check_float(along, "along", like=X), "along").to(X)
    if v.dim() not in (1, 2) or v.shape[-1] != X.shape[-1] or (v.dim() == 2 and len(v) != X.shape[-2]):
        raise ShapeError(
            f"along must have shape ({X.shape[-1]},), one direction for all inputs, or {tuple(X.shape[-2:])}, one for "
            f"each, but has shape {tuple(v.shape)}."
        )
    if v.numel() and bool((v.detach() == 0).all(-1).any()):
        raise ValueRangeError("along has a direction of length zero, in which there is no slope. Leave it out.")
    return Evidence(_slopes(X, v.expand(X.shape[-2:])), X.shape[-1], None, None, ((X.shape[-2],),))


def combine(*parts: Evidence | ArrayLike) -> Evidence:
    """Observe several kinds of evidence at once, with one joint factor.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel

    X = torch.rand(5, 2, dtype=torch.float64)
    both = sg.evidence.combine(sg.evidence.values(X), sg.evidence.gradient(X))
    gp = sg.SparseGP.from_prior(RBFKernel(), torch.rand(20, 2, dtype=torch.float64))
    y, slopes = X.square().sum(-1), 2 * X
    gp.condition(both, (y, slopes), noise_variance=(1e-4, 1e-2)).predict(X).mean
    ```

    Args:
        parts: Evidence, or inputs `(*b, n, d)` for values. Targets and noise are those of all rows, one after the
            other, or a sequence with those of each part.
    """
    if not parts:
        raise OptionError("combine was called without evidence. Pass at least one part.")
    read = [part if isinstance(part, Evidence) else values(part) for part in parts]
    dims = sorted({part.num_dims for part in read})
    if len(dims) > 1:
        raise ShapeError(f"All parts must be about functions of as many inputs, but have {dims}. Combine those of one.")
    first = read[0].atoms
    joined: Any = reduce(join, [part.matched(first[..., : dims[0]]) for part in read])  # type: ignore[arg-type]
    evidence: Evidence = joined
    return evidence


def _inputs(X: ArrayLike, name: str) -> Tensor:
    if isinstance(X, Evidence):
        raise ArgumentTypeError(f"{name} must be inputs, but is evidence already. Join kinds with evidence.combine.")
    X = check_float(X, name)
    if X.dim() < 2 or not X.shape[-1]:
        raise ShapeError(
            f"{name} must have shape (..., n, d), one row for each input, but has shape {tuple(X.shape)}. A single "
            f"column is {name}.reshape(-1, 1), a single input {name}.reshape(1, -1)."
        )
    return check_finite(X, name)


def _slopes(X: Tensor, v: Tensor) -> Tensor:
    return torch.cat([X, v.expand_as(X), torch.zeros_like(X[..., :1])], dim=-1)


def _grouped(X: ArrayLike, groups: Any, weights: ArrayLike | None) -> tuple[Tensor, Tensor, tuple[Any, ...], Tensor]:
    """Inputs and weights sorted by groups, the number of each one's group, and labels."""
    X = _inputs(X, "X")
    if X.dim() != 2 or not len(X):
        raise ShapeError(
            f"X must have shape (n, d) with at least one input to be divided into groups, but has shape "
            f"{tuple(X.shape)}."
        )
    array = np.asarray(groups.detach().cpu() if isinstance(groups, Tensor) else groups)
    if array.shape != (len(X),):
        raise ShapeError(
            f"groups must have shape ({len(X)},), one label for each row of X, but has shape {array.shape}."
        )
    if any(one is None or one != one for one in array.tolist()):
        raise ValueRangeError("groups has labels that are missing (None or NaN). Drop those inputs, or name a group.")
    try:
        found, inverse = np.unique(array, return_inverse=True)
    except TypeError:
        raise ArgumentTypeError(
            "groups must be labels that can be sorted, but mixes kinds, such as numbers and text. Make all text."
        ) from None
    w = X.new_ones(len(X)) if weights is None else check_finite(check_float(weights, "weights", like=X), "weights")
    if w.shape != (len(X),):
        raise ShapeError(f"weights must have shape ({len(X)},), one for each row of X, but has shape {tuple(w.shape)}.")
    order = np.argsort(inverse, kind="stable")
    at = torch.from_numpy(order).to(X.device)
    rows = torch.from_numpy(inverse[order].astype(np.int64)).to(X.device)
    return X[at], rows, tuple(found.tolist()), w.to(X)[at]
