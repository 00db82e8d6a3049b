"""CMA-ES, one point at a time."""

import pytest
import torch

pytest.importorskip("cma")

from paper.baselines.evolution_strategy import EvolutionStrategy

BOUNDS = torch.tensor([[-1.0, 0.0, 2.0], [1.0, 4.0, 6.0]], dtype=torch.float64)


def search(num_points, *, seed=0, is_failing=False):
    strategy = EvolutionStrategy(BOUNDS, seed=seed)
    points, values = [], []
    for index in range(num_points):
        X = strategy.ask()
        y = -((X - BOUNDS[0]) / (BOUNDS[1] - BOUNDS[0]) - 0.2).square().sum(-1)
        if is_failing and index % 3 == 0:
            y = torch.full_like(y, torch.nan)
        strategy.tell(X, y)
        points.append(X[0])
        values.append(float(y[0]))
    return torch.stack(points), values


def test_it_climbs_inside_the_box_and_repeats_by_the_seed():
    X, values = search(140)
    assert ((BOUNDS[0] <= X) & (BOUNDS[1] >= X)).all()
    assert max(values[-14:]) > -1e-3
    assert torch.equal(search(14)[0], X[:14])
    assert not torch.equal(search(14, seed=1)[0], X[:14])


def test_failures_count_as_the_worst():
    _, values = search(140, is_failing=True)
    assert max(value for value in values[-14:] if value == value) > -0.02
