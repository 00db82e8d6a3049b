"""Objects as arrays in memory, for those who keep them their own way, as PyTorch's `state_dict` does."""

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from torch import Tensor
from torch.nn import Module

from streamgp.errors import FileFormatError
from streamgp.storage.codec import Decoder, Encoder

__all__ = ["ArrayTable", "from_arrays", "to_arrays"]


def to_arrays(value: Any, name: str) -> tuple[Any, dict[str, Tensor | np.ndarray]]:
    """What JSON can hold of an object, and arrays by name.

    Args:
        value: The object.
        name: What the names of the arrays start with.
    """
    encoder = Encoder()
    return encoder.encode(value, name), encoder.arrays


def from_arrays(
    content: Any, arrays: Mapping[str, Tensor | np.ndarray], *, modules: Mapping[str, Module | None] | None = None
) -> Any:
    """The object of which `to_arrays` made these.

    Args:
        content: What JSON can hold.
        arrays: By name.
        modules: Kernels and means to use where they cannot be rebuilt by name.

    Raises:
        FileFormatError: If they do not fit together.
    """
    return Decoder(ArrayTable(arrays), modules=modules).decode(content)


@final
class ArrayTable:
    """Arrays in memory, read as those of a file are."""

    path = "The state"

    def __init__(self, arrays: Mapping[str, Tensor | np.ndarray]) -> None:
        """Keep the arrays."""
        self._arrays = dict(arrays)

    def damaged(self, error: BaseException | str) -> FileFormatError:
        """The error that says that they do not fit together."""
        return FileFormatError(f"The state does not fit ({error}). Take that of a model of the same structure.")

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Shape of an array."""
        return tuple(self._arrays[name].shape)

    def take_array(self, name: str) -> np.ndarray:
        """A copy of an array."""
        return np.array(self._arrays[name])

    def take(self, name: str) -> Tensor:
        """A copy of a tensor."""
        value = self._arrays[name]
        if not isinstance(value, Tensor):
            raise self.damaged(f"{name} is not a tensor")
        return value.detach().clone()
