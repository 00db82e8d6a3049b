"""Whether what a file holds is finite, without a copy of it: a file is read in at most twice its size of memory."""

import torch
from torch import Tensor

__all__ = ["is_finite"]

_NUM_AT_ONCE = 1 << 16


def is_finite(value: Tensor) -> bool:
    """Whether no number is NaN or infinite, looked at part by part."""
    if value.numel() <= _NUM_AT_ONCE:
        return bool(torch.isfinite(value).all())
    axis = max(range(value.dim()), key=lambda i: value.shape[i])
    size = max(1, _NUM_AT_ONCE * value.shape[axis] // value.numel())
    return all(bool(torch.isfinite(part).all()) for part in value.split(size, axis))
