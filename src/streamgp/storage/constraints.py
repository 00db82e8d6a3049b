"""Constraints of the parameters of kernels and means as plain descriptions."""

from typing import Any

import torch
from gpytorch import constraints
from torch import Tensor
from torch.nn import Module

__all__ = ["describe_constraints", "rebuild_constraint"]

_CLASSES = {
    cls.__name__: cls
    for cls in (constraints.Positive, constraints.GreaterThan, constraints.LessThan, constraints.Interval)
}
_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def describe_constraints(module: Module) -> dict[str, dict[str, Any] | None]:
    """Constraints of a module's own parameters, by their names; None for one that cannot be rebuilt."""
    names = [name for name, value in module.named_parameters(recurse=False) if value is not None]
    found = {name: getattr(module, f"{name}_constraint", None) for name in names}
    return {name: _describe(constraint) for name, constraint in found.items() if constraint is not None}


def rebuild_constraint(described: dict[str, Any]) -> constraints.Interval:
    """Build a described constraint.

    Args:
        described: What `describe_constraints` said of one.
    """
    given = dict(zip(("lower_bound", "upper_bound"), described["bounds"], strict=True))
    bounds = {name: torch.tensor(bound) for name, bound in given.items() if bound is not None}
    if described["class"] == "Positive":
        bounds = {}
    untransformed = {} if described["is_transformed"] else {"transform": None, "inv_transform": None}
    constraint = _CLASSES[described["class"]](**bounds, **untransformed)
    if described.get("dtype") is None:
        return constraint
    dtype = _DTYPES[described["dtype"]]
    constraint.to(dtype)
    for name in bounds:  # to the last bit, which the constructor rounds to single precision
        constraint.register_buffer(name, torch.tensor(given[name], dtype=dtype))
    return constraint


def _describe(constraint: constraints.Interval) -> dict[str, Any] | None:
    if type(constraint) is not _CLASSES.get(type(constraint).__name__):
        return None
    described = {
        "class": type(constraint).__name__,
        "bounds": [_bound(constraint.lower_bound), _bound(constraint.upper_bound)],
        "dtype": str(constraint.lower_bound.dtype).removeprefix("torch."),
        "is_transformed": constraint._transform is not None,
    }
    # Transforms are functions or modules without values: their text tells them apart.
    return described if repr(rebuild_constraint(described)._transform) == repr(constraint._transform) else None


def _bound(bound: Tensor) -> Any:
    """A bound as numbers; None for none."""
    return bound.tolist() if bool(torch.isfinite(bound).all()) else None
