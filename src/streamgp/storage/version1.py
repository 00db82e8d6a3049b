"""Parts of files of format version 1 as the codec would have encoded them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["likelihood_of", "module_of", "object_of", "plain", "process_of", "tensor_at", "tensors_within"]

Node = Any


def object_of(name: str, fields: Mapping[str, Node], *, version: int = 1) -> Node:
    """An object of a registered class.

    Args:
        name: Name of the class in files.
        fields: Its fields, encoded.
        version: Version of these fields.
    """
    return {"$": "object", "class": name, "version": version, "fields": dict(fields)}


def plain(value: Any) -> Node:
    """What JSON held, as it is: objects are mappings, and lists tuples."""
    if isinstance(value, dict):
        return {"$": "dict", "items": [[name, plain(item)] for name, item in value.items()]}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$": "float", "value": str(value)}
    return value


def tensor_at(name: str) -> Node:
    """A tensor of the file."""
    return {"$": "tensor", "at": name}


def tensors_within(prefix: str, names: Sequence[str]) -> dict[str, Node]:
    """All tensors whose names start with a prefix and a dot, by the rest of their names."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor_at(name) for name in names if name.startswith(start)}


def process_of(described: Mapping[str, Any], prefix: str, names: Sequence[str]) -> Node:
    """A sparse process.

    Args:
        described: Its description.
        prefix: What the names of its tensors start with, up to a dot; empty for nothing.
        names: Names of all tensors of the file.
    """
    start = f"{prefix}." if prefix else ""
    modules = {
        role: module_of(described["modules"][role], role, f"{start}{role}", names, is_frozen=True)
        for role in ("kernel", "mean")
    }
    # Whatever the precision of the inducing points, the prior has it; their tensor can be read only once.
    prior = object_of("gp.Prior", modules)
    fields = {name: tensor_at(f"{start}{name}") for name in ("inducing_points", "whitened_mean", "whitened_root")}
    fields |= {"prior": prior, "jitter": described["jitter"]}
    if f"{start}information" in names:
        fields["information"] = tensor_at(f"{start}information")
    return object_of("gp.SparseProcess", fields)


def module_of(described: Mapping[str, Any], role: str, prefix: str, names: Sequence[str], *, is_frozen: bool) -> Node:
    """A kernel or mean, with its values under a prefix."""
    values = tensors_within(prefix, names)
    state = {name: at for name, at in values.items() if "_constraint." not in name and "active_dims" not in name}
    structure = described["description"]
    return {
        "$": "module",
        "class": described["class"],
        "role": role,
        "structure": None if structure is None else _structure_of(structure),
        "values": state,
        "frozen": list(state) if is_frozen else described["frozen"],
    }


def likelihood_of(described: Mapping[str, Any]) -> Node:
    """A likelihood, whose parameters were part of the description."""
    fields = {name: _value_of(value) for name, value in described["values"].items()}
    return object_of(f"likelihoods.{described['class']}", fields)


def _structure_of(described: Mapping[str, Any]) -> dict[str, Any]:
    name = described["class"]
    parts = {"ScaleKernel": ["base_kernel"]}.get(name, [f"kernels.{i}" for i in range(len(described["parts"]))])
    structure = {
        "class": name,
        "batch_shape": described["batch_shape"],
        "options": {key: value for key, value in described["options"].items() if value is not None},
        "constraints": described["constraints"],
        "priors": {},
        "parts": dict(zip(parts, map(_structure_of, described["parts"]), strict=True)),
    }
    if name in ("AdditiveKernel", "ProductKernel"):
        del structure["batch_shape"]
    return structure


def _value_of(value: Any) -> Node:
    if isinstance(value, dict):
        return {"$": "numbers", "dtype": value["dtype"], "numbers": value["numbers"]}
    return value
