"""Objects as JSON and arrays, and back: by their fields, without code in the file."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError, SaveError, StreamGPError, UnsupportedError
from streamgp.storage.archive import is_finite
from streamgp.storage.modules import describe_module, rebuild_module, restore_module, role_of, state_of
from streamgp.storage.registry import find_class, find_name, is_registered

__all__ = ["Decoder", "Encoder"]

# Levels of objects within objects; nothing of ours comes near.
_DEEPEST = 60
# Tuples of numbers that are longer become arrays.
_LONGEST_TUPLE = 64
_SCALARS = (bool, int, str, type(None))
_INTEGER_BITS = 256


@final
class Encoder:
    """Turns objects into what JSON can hold, and collects arrays by name."""

    def __init__(self) -> None:
        """Start with no arrays."""
        self.arrays: dict[str, Tensor | np.ndarray] = {}

    def encode(self, value: Any, where: str, *, depth: int = 0) -> Any:
        """Encode an object.

        Args:
            value: The object.
            where: Its place, which names arrays, and objects in errors.
            depth: Number of objects that it lies within.

        Raises:
            UnsupportedError: If something in it is of a class that was not registered.
        """
        if depth > _DEEPEST:
            raise UnsupportedError(
                f"{where} lies within more than {_DEEPEST} other objects, which is too deep to save."
            )
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"$": "float", "value": str(value)}
        if kind is datetime and value.tzinfo is None:
            return {"$": "datetime", "value": value.isoformat()}
        if kind is torch.Size:
            return {"$": "size", "items": list(value)}
        if kind is tuple or kind is list:
            return self._encode_sequence(value, where, depth)
        if is_registered(kind):
            return self._encode_object(value, where, depth)
        if isinstance(value, Module):
            return self._encode_module(value, where)
        if isinstance(value, Tensor):
            return self._keep("tensor", value, where)
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_numpy(value, where, depth)
        if isinstance(value, torch.dtype):
            return {"$": "dtype", "value": str(value).removeprefix("torch.")}
        if isinstance(value, Mapping):
            items = [
                [
                    self.encode(key, f"{where}.keys{i}", depth=depth + 1),
                    self.encode(item, f"{where}.{i}", depth=depth + 1),
                ]
                for i, (key, item) in enumerate(value.items())
            ]
            return {"$": "dict", "items": items}
        return self._encode_object(value, where, depth)

    def _encode_object(self, value: Any, where: str, depth: int) -> Any:
        stored = find_class(type(value), where)
        if stored.check is not None:
            try:
                stored.check(value)
            except Exception as error:  # whatever makes no sense in it could not be read again
                raise SaveError(f"{where} cannot be saved, as it could not be read again: {error}") from error
        fields = stored.to_fields(value)
        encoded = {name: self.encode(item, f"{where}.{name}", depth=depth + 1) for name, item in fields.items()}
        return {"$": "object", "class": stored.name, "fields": encoded}

    def _encode_sequence(self, value: tuple[Any, ...] | list[Any], where: str, depth: int) -> Any:
        if type(value) is tuple and len(value) > _LONGEST_TUPLE and all(type(item) is float for item in value):
            return self._keep("floats", np.array(value), where)
        items = [self.encode(item, f"{where}.{i}", depth=depth + 1) for i, item in enumerate(value)]
        return items if type(value) is tuple else {"$": "list", "items": items}

    def _encode_numpy(self, value: np.ndarray | np.generic, where: str, depth: int) -> Any:
        if value.dtype.kind == "O":
            items = [self.encode(item, f"{where}.{i}", depth=depth + 1) for i, item in enumerate(value.reshape(-1))]
            return {"$": "objects", "items": items, "shape": list(value.shape)}
        if value.dtype.kind not in "fiubcU":
            raise UnsupportedError(
                f"{where} is an array of {value.dtype}, which cannot be saved. Convert it to numbers."
            )
        return self._keep("array" if isinstance(value, np.ndarray) else "number", np.asarray(value), where)

    def _encode_module(self, module: Module, where: str) -> Any:
        structure = describe_module(module)
        if structure is None and role_of(module) == "module":
            raise UnsupportedError(
                f"{where} is a {type(module).__name__}, or holds a module or a prior, that could not be rebuilt. Tell "
                f"how by streamgp.storage.register_module({type(module).__name__}, batch_shape=None), with names of "
                "attributes that its constructor takes as options=(...), before saving and loading, and leave out "
                "priors of other kinds than GPyTorch's."
            )
        values = {name: self._keep("tensor", value, f"{where}.{name}") for name, value in state_of(module).items()}
        for name, parameter in module.named_parameters():
            if not is_finite(parameter):
                raise SaveError(
                    f"{where} cannot be saved: the parameter {name} of its {type(module).__name__} is not finite."
                )
        frozen = [name for name, value in module.named_parameters() if not value.requires_grad]
        return {
            "$": "module",
            "class": type(module).__name__,
            "role": role_of(module),
            "structure": structure,
            "values": values,
            "frozen": frozen,
        }

    def _keep(self, kind: str, value: Tensor | np.ndarray, where: str) -> Any:
        self.arrays[where] = value
        return {"$": kind, "at": where}


@runtime_checkable
class Arrays(Protocol):
    """Source of arrays: a file or a table in memory."""

    @property
    def path(self) -> object:
        """Name of the source in errors."""

    def damaged(self, error: BaseException | str) -> FileFormatError:
        """Return an error that says that it is damaged."""

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of an array."""

    def take_array(self, name: str) -> np.ndarray:
        """Return an array; it cannot be taken again."""

    def take(self, name: str) -> Tensor:
        """Return a tensor; it cannot be taken again."""


