"""Members of a finite pool: their indices, weights, and what the likelihood knows of each."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_finite, to_double
from streamgp.errors import DTypeError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, read_likelihood

__all__ = ["check_constants", "read_indices", "read_weights"]


def read_indices(value: Any, num_members: int, name: str) -> Int[Tensor, " k"]:
    """Indices of distinct members, as a tensor of their own.

    Args:
        value: A tensor, array or list of whole numbers.
        num_members: Size of the pool.
        name: What an error calls them.
    """
    try:
        indices = value.detach().cpu().clone() if isinstance(value, Tensor) else _to_tensor(np.array(value))
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


def _to_tensor(array: np.ndarray) -> Tensor:
    """An array of any kind, also reversed or of another byte order, which torch does not read."""
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C"))


def read_weights(weights: Any, num_members: int) -> Float[Tensor, " n"]:
    """One weight for each member, as a tensor of double precision."""
    values = to_double(weights, "weights")
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
    likelihood = read_likelihood(likelihood)
    name = type(likelihood).__name__
    if likelihood.num_inputs != 1:
        raise UnsupportedError(
            f"A {name} observation looks at {likelihood.num_inputs} inputs, but members of a pool "
            "are observed one by one. Use a likelihood of single outcomes."
        )
    if not likelihood.has_response:
        raise UnsupportedError(
            f"A {name} likelihood has the mean zero everywhere, so members of a pool do not differ in what is "
            "expected of them. Observe the quantity of interest itself, with another likelihood."
        )
    for key, value in likelihood.constants().items():
        if value.dim() and value.shape != (num_members,):
            raise ShapeError(
                f"{key} of the {name} likelihood must be a number or have shape "
                f"({num_members},), one value for each member of the pool, but has shape {tuple(value.shape)}."
            )
    return likelihood
