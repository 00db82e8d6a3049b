"""Numbers that enter a likelihood: its parameters, its constants and its targets, checked."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from streamgp.checks import ArrayLike, to_tensor
from streamgp.errors import ShapeError, SupportError, ValueRangeError
from streamgp.shapes import is_broadcastable

__all__ = [
    "Probabilities",
    "check_broadcasts",
    "check_counts",
    "check_support",
    "finite_exp",
    "largest_exponent",
    "to_float",
    "to_parameter",
    "to_probabilities",
]

# Of quantiles.
Probabilities = Sequence[float] | Tensor

# Exponents stop this far below the largest finite number, which leaves room for sums of e^10 = 22 000
# such terms: at 78.7 in single and 699.8 in double precision.
_EXPONENT_MARGIN = 10.0


def to_parameter(value: ArrayLike, name: str, *, above: float = -math.inf, below: float = math.inf) -> Tensor:
    """Convert a number or tensor to a floating-point tensor with every value in an open interval.

    Args:
        value: A number, which becomes float64, an array, or a tensor, which keeps its gradient.
        name: What an error calls the parameter.
        above: Lower end of the interval; not itself allowed.
        below: Upper end of the interval; not itself allowed.
    """
    tensor = to_float(value, name)
    is_inside = torch.isfinite(tensor) & (tensor > above) & (tensor < below)
    if not bool(is_inside.all()):
        wanted = "finite"
        if math.isfinite(above):
            wanted = "positive" if above == 0 else f"above {above:g}"
        if math.isfinite(below):
            wanted = f"between {above:g} and {below:g}"
        raise ValueRangeError(
            f"{name} must be {wanted}, but is {tensor[~is_inside][0].item():g}. Check the units and the sign of {name}."
        )
    return tensor


def to_float(value: object, name: str) -> Tensor:
    """Convert numbers and truth values to a float32 or float64 tensor; whole numbers become float64."""
    if isinstance(value, Tensor):
        return value if value.dtype in (torch.float32, torch.float64) else value.to(torch.float64)
    if isinstance(value, int | float):
        return torch.tensor(float(value), dtype=torch.float64)
    return to_tensor(value, name, kinds="fiub")


def to_probabilities(probabilities: Probabilities, like: Tensor) -> Tensor:
    """Convert probabilities of quantiles to a vector of float64 on the device of `like`."""
    vector = to_tensor(probabilities, "probabilities").to(dtype=torch.float64, device=like.device)
    if vector.dim() != 1:
        raise ShapeError(
            f"probabilities must have one axis, but has shape {tuple(vector.shape)}. "
            "Pass a list such as [0.05, 0.5, 0.95]."
        )
    return to_parameter(vector, "probabilities", above=0.0, below=1.0)


def check_support(y: Tensor, is_inside: Tensor, *, expected: str, advice: str) -> Tensor:
    """Return `y` if every element is inside the support.

    Args:
        y: Targets; may hold NaN.
        is_inside: Whether each target can be observed.
        expected: The rule, as in "Poisson targets must be whole numbers".
        advice: What to do about it, as a sentence.
    """
    if not bool(is_inside.all()):
        where = tuple((~is_inside).nonzero()[0].tolist())
        first = y.expand_as(is_inside)[where].item()
        if not math.isfinite(first):
            advice = "Drop those observations, or correct them."
        raise SupportError(
            f"{expected}, but {int((~is_inside).sum())} of {is_inside.numel()} are not: "
            f"the first is {first:g}, at index {where}. {advice}"
        )
    return y


def check_counts(y: Tensor, name: str) -> Tensor:
    """Return `y` if all of it are whole numbers that are not negative."""
    if y.numel() == 1 and 0.0 <= (one := float(y)) < math.inf and one == round(one):
        return y  # one row of a stream, for which tensors take ten times as long
    return check_support(
        y,
        torch.isfinite(y) & (y >= 0) & (y == y.round()),
        expected=f"{name} targets must be whole numbers of at least 0",
        advice="Pass counts, not rates; what is observed for longer or over more area belongs into the exposure.",
    )


def check_broadcasts(y: Tensor, constant: Tensor, name: str) -> None:
    """Check that targets and a constant of the likelihood belong to the same observations."""
    if not is_broadcastable(y.shape, constant.shape):
        raise ShapeError(
            f"y must broadcast with {name} of shape {tuple(constant.shape)}, but has shape {tuple(y.shape)}. "
            f"Give the likelihood one {name} for each observation, or a single one for all."
        )


def finite_exp(exponent: Tensor) -> Tensor:
    """Evaluate the exponential, held constant where it would come near overflow."""
    return exponent.clamp(max=largest_exponent(exponent.dtype)).exp()


def largest_exponent(dtype: torch.dtype) -> float:
    """Return the largest exponent that `finite_exp` passes on unchanged."""
    return math.log(torch.finfo(dtype).max) - _EXPONENT_MARGIN
