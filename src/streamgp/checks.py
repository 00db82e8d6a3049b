"""Checks at the boundary, where a user's data enters: a sentence instead of a traceback."""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.shapes import is_broadcastable

__all__ = [
    "ArrayLike",
    "check_batch",
    "check_choice",
    "check_count",
    "check_finite",
    "check_float",
    "check_generator",
    "check_inputs",
    "check_matches",
    "check_noise_variance",
    "check_positive",
    "check_seed",
    "check_share",
    "check_targets",
    "keep_count",
    "to_double",
    "to_form",
    "to_tensor",
]


# Seeds from here on are refused by some generators.
_MOST_SEEDS = 2**63
# What `to_tensor` reads: tensors, NumPy arrays, pandas tables, lists and numbers.
ArrayLike = Any


def to_tensor(value: Any, name: str, *, like: Tensor | None = None, kinds: str = "fiu") -> Tensor:
    """The one converter of users' arrays: NumPy, pandas, lists and tensors as a dense tensor of numbers.

    Tensors are returned as they are. All others take dtype and device of `like`; without it, they keep single
    precision and become double precision otherwise. `kinds` are NumPy's letters for what counts as a number.
    """
    if isinstance(value, Tensor):
        if value.layout is not torch.strided or value.is_meta or value.is_quantized or value.is_complex():
            raise DTypeError(
                f"{name} must be a dense tensor of real numbers with values, but is {_describe_tensor(value)}. "
                f"Convert it, for example with {name}.to_dense() or {name}.real."
            )
        return value
    if isinstance(value, Sequence) and value and all(isinstance(one, Tensor) for one in value):
        try:
            return torch.stack([to_tensor(one, name) for one in value])
        except RuntimeError as error:
            raise ShapeError(f"{name} is a list of tensors that do not stack ({error}). Give them one shape.") from None
    array = _to_array(value, name, kinds)
    device = None if like is None else like.device
    # Copied by NumPy, which also reads backwards and the bytes of other machines.
    dtype = np.float32 if array.dtype.newbyteorder("=") == np.float32 else np.float64
    array = array.astype(dtype, order="C")
    return torch.from_numpy(array).to(dtype=None if like is None else like.dtype, device=device)


_TEXT = (
    "{name} must be numbers, but holds text. Code it as numbers, for example with pandas.get_dummies({name}); "
    "streamgp.StreamingGPClassifier learns labels that are text."
)


def _to_array(value: Any, name: str, kinds: str) -> NDArray[Any]:
    advice = f"Pass numbers: a tensor, a NumPy array, a pandas table or a list, as in torch.as_tensor({name})."
    num_masked = int(np.ma.getmaskarray(value).sum()) if isinstance(value, np.ma.MaskedArray) else 0
    if num_masked:
        raise ValueRangeError(
            f"{name} is a masked array with {num_masked} masked values, whose numbers are not known. "
            "Drop those rows, or fill them."
        )
    if value is None or isinstance(value, bool | str | bytes | dict | set):
        raise DTypeError(f"{name} must be numbers, but is a {type(value).__name__}. {advice}")
    array = None
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        if _holds_text(array):
            raise DTypeError(_TEXT.format(name=name)) from None
        raise DTypeError(f"{name} is a {type(value).__name__} that cannot be read ({error}). {advice}") from None
    if _holds_text(array):
        raise DTypeError(_TEXT.format(name=name))
    if array.dtype.kind not in kinds:
        raise DTypeError(f"{name} must be numbers, but holds {array.dtype}. {advice}")
    if np.ma.isMaskedArray(array):
        array = np.asarray(np.ma.getdata(array))
    return array


def _holds_text(array: NDArray[Any] | None) -> bool:
    if array is None or array.dtype.kind != "O":
        return array is not None and array.dtype.kind in "US"
    return any(isinstance(one, str) for one in array.flat)


def to_double(value: Any, name: str) -> Tensor:
    """A tensor, array, list or number as a tensor of double precision of its own."""
    return to_tensor(value, name).detach().to(device="cpu", dtype=torch.float64, copy=True)


def to_form(values: Tensor, *, is_numpy: bool) -> Any:
    """Results in the form in which the data came: an array of NumPy, or the tensor itself."""
    return values.detach().cpu().numpy() if is_numpy else values


