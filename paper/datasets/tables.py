"""Numbers of the files, as they are stored."""

import gzip
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paper.datasets.files import find_file

__all__ = ["read_table"]

_GZIP_MAGIC = b"\x1f\x8b"


def read_table(
    name: str, *, num_header: int = 0, columns: Sequence[int] | None = None, num_rows: int | None = None
) -> Float[Tensor, "n d"]:
    """Read a file of numbers that are separated by commas, compressed or not, with any kind of line ends.

    Args:
        name: The file's name in the registry.
        num_header: Lines to leave out.
        columns: Columns to read; all by default.
        num_rows: Rows to read; all by default.
    """
    content = find_file(name).read_bytes()
    if content.startswith(_GZIP_MAGIC):
        content = gzip.decompress(content)
    lines = content.decode().splitlines()
    rows = np.loadtxt(lines, delimiter=",", skiprows=num_header, usecols=columns, max_rows=num_rows, ndmin=2)
    return torch.from_numpy(rows)
