"""Checks at the boundary, where a user's data enters: a sentence instead of a traceback."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from streamgp.errors import DTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.shapes import is_broadcastable

__all__ = [
    "check_batch",
    "check_choice",
    "check_count",
    "check_finite",
    "check_float",
    "check_inputs",
    "check_matches",
    "check_noise_variance",
    "check_positive",
    "check_share",
    "check_targets",
    "to_double",
]


def to_double(value: Any, name: str) -> Tensor:
    """A tensor, array, list or number as a tensor of double precision of its own."""
    try:
        return torch.as_tensor(value, dtype=torch.float64, device="cpu").detach().clone()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(
            f"{name} must be a tensor, an array or a list of numbers, but is a {type(value).__name__} that cannot be "
            f"read ({error}). Convert it with torch.as_tensor({name}, dtype=torch.float64)."
        ) from None


def check_float(value: object, name: str) -> Tensor:
    """Return `value` if it is a float32 or float64 tensor."""
    if not isinstance(value, Tensor):
        raise DTypeError(
            f"{name} must be a torch.Tensor, but is a {type(value).__name__}. "
            f"Convert it with torch.as_tensor({name}, dtype=torch.float64)."
        )
    if value.dtype not in (torch.float32, torch.float64):
        raise DTypeError(
            f"{name} must be float32 or float64, but is {_dtype_name(value.dtype)}. Convert it with {name}.double()."
        )
    return value


def check_finite(value: Tensor, name: str) -> Tensor:
    """Return `value` if it holds neither NaN nor an infinity."""
    # Any NaN or infinity survives the sum; a finite sum can also overflow, so look again if not.
    if not math.isfinite(value.detach().sum().item()):
        is_bad = ~torch.isfinite(value)
        if is_bad.any():
            where = tuple(is_bad.nonzero()[0].tolist())
            raise ValueRangeError(
                f"{name} must be finite, but {int(is_bad.sum())} of its {value.numel()} values are NaN or "
                f"infinite, the first at index {where}. Drop those rows, or impute them."
            )
    return value


def check_inputs(X: object, *, num_dims: int, like: Tensor, name: str = "X", batch_shape: Sequence[int] = ()) -> Tensor:
    """Check inputs of shape `(*b, n, d)` against the dimension, leading axes, dtype and device of a model."""
    X = check_float(X, name)
    if X.dim() < 2:
        raise ShapeError(
            f"{name} must have shape (..., n, {num_dims}), one row for each input, but has shape "
            f"{tuple(X.shape)}. For a single input use {name}.reshape(1, -1)."
        )
    if X.shape[-1] != num_dims:
        raise ShapeError(
            f"{name} must have {num_dims} columns, as the model's inputs have, but has shape {tuple(X.shape)}. "
            "Pass one column for each input dimension."
        )
    check_batch(X.shape[:-2], batch_shape, name)
    check_matches(X, like, name)
    return check_finite(X, name)


def check_batch(shape: Sequence[int], batch_shape: Sequence[int], name: str) -> None:
    """Check that leading axes broadcast with those of a model."""
    if not is_broadcastable(shape, batch_shape):
        raise ShapeError(
            f"The leading axes {tuple(shape)} of {name} do not broadcast with the leading axes {tuple(batch_shape)} "
            f"of the model. Make them equal, or add an axis in front with {name}.unsqueeze(0)."
        )


def check_matches(value: Tensor, like: Tensor, name: str) -> Tensor:
    """Check that a tensor has the dtype and device of the model."""
    if value.dtype != like.dtype:
        raise DTypeError(
            f"{name} is {_dtype_name(value.dtype)}, but the model is {_dtype_name(like.dtype)}. "
            f"Convert it with {name}.to({like.dtype})."
        )
    if value.device != like.device:
        raise DTypeError(
            f"{name} is on {value.device}, but the model is on {like.device}. Move it with {name}.to('{like.device}')."
        )
    return value


def check_targets(y: object, X: Tensor, *, name: str = "y") -> Tensor:
    """Check targets of shape `(*s, *b, n)` against inputs of shape `(*b, n, d)`."""
    y = check_float(y, name)
    expected = tuple(X.shape[:-1])
    if y.dim() < 1 or y.shape[-1] != X.shape[-2] or not is_broadcastable(y.shape[:-1], X.shape[:-2]):
        hint = (
            f"Drop a trailing output axis with {name}.squeeze(-1)."
            if y.dim() > 1 and y.shape[-1] == 1
            else "Give one value for each row of the inputs; only leading axes may be added."
        )
        raise ShapeError(
            f"{name} must have shape {expected}, one value for each row of inputs {tuple(X.shape)}, "
            f"but has shape {tuple(y.shape)}. {hint}"
        )
    check_matches(y, X, name)
    return check_finite(y, name)


def check_noise_variance(noise_variance: object, X: Tensor, *, name: str = "noise_variance") -> tuple[Tensor, bool]:
    """Check noise given as a number, as one variance per observation, or as a covariance matrix.

    A square tensor with as many axes as the inputs is a covariance matrix.

    Returns:
        A tensor of shape `()`, `(*b, n)` or `(*b, n, n)`, and whether it is a matrix.
    """
    if isinstance(noise_variance, int | float) and 0.0 <= noise_variance < math.inf:
        return torch.tensor(noise_variance, dtype=X.dtype, device=X.device), False
    if isinstance(noise_variance, int | float):
        noise_variance = torch.tensor(noise_variance, dtype=X.dtype, device=X.device)
    noise_variance = check_float(noise_variance, name)
    shape, n = noise_variance.shape, X.shape[-2]
    is_scalar = noise_variance.numel() == 1 and noise_variance.dim() <= 1
    is_matrix = noise_variance.dim() >= X.dim() and shape[-2:] == (n, n) and is_broadcastable(shape[:-2], X.shape[:-2])
    is_vector = noise_variance.dim() >= 1 and shape[-1] == n and is_broadcastable(shape[:-1], X.shape[:-2])
    if not (is_scalar or is_vector or is_matrix):
        raise ShapeError(
            f"{name} must be a number, one variance per observation of shape {tuple(X.shape[:-1])}, or a covariance "
            f"matrix of shape {(*X.shape[:-1], n)}, but has shape {tuple(shape)}."
        )
    check_matches(noise_variance, X, name)
    check_finite(noise_variance, name)
    variances = noise_variance.diagonal(dim1=-2, dim2=-1) if is_matrix else noise_variance
    if variances.numel() and variances.detach().min() < 0:
        raise ValueRangeError(
            f"{name} must not be negative, but its smallest value is {variances.min().item():.3g}. "
            "Pass variances, that is squared standard deviations."
        )
    return (noise_variance.reshape(()) if is_scalar else noise_variance), is_matrix and not is_scalar


def check_choice(value: object, choices: Sequence[str], name: str) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(map(repr, choices))}, but is {value!r}.")
    return str(value)


def check_count(value: object, name: str, *, minimum: int = 1) -> int:
    """Return `value` if it is a whole number of at least `minimum`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise ValueRangeError(f"{name} must be a whole number of at least {minimum}, but is {value!r}.")
    return value


def check_share(value: object, name: str) -> float:
    """Return `value` if it is a number above zero and at most one."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value <= 1.0:
        raise ValueRangeError(
            f"{name} must be a number above 0 and at most 1, but is {value!r}. Pass 1 to change nothing."
        )
    return float(value)


def check_positive(value: object, name: str) -> float:
    """Return `value` if it is a positive, finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value < math.inf:
        raise ValueRangeError(f"{name} must be a positive, finite number, but is {value!r}.")
    return float(value)


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
