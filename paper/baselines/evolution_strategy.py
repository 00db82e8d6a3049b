"""CMA-ES with one point at a time, through the package `cma`."""

import math
from importlib import import_module
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import UnsupportedError

__all__ = ["EvolutionStrategy"]

# Of the width of the box: the searches that start anywhere in it should reach its edges.
_FIRST_DEVIATION = 0.25


@final
class EvolutionStrategy:
    """Maximize in a box by the covariance matrix adaptation evolution strategy, with the population of its authors.

    It starts at the center of the box. A generation is given out point by point, and learned when all of it is known;
    an evaluation that failed counts as the worst of its generation.

    References:
        Hansen (2016), The CMA evolution strategy: a tutorial.
    """

    def __init__(self, bounds: Tensor, *, seed: int) -> None:
        """Start without data.

        Args:
            bounds: Of the box, `(2, d)`.
            seed: Of the generations.
        """
        try:
            cma: Any = import_module("cma")
        except ImportError as error:
            raise UnsupportedError(
                f"CMA-ES needs the package cma, which is not installed. Install it with: pip install cma ({error})"
            ) from error
        self._lower, self._width = bounds[0], bounds[1] - bounds[0]
        options = {"bounds": [0.0, 1.0], "seed": seed + 1, "verbose": -9}  # cma takes a seed of 0 for none
        self._strategy = cma.CMAEvolutionStrategy(np.full(bounds.shape[1], 0.5), _FIRST_DEVIATION, options)
        self._waiting: list[Any] = []
        self._given: list[Any] = []
        self._losses: list[float] = []

    def ask(self) -> Tensor:
        """The next point `(1, d)` of the generation."""
        if not self._waiting:
            self._waiting = list(self._strategy.ask())
            self._given = list(self._waiting)
            self._losses = []
        return self._lower + self._width * torch.from_numpy(self._waiting[0]).to(self._lower).unsqueeze(0)

    def tell(self, X: Tensor, y: Tensor) -> None:
        """Learn the outcome of the point that was asked for last; NaN if it failed.

        Args:
            X: The point, which is known here.
            y: Its outcome `(1,)`.
        """
        self._waiting.pop(0)
        self._losses.append(-float(y[0]))
        if not self._waiting:
            known = [loss for loss in self._losses if math.isfinite(loss)]
            worst = max(known, default=0.0)
            self._strategy.tell(self._given, [loss if math.isfinite(loss) else worst for loss in self._losses])
