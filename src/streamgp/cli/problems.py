"""The data of the demonstrations, made from a seed."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Problem", "make_problem"]


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """First data, new data, and the grid on which models are compared."""

    inputs: Float[Tensor, "n 1"]
    targets: Float[Tensor, " n"]
    new_inputs: Float[Tensor, "k 1"]
    new_targets: Float[Tensor, " k"]
    grid: Float[Tensor, "g 1"]
    truth: Float[Tensor, " g"]


def make_problem(seed: int) -> Problem:
    r"""Observe $f(x) = \sin(2|x| + x^2/2)$ without noise: 100 inputs around zero, then 25 in [2.5, 5.5]."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(100, 1, generator=generator, dtype=torch.float64)
    X_new = 2.5 + 3.0 * torch.rand(25, 1, generator=generator, dtype=torch.float64)
    grid = torch.linspace(-4.0, 7.0, 400, dtype=torch.float64).unsqueeze(-1)
    return Problem(X, _function(X), new_inputs=X_new, new_targets=_function(X_new), grid=grid, truth=_function(grid))


def _function(X: Float[Tensor, "n 1"]) -> Float[Tensor, " n"]:
    x = X.squeeze(-1)
    return torch.sin(2 * x.abs() + x.square() / 2)
