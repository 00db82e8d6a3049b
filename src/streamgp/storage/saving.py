"""Saving any object that is registered, to a file or as arrays in memory, and loading whatever was saved."""

import os
from collections.abc import Mapping
from typing import Any, TypeVar, final, overload

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError, StreamGPError, UnsupportedError
from streamgp.storage.archive import ArchiveReader, write_archive
from streamgp.storage.codec import Decoder, Encoder
from streamgp.storage.registry import find_class

__all__ = ["describe_unsavable", "from_arrays", "load", "save", "to_arrays"]

Kind = TypeVar("Kind")

_FORMAT = "streamgp"
_VERSION = 1


def save(value: Any, path: str | os.PathLike[str]) -> None:
    """Write an object to a file, whole or not at all: arrays and a JSON description, no pickle.

    Args:
        value: An object of a registered class; see `streamgp.storage.register`.
        path: The file. A symbolic link is followed, the mode of an existing file is kept.

    Raises:
        UnsupportedError: If it holds an object of a class that is not registered.
        SaveError: If the file cannot be written.
    """
    find_class(type(value), "What is to be saved")
    encoder = Encoder()
    content = encoder.encode(value, "content")
    write_archive(path, {"format": _FORMAT, "version": _VERSION, "content": content}, encoder.arrays)


def describe_unsavable(value: Any, name: str) -> str | None:
    """Say why an object cannot be saved, without saving it; None if it can.

    Args:
        value: The object.
        name: Name of the object to the user.
    """
    try:
        Encoder().encode(value, name)
    except UnsupportedError as error:
        return str(error)
    return None


@overload
def load(
    path: str | os.PathLike[str],
    *,
    kernel: Kernel | None = None,
    mean: Mean | None = None,
    device: torch.device | str | None = None,
    kind: None = None,
) -> Any: ...


@overload
def load(
    path: str | os.PathLike[str],
    *,
    kernel: Kernel | None = None,
    mean: Mean | None = None,
    device: torch.device | str | None = None,
    kind: type[Kind],
) -> Kind: ...


def load(
    path: str | os.PathLike[str],
    *,
    kernel: Kernel | None = None,
    mean: Mean | None = None,
    device: torch.device | str | None = None,
    kind: type | None = None,
) -> Any:
    """Read a file that `save` wrote: a GP, a model, a fit, an estimator, an optimizer, a pool learner, a checkpoint.

    Files from elsewhere can be read safely: nothing in a file is executed, and no more memory is used than about twice
    its size.

    ```python
    optimizer = sg.Optimizer([(100.0, 180.0)])
    optimizer.save("oven.sgp")
    same = sg.load("oven.sgp")
    ```

    Args:
        path: The file.
        kernel: A kernel of the structure that was saved, where it cannot be rebuilt by name; its values come
            from the file.
        mean: A mean, likewise.
        device: Device of the tensors; the CPU by default.
        kind: The class that the file must hold; any by default.

    Raises:
        FileFormatError: If there is no such file, it is damaged, or holds something else.
        UnsupportedError: If a kernel or mean must be passed.
    """
    with ArchiveReader(path) as reader:
        try:
            content = _content_of(reader)
            decoder = Decoder(reader, modules={"kernel": kernel, "mean": mean}, device=device)
            value = decoder.decode(content)
        except StreamGPError:
            raise
        except Exception as error:  # whatever a damaged description leads to, it means one thing to the user
            raise reader.damaged(error) from error
    if kind is not None and not isinstance(value, kind):
        raise FileFormatError(f"{path} does not hold a {kind.__name__}, but a {type(value).__name__}.")
    return value


def _content_of(reader: ArchiveReader) -> Any:
    description = reader.description
    format, version = description.get("format"), description.get("version")
    if format != _FORMAT:
        raise FileFormatError(f"{reader.path} does not hold an object of streamgp, but {format!r}.")
    if version != _VERSION:
        raise FileFormatError(
            f"{reader.path} has format version {version!r}, but this version of streamgp reads version {_VERSION}. "
            "Load it with the version that wrote it, or upgrade streamgp."
        )
    content = description["content"]
    if type(content) is not dict or content.get("$") != "object":
        raise FileFormatError(f"{reader.path} does not hold an object of streamgp, but parts of one.")
    return content


def to_arrays(value: Any, name: str) -> tuple[Any, dict[str, Tensor | np.ndarray]]:
    """Take an object apart into a description that JSON can hold, and arrays by name.

    Args:
        value: The object.
        name: Beginning of the names of the arrays.
    """
    encoder = Encoder()
    return encoder.encode(value, name), encoder.arrays


def from_arrays(
    content: Any, arrays: Mapping[str, Tensor | np.ndarray], *, modules: Mapping[str, Module | None] | None = None
) -> Any:
    """Put together an object that `to_arrays` took apart.

    Args:
        content: The description.
        arrays: By name.
        modules: Kernels and means to use where they cannot be rebuilt by name.

    Raises:
        FileFormatError: If they do not fit together.
    """
    return Decoder(_ArrayTable(arrays), modules=modules).decode(content)


@final
class _ArrayTable:
    """Arrays in memory, read as those of a file are."""

    path = "The state"

    def __init__(self, arrays: Mapping[str, Tensor | np.ndarray]) -> None:
        """Keep the arrays."""
        self._arrays = dict(arrays)

    def damaged(self, error: BaseException | str) -> FileFormatError:
        """Return an error that says that they do not fit together."""
        return FileFormatError(f"The state does not fit ({error}). Take that of a model of the same structure.")

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of an array."""
        return tuple(self._arrays[name].shape)

    def take_array(self, name: str) -> np.ndarray:
        """Copy an array."""
        return np.array(self._arrays[name])

    def take(self, name: str) -> Tensor:
        """Copy a tensor."""
        value = self._arrays[name]
        if not isinstance(value, Tensor):
            raise self.damaged(f"{name} is not a tensor")
        return value.detach().clone()
