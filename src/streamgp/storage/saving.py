"""Saving any object that is registered, and loading whatever was saved."""

import os
from typing import Any, TypeVar, overload

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from streamgp.errors import FileFormatError, StreamGPError, UnsupportedError
from streamgp.storage.archive import ArchiveReader, write_archive
from streamgp.storage.codec import Decoder, Encoder
from streamgp.storage.registry import find_class

__all__ = ["describe_unsavable", "load", "save"]

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
        name: What it is to the user.
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
    """Read whatever was saved: a GP, a model, a fit, an estimator, an optimizer, a pool learner, a checkpoint.

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
        device: Where to put the tensors; the CPU by default.
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
    return description["content"]
