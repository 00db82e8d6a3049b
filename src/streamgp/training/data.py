"""Reading the user's observations."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from streamgp.checks import check_finite, check_float, check_inputs, check_targets, to_tensor
from streamgp.errors import DTypeError, ShapeError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.features import Observed, relative_jitter

__all__ = ["CheckedRows", "check_points", "check_squares", "has_constants", "read_rows", "to_observed"]


class CheckedRows(NamedTuple):
    """Checked observations in the user's dtype.

    Attributes:
        inputs: `(n, d)`, or pairs `(n, 2, d)`.
        targets: `(n,)`.
    """

    inputs: Tensor
    targets: Tensor


def read_rows(X: object, y: object, likelihood: AbstractLikelihood | None) -> CheckedRows:
    """Check inputs and targets; arrays, tables and lists are converted."""
    X = check_float(to_tensor(X, "X", kinds="fiub"), "X")
    if y is None:
        raise DTypeError("y must have one value for each row of X, but is None. Pass the targets.")
    is_given = isinstance(y, Tensor)
    y = to_tensor(y, "y", kinds="fiub")
    if not is_given and y.dtype != X.dtype:
        y = y.to(X.dtype)  # numbers without a dtype of torch take that of the inputs
    is_paired = likelihood is not None and likelihood.num_inputs == 2
    num_axes = 3 if is_paired else 2
    if X.dim() != num_axes or 0 in X.shape or (is_paired and X.shape[-2] != 2):
        wanted = "(n, 2, d), one pair of inputs for each comparison" if is_paired else "(n, d), one row for each input"
        raise ShapeError(
            f"X must have shape {wanted}, with at least one observation, but has shape {tuple(X.shape)}. "
            f"{'A single column is X.reshape(-1, 1).' if X.dim() == 1 else 'fit trains one model on one data set.'}"
        )
    check_finite(X, "X")
    if likelihood is not None:
        checked = likelihood.check_targets(y)
        y = checked if isinstance(y, Tensor) and y.is_floating_point() else checked.to(dtype=X.dtype, device=X.device)
    y = check_float(y, "y")
    if y.dim() == 2 and len(y) == len(X):
        remedy = (
            "Drop a trailing output axis with y.squeeze(-1)."
            if y.shape[-1] == 1
            else ("Fit several outputs with outputs='lmc', 'icm' or 'independent'.")
        )
        raise ShapeError(
            f"y must have shape ({len(X)},), one value for each row of X, but has shape {tuple(y.shape)}. {remedy}"
        )
    y = check_targets(y, X[..., 0, :] if is_paired else X).reshape(len(X))
    if likelihood is not None:
        likelihood.check_rows(y.shape)
    check_squares(y, "y")
    return CheckedRows(X, y)


def check_squares(y: Tensor, name: str) -> None:
    """Refuse targets whose variances would overflow."""
    largest, most = float(y.detach().abs().max()), math.sqrt(torch.finfo(y.dtype).max)
    if largest > most:
        raise ValueRangeError(
            f"{name} has values up to {largest:.3g}, whose squares overflow in "
            f"{str(y.dtype).removeprefix('torch.')}, and so would variances. Divide the targets by a constant, so that "
            f"all are below {most:.3g}."
        )


def check_points(points: Tensor, *, like: Tensor) -> None:
    """Check inducing points that the user gave against the inputs."""
    points = check_inputs(points, num_dims=like.shape[-1], like=like, name="inducing")
    if points.dim() != 2 or not len(points):
        raise ShapeError(
            f"inducing must have shape (m, {like.shape[-1]}), with at least one point, but has shape "
            f"{tuple(points.shape)}."
        )


def has_constants(likelihood: AbstractLikelihood | None) -> bool:
    """Whether a likelihood has numbers for each observation, so that observations cannot be taken apart."""
    return likelihood is not None and any(isinstance(v, Tensor) and v.dim() for v in vars(likelihood).values())


def to_observed(rows: CheckedRows, *, dtype: torch.dtype) -> Observed:
    """The same in double precision, for a model in some dtype."""
    X, y = rows.inputs.detach().double(), rows.targets.detach().double()
    if X.dim() == 3:
        return Observed(X[..., 0, :].contiguous(), X[..., 1, :].contiguous(), y, relative_jitter(dtype))
    return Observed(X, None, y, relative_jitter(dtype))
