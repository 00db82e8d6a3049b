"""Members of a finite pool: their indices, and what the likelihood knows of each."""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_finite
from streamgp.errors import DTypeError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Volatility

__all__ = ["check_constants", "likelihood_of", "read_indices", "read_weights"]


def read_indices(value: Any, num_members: int, name: str) -> Int[Tensor, " k"]:
    """Indices of distinct members, as a tensor of their own.

    Args:
        value: A tensor, array or list of whole numbers.
        num_members: Size of the pool.
        name: What an error calls them.
    """
    try:
        indices = torch.as_tensor(value, device="cpu").detach().clone()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(f"{name} must be a list of whole numbers, but cannot be read ({error}).") from None
    if not indices.numel():
        indices = indices.long()
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool or indices.dim() != 1:
        raise DTypeError(
            f"{name} must be a list of whole numbers, the indices of members of the pool, but has dtype "
            f"{str(indices.dtype).removeprefix('torch.')} and shape {tuple(indices.shape)}. A mask becomes indices "
            f"with {name}.nonzero().squeeze(-1)."
        )
    is_outside = (indices < 0) | (indices >= num_members)
    if is_outside.any():
        raise ValueRangeError(
            f"{name} must be indices from 0 to {num_members - 1}, as the pool has {num_members} members, but has "
            f"{int(indices[is_outside][0])}."
        )
    found, counts = indices.unique(return_counts=True)
    if (counts > 1).any():
        raise ValueRangeError(
            f"{name} must name each member once, but {int(found[counts > 1][0])} comes {int(counts.max())} times. "
            "Leave the repetitions out."
        )
    return indices.long()


def read_weights(weights: Any, num_members: int) -> Float[Tensor, " n"]:
    """One weight for each member, as a tensor of double precision."""
    try:
        values = torch.as_tensor(weights, dtype=torch.float64, device="cpu").detach().clone()
    except (TypeError, ValueError, RuntimeError) as error:
        raise DTypeError(f"weights must be a list of numbers, but cannot be read ({error}).") from None
    if values.shape != (num_members,):
        raise ShapeError(
            f"weights must have shape ({num_members},), one for each member of the pool, but has shape "
            f"{tuple(values.shape)}."
        )
    if (check_finite(values, "weights") < 0).any() or not (values > 0).any():
        raise ValueRangeError(
            f"weights must not be negative, and some must be positive, but they go from {float(values.min()):g} to "
            f"{float(values.max()):g}."
        )
    return values


def check_constants(likelihood: object, num_members: int) -> AbstractLikelihood:
    """Return a likelihood of single observations whose constants are numbers or have one value for each member."""
    if not isinstance(likelihood, AbstractLikelihood):
        raise DTypeError(
            f"likelihood must be one of streamgp.likelihoods, but is a {type(likelihood).__name__}. "
            "Wrap one of GPyTorch's with streamgp.likelihoods.from_gpytorch."
        )
    if likelihood.num_inputs != 1:
        raise UnsupportedError(
            f"A {type(likelihood).__name__} observation looks at {likelihood.num_inputs} inputs, but members of a pool "
            "are observed one by one. Use a likelihood of single outcomes."
        )
    if isinstance(likelihood, Volatility):
        raise UnsupportedError(
            "A Volatility likelihood has the mean zero everywhere, so members of a pool do not differ in what is "
            "expected of them. Observe the quantity of interest itself, with another likelihood."
        )
    for name, value in _constants(likelihood).items():
        if value.shape != (num_members,):
            raise ShapeError(
                f"{name} of the {type(likelihood).__name__} likelihood must be a number or have shape "
                f"({num_members},), one value for each member of the pool, but has shape {tuple(value.shape)}."
            )
    return likelihood


def likelihood_of(likelihood: AbstractLikelihood, members: Int[Tensor, " k"], num_axes: int = 0) -> AbstractLikelihood:
    """The likelihood of some members.

    Args:
        likelihood: Of the whole pool.
        members: Which.
        num_axes: How many axes to put after that of the members.
    """
    chosen: Any = {
        name: value[members.to(value.device)].reshape(-1, *[1] * num_axes)
        for name, value in _constants(likelihood).items()
    }
    return replace(likelihood, **chosen) if chosen else likelihood  # type: ignore[type-var]


def _constants(likelihood: AbstractLikelihood) -> dict[str, Tensor]:
    """Constants that are not the same for all members."""
    return {name: value for name, value in vars(likelihood).items() if isinstance(value, Tensor) and value.dim()}
