import math

import pytest
import torch
from torch.testing import assert_close

from paper.baselines.sabr import simulate_sabr
from streamgp.testing.tolerances import judgement, within


def test_returns_are_those_of_eulers_scheme_with_prices():
    n, alpha, beta, rho = 30, 1.5, 0.9, -0.2
    found = simulate_sabr(n, torch.Generator().manual_seed(1), volatility_of_volatility=alpha)
    normal = torch.randn(2, n, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    dt = 1.0 / (n + 1)
    price, volatility, returns, volatilities = 10.0, 0.2, [], []
    for first, second in normal.mT.tolist():
        dW, dB = math.sqrt(dt) * first, math.sqrt(dt) * second
        after = price + volatility * price**beta * dW
        returns.append((after - price) / (price**beta * math.sqrt(dt)))
        volatilities.append(volatility)
        price, volatility = after, volatility * (1 + alpha * (rho * dW + math.sqrt(1 - rho**2) * dB))
    assert_close(found.values, torch.tensor(returns, dtype=torch.float64))
    assert_close(found.volatility, torch.tensor(volatilities, dtype=torch.float64))


def test_returns_have_the_volatility_as_standard_deviation():
    found = simulate_sabr(20_000, torch.Generator().manual_seed(0), volatility_of_volatility=0.5)
    assert float((found.values / found.volatility).std()) == pytest.approx(1.0, **within(judgement(absolute=0.02)))
