"""States that exported files write: the bytes of a belief, and what it is a belief of."""

import struct
from typing import Any

import numpy as np
import torch

from streamgp.errors import FileFormatError
from streamgp.export.description import describe, hash_bytes
from streamgp.gp import SparseProcess

__all__ = ["num_state_bytes", "read_state"]

# "SGPB", version, bytes of a number, number of points, fingerprint; least significant byte first.
_HEADER = struct.Struct("<4sHHII")


def num_state_bytes(num_points: int, num_bytes: int) -> int:
    """Length of a state: header, mean, factor and checksum."""
    return _HEADER.size + num_bytes * (num_points + num_points * (num_points + 1) // 2) + 4


def read_state(process: SparseProcess, content: Any) -> SparseProcess:
    """Give a process the belief of a device that was exported from it, or from one with other observations.

    Args:
        process: With the same inducing points, kernel and mean.
        content: Bytes of `state_out`.

    Raises:
        FileFormatError: If they are damaged, or of another model.
    """
    content, m = bytes(content), process.num_inducing
    if len(content) < _HEADER.size or content[:4] != b"SGPB":
        raise FileFormatError(
            f"A state begins with 'SGPB' and has at least {_HEADER.size} bytes, but these are {len(content)} bytes of "
            "something else. Pass what state_out of an exported file returned."
        )
    _, version, width, num_points, fingerprint = _HEADER.unpack_from(content)
    if version != 1 or width not in (4, 8):
        raise FileFormatError(
            f"The state has version {version} and numbers of {width} bytes, which this version of streamgp does not "
            "read. Read it with the one that wrote the device's file."
        )
    if num_points != m or fingerprint != describe(process).fingerprint:
        raise FileFormatError(
            f"The state is a belief at {num_points} inducing points of another GP than this one of {m}. Pass the GP "
            "that was exported: the same points, kernel, mean and jitter."
        )
    is_whole = len(content) == num_state_bytes(m, width) and hash_bytes(content[:-4]) == _checksum(content)
    numbers = np.frombuffer(content[_HEADER.size : -4], f"<f{width}").astype(float) if is_whole else np.full(1, np.nan)
    if not np.isfinite(numbers).all():
        raise FileFormatError("The state is damaged: its numbers and its checksum do not agree. Send it again.")
    mean, root = numbers[:m], np.eye(m)
    rows, columns = np.tril_indices(m)
    root[columns, rows] = numbers[m:]  # by columns of the upper triangle
    diagonal = root.diagonal().clip(0.0) ** 0.5
    np.fill_diagonal(root, 1.0)
    like = process.whitened_mean
    return process.with_belief(torch.as_tensor(mean).to(like), torch.as_tensor(root * diagonal).to(like))


def _checksum(content: bytes) -> int:
    return int.from_bytes(content[-4:], "little")
