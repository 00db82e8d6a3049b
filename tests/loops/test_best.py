import math

import pytest
import torch

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.loops.best import _mean_of_repeats, most_wanted
from streamgp.loops.observations import Observations
from streamgp.optimizers import Search
from streamgp.testing.tolerances import judgement, within

SMALL = Search(num_restarts=2, raw_samples=32, max_iterations=30)
BOX = [(0.0, 10.0)]
GRID = torch.linspace(0.5, 9.5, 10, dtype=torch.float64).unsqueeze(-1)


def hill(X):
    """Largest at 6.2, where it is 100."""
    return 100.0 - (X.squeeze(-1) - 6.2).square()


def told(y, **options):
    optimizer = sg.Optimizer(BOX, search=SMALL, **options)
    optimizer.tell(GRID, y)
    return optimizer


@pytest.mark.slow
def test_the_best_point_is_the_evaluated_one_of_largest_mean():
    optimizer = told(hill(GRID), likelihood=Gaussian(1e-4, is_learned=False))
    best = optimizer.best()
    assert best.X.tolist() == pytest.approx([6.5])
    assert best.mean == pytest.approx(hill(torch.tensor([6.5])).item(), **within(judgement(absolute=0.05)))
    assert best.observed == pytest.approx(hill(torch.tensor([6.5])).item())
    assert 0 < best.std < 0.1
    assert best.probability_feasible == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("maximize", [True, False])
def test_anywhere_the_optimum_itself_is_found(maximize):
    sign = 1.0 if maximize else -1.0
    optimizer = told(sign * hill(GRID), maximize=maximize, likelihood=Gaussian(1e-4, is_learned=False))
    best = optimizer.best(anywhere=True)
    assert best.X.item() == pytest.approx(6.2, **within(judgement(absolute=0.05)))
    assert best.mean == pytest.approx(sign * 100.0, **within(judgement(absolute=0.1)))
    assert best.observed is None


@pytest.mark.slow
def test_the_best_point_keeps_the_constraint():
    optimizer = sg.Optimizer(BOX, search=SMALL, constraints=[sg.Constraint(upper=4.0)])
    optimizer.tell(GRID, torch.cat([hill(GRID).unsqueeze(-1), GRID], dim=-1))
    best = optimizer.best()
    assert best.X.item() == pytest.approx(3.5)
    assert best.probability_feasible > 0.9
    assert optimizer.best(anywhere=True).X.item() == pytest.approx(4.0, **within(judgement(absolute=0.3)))


@pytest.mark.slow
def test_where_nothing_is_feasible_the_likeliest_is_returned():
    optimizer = sg.Optimizer(BOX, search=SMALL, constraints=[sg.Constraint(upper=-4.0)])
    optimizer.tell(GRID, torch.cat([hill(GRID).unsqueeze(-1), GRID], dim=-1))
    best = optimizer.best()
    assert best.X.item() == pytest.approx(0.5)
    assert best.probability_feasible < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("maximize", [True, False])
def test_counts_have_their_rate(maximize):
    counts = torch.tensor([20.0, 17, 9, 6, 4, 3, 2, 1, 1, 1], dtype=torch.float64)
    best = told(counts, likelihood="poisson", maximize=maximize).best()
    if maximize:
        assert best.X.item() < 2.0
        assert 12 < best.mean < 26
    else:
        assert best.X.item() > 7.0
        assert 0.2 < best.mean < 2.5
    assert best.std > 0


@pytest.mark.slow
def test_classes_have_their_probability():
    best = told((GRID.squeeze(-1) > 4).double(), likelihood="bernoulli").best()
    assert best.X.item() > 5
    assert 0.6 < best.mean < 1.0


@pytest.mark.slow
def test_repeated_points_report_the_mean_of_what_was_observed():
    optimizer = sg.Optimizer(BOX)
    optimizer.tell([[1.0], [1.0], [5.0]], [4.0, 2.0, -10.0])
    assert optimizer.best().observed == 3.0


def test_without_noise_the_best_outcome_is_returned_whatever_the_model_says(rng):
    # A cliff that a smooth model cannot follow, of huge values beside the good ones.
    X = torch.linspace(0.0, 10.0, 30, dtype=torch.float64).unsqueeze(-1)
    y = torch.where(X.squeeze(-1) > 5.0, 1e6 * X.squeeze(-1), (X.squeeze(-1) - 2.0).abs() + 20.0)
    optimizer = sg.Optimizer(BOX, search=SMALL, maximize=False, likelihood=Gaussian(1e-6, is_learned=False))
    optimizer.tell(X, y)
    best = optimizer.best()
    assert best.observed == float(y.min())
    assert best.elsewhere is best.recommended


def kink():
    """A pointed peak, and a round one that is lower by 0.03: to a smooth model the round one looks better."""
    X = torch.linspace(0.0, 1.0, 13, dtype=torch.float64).unsqueeze(-1)
    x = X.squeeze(-1)
    peaks = 0.25 * (1.0 - (x - 0.25).abs() / 0.1).clamp_min(0.0) + 0.22 * torch.exp(-(((x - 0.75) / 0.1) ** 2))
    return X, torch.cos(4.0 * math.pi * (x - 0.25)) + peaks


def test_noise_that_only_its_prior_holds_up_does_not_keep_the_best_outcome_from_being_the_best():
    X, y = kink()
    optimizer = sg.Optimizer([(0.0, 1.0)], search=SMALL)
    optimizer.tell(X, y)
    assert not optimizer.inspect().surrogate.is_noise_free(0)
    assert int(optimizer.predict(X).mean.argmax()) != int(y.argmax())
    assert optimizer.best().observed == float(y.max())


def test_the_best_mean_is_the_best_where_that_noise_is_known():
    X, y = kink()
    optimizer = sg.Optimizer([(0.0, 1.0)], search=SMALL, likelihood=Gaussian(2e-3, is_learned=False))
    optimizer.tell(X, y)
    index = int(optimizer.predict(X).mean.argmax())
    assert index != int(y.argmax())
    assert optimizer.best().observed == float(y[index])


def test_outcomes_of_one_point_count_by_their_mean():
    point = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.1, 0.2]], dtype=torch.float64)
    y = torch.tensor([[3.0], [2.5], [1.0]], dtype=torch.float64)
    told = Observations(point, y, torch.full_like(y, torch.nan), torch.empty(0, 2, 2, dtype=torch.float64))
    assert _mean_of_repeats(told).tolist() == [2.0, 2.5, 2.0]
    assert torch.equal(_mean_of_repeats(told.rows(slice(0, 2))), y[:2, 0])


@pytest.mark.slow
def test_an_infeasible_point_is_not_recommended_when_a_feasible_one_is_known(rng):
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    noise = 0.1 * torch.randn(40, 2, generator=rng, dtype=torch.float64)
    y = torch.stack([X.sum(-1), X[:, 0] - 0.5], dim=-1) + noise
    optimizer = sg.Optimizer([(0.0, 1.0)] * 2, constraints=[sg.Constraint(upper=0.0)], search=SMALL)
    optimizer.tell(X, y)
    best = optimizer.best()
    for one in (best, best.recommended):
        assert one.X[0] <= 0.5
        assert one.probability_feasible >= 0.9
    assert best.recommended.mean >= best.mean - 1e-6


def test_the_most_wanted_is_surely_feasible_or_likeliest():
    score, chance = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.95, 0.91, 0.6])
    assert most_wanted(score, chance) == 1
    assert most_wanted(score, chance * 0.5) == 0
    assert most_wanted(score, torch.ones(3)) == 2