@final
class Decoder:
    """Turns what an `Encoder` made into objects."""

    def __init__(
        self,
        reader: Arrays,
        *,
        modules: Mapping[str, Module | None] | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        """Start to read.

        Args:
            reader: The open file.
            modules: By role, `"kernel"` or `"mean"`, a module to use where one cannot be rebuilt by name.
            device: Device of the tensors; the CPU by default.
        """
        self._reader = reader
        self._modules = dict(modules or {})
        self._device = device
        self._builders: dict[str, Callable[[dict[str, Any], int], Any]] = {
            "float": lambda node, _: _read_float(node["value"]),
            "datetime": lambda node, _: datetime.fromisoformat(node["value"]),
            "size": lambda node, _: torch.Size(_read_shape(node["items"])),
            "list": lambda node, depth: self._items(node["items"], depth),
            "dict": self._decode_dict,
            "dtype": lambda node, _: _read_dtype(node["value"]),
            "tensor": lambda node, _: self._tensor(node["at"]),
            "array": lambda node, _: reader.take_array(node["at"]),
            "number": lambda node, _: reader.take_array(node["at"])[()],
            "floats": lambda node, _: tuple(reader.take_array(node["at"]).tolist()),
            "objects": self._decode_objects,
            "module": self._decode_module,
            "object": self._decode_object,
        }

    def decode(self, node: Any, *, depth: int = 0) -> Any:
        """Decode what was read from JSON.

        Raises:
            FileFormatError: If it is not what an `Encoder` makes.
        """
        if depth > _DEEPEST:
            raise FileFormatError(f"{self._reader.path} holds objects within more than {_DEEPEST} others.")
        kind = type(node)
        if kind is int and node.bit_length() > _INTEGER_BITS:
            raise FileFormatError(f"{self._reader.path} holds a whole number of {node.bit_length()} bits.")
        if kind in _SCALARS or kind is float:
            return node
        if kind is list:
            return tuple(self._items(node, depth))
        try:
            return self._builders[node["$"]](node, depth)
        except (StreamGPError, RecursionError, MemoryError):
            raise
        except Exception as error:  # whatever makes no sense in the description, it means one thing to the user
            raise self._reader.damaged(error) from error

    def _items(self, items: Any, depth: int) -> list[Any]:
        if type(items) is not list:
            raise TypeError(f"a list is expected, but got {type(items).__name__}")
        return [self.decode(item, depth=depth + 1) for item in items]

    def _decode_dict(self, node: dict[str, Any], depth: int) -> dict[Any, Any]:
        return {self.decode(key, depth=depth + 1): self.decode(item, depth=depth + 1) for key, item in node["items"]}

    def _decode_objects(self, node: dict[str, Any], depth: int) -> np.ndarray:
        items = self._items(node["items"], depth)
        values = np.empty(len(items), object)
        values[:] = items
        return values.reshape(_read_shape(node["shape"]))

    def _tensor(self, name: Any) -> Tensor:
        return self._place(self._reader.take(name))

    def _place(self, tensor: Tensor) -> Tensor:
        return tensor if self._device is None else tensor.to(self._device)

    def _decode_module(self, node: dict[str, Any], _: int) -> Module:
        shapes = {name: self._reader.shape_of(value["at"]) for name, value in node["values"].items()}
        if node["structure"] is None:
            module = restore_module(node["class"], node["role"], self._modules)
        else:
            module = rebuild_module(node["structure"], shapes)
        expected = {name: tuple(value.shape) for name, value in state_of(module).items()}
        if expected != shapes:
            raise FileFormatError(
                f"The {node['role']} has the parameters {sorted(expected)}, but the file holds {sorted(shapes)} or "
                f"other shapes. Pass a {node['role']} of the structure that was saved, a {node['class']}."
            )
        values = {name: self._tensor(value["at"]) for name, value in node["values"].items()}
        parameters = dict(module.named_parameters())
        for name, before in state_of(module).items():
            if before.is_floating_point() != values[name].is_floating_point():
                raise FileFormatError(f"The parameter {name} of a {node['class']} is of type {values[name].dtype}.")
            if name in parameters and not is_finite(values[name]):
                raise FileFormatError(f"The parameter {name} of a {node['class']} is not finite.")
        if self._device is not None:
            module.to(self._device)
        module.load_state_dict(values, strict=False, assign=True)
        for name, parameter in module.named_parameters():
            parameter.requires_grad_(name not in node["frozen"])
        return module

    def _decode_object(self, node: dict[str, Any], depth: int) -> Any:
        stored = find_name(node["class"])
        fields = {str(name): self.decode(item, depth=depth + 1) for name, item in node["fields"].items()}
        try:
            return stored.build(fields)
        except FileFormatError:
            raise
        except StreamGPError as error:
            raise FileFormatError(f"{self._reader.path} holds a {stored.name} that makes no sense: {error}") from error


def _read_float(text: Any) -> float:
    """Read a number that JSON does not have."""
    if text not in ("inf", "-inf", "nan"):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _read_shape(values: Any) -> list[int]:
    if type(values) is not list or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{values!r} is not a shape")
    return values


def _read_dtype(name: Any) -> torch.dtype:
    dtype = getattr(torch, str(name))
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"{name!r} is not a type of tensors")
    return dtype
