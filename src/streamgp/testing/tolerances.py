"""The one table of tolerances that all tests use."""

from typing import Any

import torch

__all__ = ["tolerance"]

# Gaussian algebra on well-scaled problems loses a few digits to the condition number of the
# factors, in double precision from 2e-16 and in single precision from 6e-8.
_TABLE = {
    torch.float64: {"rtol": 1e-8, "atol": 1e-9},
    torch.float32: {"rtol": 2e-3, "atol": 2e-3},
}


def tolerance(dtype: torch.dtype, *, scale: float = 1.0) -> dict[str, Any]:
    """Return `rtol` and `atol` for `torch.testing.assert_close`.

    Args:
        dtype: Precision of the computation under test.
        scale: Size of the numbers compared; multiplies the absolute tolerance.
    """
    row = _TABLE[dtype]
    return {"rtol": row["rtol"], "atol": row["atol"] * scale}
