"""A kernel that is still to be learned, as what JSON can hold and tensors."""

from copy import deepcopy
from typing import Any

from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.errors import FileFormatError, UnsupportedError
from streamgp.gp.description import describe_module, rebuild_module

__all__ = ["describe_learnable_kernel", "rebuild_learnable_kernel"]


def describe_learnable_kernel(kernel: Kernel) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Take a user's kernel apart: its structure, which parameters are frozen, and their values."""
    # Priors count in fits, and are not described.
    is_plain = not any(True for _ in kernel.named_priors())
    description = {
        "class": type(kernel).__name__,
        "description": describe_module(kernel) if is_plain else None,
        "frozen": [name for name, value in kernel.named_parameters() if not value.requires_grad],
    }
    return description, {name: value.detach() for name, value in kernel.named_parameters()}


def rebuild_learnable_kernel(
    description: dict[str, Any], tensors: dict[str, Tensor], *, given: Kernel | None
) -> Kernel:
    """Put a kernel together again.

    Args:
        description: What `describe_learnable_kernel` returned.
        tensors: Likewise.
        given: A kernel of the same structure, where it cannot be rebuilt by name; its values come from the tensors.
    """
    if given is None and description["description"] is None:
        raise UnsupportedError(
            f"The file was saved with a kernel of class {description['class']} that cannot be rebuilt by name, or that "
            "has priors of its own. Pass one of the same structure as kernel=...; its values are then read from the "
            "file."
        )
    kernel: Kernel = deepcopy(given) if given is not None else rebuild_module(description["description"])
    expected = {name: tuple(value.shape) for name, value in kernel.named_parameters()}
    if expected != {name: tuple(value.shape) for name, value in tensors.items()}:
        raise FileFormatError(
            f"The kernel has the parameters {sorted(expected)}, but the file holds {sorted(tensors)} or other shapes. "
            f"Pass a kernel of the structure that was saved, a {description['class']}."
        )
    for name, parameter in kernel.named_parameters():
        parameter.data = tensors[name].clone()
        parameter.requires_grad_(name not in description["frozen"])
    return kernel
