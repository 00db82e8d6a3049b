"""Likelihoods as plain descriptions: class names and parameters that JSON can hold, without code."""

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.registry import known_classes

__all__ = ["describe_likelihood", "rebuild_likelihood"]

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def describe_likelihood(likelihood: AbstractLikelihood) -> dict[str, Any]:
    """Describe a likelihood with its parameters, to the last bit."""
    name, classes = type(likelihood).__name__, known_classes()
    if type(likelihood) is not classes.get(name):
        raise UnsupportedError(
            f"A likelihood of class {name} cannot be saved, as it cannot be rebuilt by name. "
            f"Those that can are {', '.join(sorted(classes))}."
        )
    values = {field.name: getattr(likelihood, field.name) for field in fields(likelihood)}  # type: ignore[arg-type]
    return {"class": name, "values": {key: _describe_value(value) for key, value in values.items()}}


def rebuild_likelihood(described: dict[str, Any]) -> AbstractLikelihood:
    """Build a described likelihood."""
    try:
        values = {key: _rebuild_value(value) for key, value in described["values"].items()}
        likelihood = known_classes()[described["class"]](**values)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise FileFormatError(f"The file's description of the likelihood is not complete: {error!r}.") from error
    return likelihood


def _describe_value(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return {"dtype": str(value.dtype).removeprefix("torch."), "numbers": value.detach().cpu().tolist()}


def _rebuild_value(value: Any) -> Any:
    return torch.tensor(value["numbers"], dtype=_DTYPES[value["dtype"]]) if isinstance(value, dict) else value
