"""Numbers for result files, short enough to keep."""

import math
from typing import Any

import numpy as np
from torch import Tensor

__all__ = ["rounded"]


def rounded(values: Tensor | float, *, num_digits: int = 4) -> Any:
    """A number, or a list of lists, with `num_digits` significant digits.

    Args:
        values: A number, or a tensor of any shape.
        num_digits: Number of digits that are kept.
    """
    if not isinstance(values, Tensor):
        return _round(float(values), num_digits)
    table = values.detach().double().numpy()
    return np.vectorize(lambda value: _round(value, num_digits), otypes=[object])(table).tolist() if table.size else []


def _round(value: float, num_digits: int) -> float:
    return float(f"{value:.{num_digits}g}") if math.isfinite(value) else float(value)