def check_float(value: object, name: str, *, like: Tensor | None = None) -> Tensor:
    """Return `value` as a float32 or float64 tensor; see `to_tensor`."""
    value = to_tensor(value, name, like=like)
    if value.dtype not in (torch.float32, torch.float64):
        remedy = f"{name}.to({like.dtype})" if like is not None and like.is_floating_point() else f"{name}.double()"
        raise DTypeError(
            f"{name} must be float32 or float64, but is {_dtype_name(value.dtype)}. Convert it with {remedy}."
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
    X = check_float(X, name, like=like)
    if X.dim() < 2:
        hint = "A column of inputs is" if num_dims == 1 else "For a single input use"
        raise ShapeError(
            f"{name} must have shape (..., n, {num_dims}), one row for each input, but has shape "
            f"{tuple(X.shape)}. {hint} {name}.reshape({'-1, 1' if num_dims == 1 else '1, -1'})."
        )
    if X.shape[-1] != num_dims:
        raise ShapeError(
            f"{name} must have {num_dims} columns, as the model's inputs have, but has shape {tuple(X.shape)}. "
            "Pass one column for each input dimension."
        )
    check_batch(X.shape[:-2], batch_shape, name, num_own_axes=2)
    check_matches(X, like, name)
    return check_finite(X, name)


def check_batch(shape: Sequence[int], batch_shape: Sequence[int], name: str, *, num_own_axes: int) -> None:
    """Check that leading axes of data, before its own, broadcast with those of a model."""
    if not is_broadcastable(shape, batch_shape):
        place = -1 - num_own_axes
        remedy = f"an axis for the model's behind them with {name}.unsqueeze({place})"
        if len(batch_shape) > 1:
            remedy = f"{len(batch_shape)} axes for the model's behind them, each with {name}.unsqueeze({place})"
        raise ShapeError(
            f"The leading axes {tuple(shape)} of {name} do not broadcast with the leading axes {tuple(batch_shape)} "
            f"of the model. Make them equal, or add {remedy}."
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
    y = check_float(y, name, like=X)
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
    if isinstance(noise_variance, int | float) and not isinstance(noise_variance, bool):
        if not 0.0 <= noise_variance <= torch.finfo(X.dtype).max:
            raise ValueRangeError(
                f"{name} must be finite and must not be negative, but is {_shown(noise_variance)}. "
                "Pass a variance, that is a squared standard deviation."
            )
        return torch.tensor(noise_variance, dtype=X.dtype, device=X.device), False
    noise_variance = check_float(noise_variance, name, like=X)
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
    if is_matrix and not is_scalar:
        _check_covariance(noise_variance.detach(), name)
    return (noise_variance.reshape(()) if is_scalar else noise_variance), is_matrix and not is_scalar


def _check_covariance(matrix: Tensor, name: str) -> None:
    if not matrix.numel():
        return
    # Rounding of a product of two factors, and of the eigenvalues of many, with room for how it was formed.
    rounding = max(1e4, 10.0 * matrix.shape[-1]) * torch.finfo(matrix.dtype).eps * matrix.abs().amax()
    asymmetry = (matrix - matrix.mT).abs().amax()
    if asymmetry > rounding:
        raise ValueRangeError(
            f"{name} must be a symmetric matrix, but entries across its diagonal differ by {float(asymmetry):.3g}. "
            f"Pass 0.5 * ({name} + {name}.mT), if that is what was meant."
        )
    shift = rounding.clamp_min(torch.finfo(matrix.dtype).tiny).expand(matrix.shape[:-1])
    _, failed = torch.linalg.cholesky_ex(matrix + torch.diag_embed(shift))
    if bool(failed.any()):
        raise ValueRangeError(
            f"{name} must be a covariance matrix, but has a negative eigenvalue: no noise has such covariances. "
            "Check its correlations, or pass one variance for each observation."
        )


def check_choice(value: object, choices: Sequence[str], name: str) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise OptionError(f"{name} must be one of {', '.join(map(repr, choices))}, but is {value!r}.")
    return str(value)


def check_count(value: object, name: str, *, minimum: int = 1) -> int:
    """Return `value`, Python's or NumPy's, as Python's own number if it is a whole one of at least `minimum`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < minimum:
        raise ValueRangeError(f"{name} must be a whole number of at least {minimum}, but is {value!r}.")
    return int(value)


def check_seed(value: object, name: str = "seed") -> int:
    """Return `value` as Python's own number if generators of random numbers take it."""
    seed = check_count(value, name, minimum=0)
    if seed >= _MOST_SEEDS:
        raise ValueRangeError(f"{name} must be below 2 ** 63, as generators take it, but is {seed}. Use a smaller one.")
    return seed


def keep_count(settings: object, name: str, *, minimum: int = 1) -> None:
    """Check a field of a frozen value while it is made, and keep it as Python's own number, as files hold it."""
    object.__setattr__(settings, name, check_count(getattr(settings, name), name, minimum=minimum))


def check_generator(value: object) -> torch.Generator | None:
    """Return `value` if it is a source of randomness or None."""
    if value is not None and not isinstance(value, torch.Generator):
        raise ArgumentTypeError(
            f"generator must be a torch.Generator or None, but is a {type(value).__name__}. "
            "Make one with torch.Generator().manual_seed(seed)."
        )
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
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value <= sys.float_info.max:
        raise ValueRangeError(f"{name} must be a positive, finite number, but is {value!r}.")
    return float(value)


def _shown(number: float) -> str:
    text = repr(number)
    return text if len(text) <= 24 else f"{text[:12]}... with {len(text)} digits"


def _describe_tensor(value: Tensor) -> str:
    if value.is_meta:
        return "on the meta device, which holds no values"
    return f"{_dtype_name(value.dtype)} with layout {str(value.layout).removeprefix('torch.')}"


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
