"""Reading the user's observations."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from streamgp.checks import check_finite, check_float, check_inputs, check_targets
from streamgp.errors import ShapeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.features import Observed, relative_jitter

__all__ = ["Rows", "check_points", "read_rows", "to_observed"]


class Rows(NamedTuple):
    """Checked observations in the user's dtype.

    Attributes:
        inputs: `(n, d)`, or pairs `(n, 2, d)`.
        targets: `(n,)`.
    """

    inputs: Tensor
    targets: Tensor


def read_rows(X: object, y: object, likelihood: AbstractLikelihood | None) -> Rows:
    """Check inputs and targets; NumPy arrays are converted."""
    X, y = (torch.as_tensor(np.array(v)) if isinstance(v, np.ndarray) else v for v in (X, y))
    X = check_float(X, "X")
    is_paired = likelihood is not None and likelihood.num_inputs == 2
    num_axes = 3 if is_paired else 2
    if X.dim() != num_axes or 0 in X.shape or (is_paired and X.shape[-2] != 2):
        wanted = "(n, 2, d), one pair of inputs for each comparison" if is_paired else "(n, d), one row for each input"
        raise ShapeError(
            f"X must have shape {wanted}, with at least one observation, but has shape {tuple(X.shape)}. "
            "fit trains one model on one data set."
        )
    check_finite(X, "X")
    if likelihood is not None:
        checked = likelihood.check_targets(y)
        y = checked if isinstance(y, Tensor) and y.is_floating_point() else checked.to(dtype=X.dtype, device=X.device)
    y = check_float(y, "y")
    if y.dim() == 2 and y.shape[-1] == 1:
        raise ShapeError(
            f"y must have shape ({len(X)},), one value for each row of X, but has shape {tuple(y.shape)}. "
            "Drop a trailing output axis with y.squeeze(-1)."
        )
    return Rows(X, check_targets(y, X[..., 0, :] if is_paired else X).reshape(len(X)))


def check_points(points: Tensor, *, like: Tensor) -> None:
    """Check inducing points that the user gave against the inputs."""
    points = check_inputs(points, num_dims=like.shape[-1], like=like, name="inducing")
    if points.dim() != 2 or not len(points):
        raise ShapeError(
            f"inducing must have shape (m, {like.shape[-1]}), with at least one point, but has shape "
            f"{tuple(points.shape)}."
        )


def to_observed(rows: Rows, *, dtype: torch.dtype) -> Observed:
    """The same in double precision, for a model in some dtype."""
    X, y = rows.inputs.detach().double(), rows.targets.detach().double()
    if X.dim() == 3:
        return Observed(X[..., 0, :].contiguous(), X[..., 1, :].contiguous(), y, relative_jitter(dtype))
    return Observed(X, None, y, relative_jitter(dtype))
