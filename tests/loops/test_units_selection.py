"""In which units constraints and objectives are modeled."""

import pytest
import torch

import streamgp as sg
from streamgp.loops.sparse_fitting import fit_sparse
from streamgp.loops.state import current

BOX = [(0.0, 1.0)] * 2


def _told(limit, rng, *, num=16):
    optimizer = sg.Optimizer(BOX, maximize=False, constraints=[sg.Constraint(upper=0.0)], num_initial=4)
    X = torch.rand(num, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(X, torch.stack([X.sum(-1), limit(X)], -1))
    return optimizer


def _units(optimizer):
    return optimizer.inspect().surrogate.units[1]


def _power(X):
    """A limit that is kept by 1 at most, and broken by up to 22 000."""
    return (10.0 - 12.0 * X[:, 0] - 4.0 * X[:, 1]).exp() - 1.0


@pytest.mark.slow
def test_a_plane_is_not_bent(rng):
    # Nine tenths of it are on one side of the bound, so that it might be.
    assert not _units(_told(lambda X: 0.4 - X.sum(-1), rng)).is_bent


@pytest.mark.slow
def test_a_limit_over_orders_of_magnitude_is_bent_and_known_near_its_bound(rng):
    optimizer = _told(_power, rng, num=24)
    X = torch.rand(200, 2, generator=rng, dtype=torch.float64)
    predicted = optimizer.predict(X, output=1).mean
    assert _units(optimizer).is_bent
    assert ((predicted > 0.0) == (_power(X) > 0.0)).double().mean() > 0.95
    # Straight units would be right to a part of what is largest, 22 000.
    is_near = _power(X).abs() < 2.0
    assert (predicted - _power(X))[is_near].abs().median() < 0.5


@pytest.mark.slow
def test_units_stay_bent_until_hyperparameters_are_searched_anew(rng):
    optimizer = _told(_power, rng)
    state, settings = optimizer._refitted(), optimizer._settings
    assert state.surrogate.units[1].is_bent
    more = torch.rand(2, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(more, torch.stack([more.sum(-1), _power(more)], -1))
    again = fit_sparse(current(optimizer._state, settings), settings, state.surrogate)
    assert again.num_cold == state.surrogate.num_cold
    assert again.units[1].is_bent


def _objective_units(f, rng, *, num=24):
    optimizer = sg.Optimizer(BOX, maximize=False, num_initial=4)
    X = torch.rand(num, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(X, f(X))
    return optimizer


@pytest.mark.slow
def test_an_objective_over_orders_of_magnitude_is_known_where_it_is_small(rng):
    def power(X):
        return torch.expm1(8.0 * (X - 0.3).square().sum(-1).sqrt())

    optimizer = _objective_units(power, rng)
    units = optimizer.inspect().surrogate.units[0]
    assert units.good_share < 0.5
    assert units.upper_knee < power(optimizer.X).median()
    optimizer.tell([[0.31, 0.3]], power(torch.tensor([[0.31, 0.3]])))
    assert optimizer.inspect().surrogate.units[0].good_share == units.good_share


@pytest.mark.slow
def test_good_outcomes_of_a_plain_objective_count_as_they_are(rng):
    units = _objective_units(lambda X: torch.sin(4.0 * X).sum(-1), rng).inspect().surrogate.units[0]
    assert units.good_share == 0.5


@pytest.mark.slow
def test_counts_are_modeled_as_they_were_told(rng):
    optimizer = sg.Optimizer(BOX, likelihood="poisson", num_initial=4)
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    optimizer.tell(X, (9.0 * X[:, 0]).round())
    (model,) = optimizer.inspect().outcomes
    assert (model.scale, model.noise) == ("as told", None)
