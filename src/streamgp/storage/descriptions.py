"""Checks of what files describe, before anything is made of it."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import jaxtyped
from torch import Tensor

from streamgp.errors import FileFormatError
from streamgp.storage.hints import matches
from streamgp.storage.registry import StoredClass

__all__ = ["check_fields", "read_dtype", "read_float", "read_shape"]


def check_fields(stored: StoredClass, fields: Mapping[str, Any]) -> None:
    """Compare fields with those of their class, and their values with its annotations."""
    missing, unknown = sorted(stored.required - fields.keys()), sorted(fields.keys() - stored.allowed)
    if missing or unknown:
        what = f"lacks {missing}" if missing else f"has {unknown}, which are not known"
        raise FileFormatError(f"The file's {stored.name} {what}. The file is damaged, or of a newer streamgp.")
    with jaxtyped("context"):  # within which axes of the same letter must have the same size
        for name, value in fields.items():
            if name in stored.hints and not matches(value, stored.hints[name]):
                shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
                raise FileFormatError(
                    f"The field {name} of the file's {stored.name} is a {type(value).__name__}{shape}, which is not "
                    "what it should be, or does not fit the others. The file is damaged; save it again."
                )


def read_float(text: Any) -> float:
    """A number that JSON does not have."""
    if text not in ("inf", "-inf", "nan"):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def read_shape(values: Any) -> list[int]:
    """Sizes of axes."""
    if type(values) is not list or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{values!r} is not a shape")
    return values


def read_dtype(name: Any) -> torch.dtype:
    """A type of tensors."""
    dtype = getattr(torch, str(name))
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"{name!r} is not a type of tensors")
    return dtype
