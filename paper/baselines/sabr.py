"""Returns with stochastic volatility: the SABR model."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["Returns", "simulate_sabr"]

# Of the paper: the volatility at the start, and the correlation of the two noises.
_START, _CORRELATION = 0.2, -0.2


class Returns(NamedTuple):
    """A simulated series.

    Attributes:
        values: Scaled returns, each with standard deviation `volatility`.
        volatility: The hidden volatility.
    """

    values: Float[Tensor, " n"]
    volatility: Float[Tensor, " n"]


def simulate_sabr(num_returns: int, generator: torch.Generator, *, volatility_of_volatility: float) -> Returns:
    r"""Simulate by Euler's scheme, one unit of time for all steps.

    $$
    F_{t+1} = F_t + V_t F_t^\beta \, dW_t, \quad V_{t+1} = V_t + \alpha V_t \, dZ_t, \quad
    y_t = (F_{t+1} - F_t) / (F_t^\beta \sqrt{dt}) .
    $$

    So $y_t = V_t \, dW_t / \sqrt{dt}$, and the price itself is not needed.

    Args:
        num_returns: Length of the series.
        generator: Source of randomness.
        volatility_of_volatility: The constant $\alpha$.
    """
    first, second = torch.randn(2, num_returns, generator=generator, dtype=torch.float64)
    steps = _CORRELATION * first + math.sqrt(1 - _CORRELATION**2) * second
    growth = 1 + volatility_of_volatility * steps / math.sqrt(num_returns + 1)
    volatility = _START * torch.cat([growth.new_ones(1), growth[:-1]]).cumprod(0)
    return Returns(volatility * first, volatility)
