"""What evidence of several kinds is worth, beside conditioning on it."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

import streamgp as sg
from streamgp.acquisition import Offer, value_evidence
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson
from streamgp.testing.tolerances import tolerance

X = torch.rand(14, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
GROUPS = [0] * 4 + [1] * 3 + [2] * 7
NOISE = Gaussian(0.05)


def belief():
    gp = sg.SparseGP.from_prior(ScaleKernel(MaternKernel(2.5)).double(), X[:8])
    return gp.condition(X[:2], torch.tensor([1.0, -0.5], dtype=torch.float64), noise_variance=0.1)


@pytest.mark.parametrize("kind", ["values", "average", "gradient", "difference"])
def test_values_of_a_map_are_drops_of_variance_by_conditioning(kind):
    gp = belief()
    rows = {
        "values": sg.evidence.values(X[3:6]),
        "average": sg.evidence.average(X, GROUPS),
        "gradient": sg.evidence.gradient(X[4:6]),
        "difference": sg.evidence.difference(X[:3], X[5:8]),
    }[kind]
    weights = torch.arange(14.0, dtype=torch.float64)
    found = value_evidence(gp, [Offer(rows, NOISE, 2.0)], X, weights=weights).values[0]
    before = gp.predict(X).variance
    for row in range(rows.num_rows):
        one = rows.select(torch.tensor([row]))
        after = gp.condition(one, torch.zeros(1, dtype=torch.float64), noise_variance=0.05).predict(X).variance
        expected = (weights * (before - after)).sum() / 2.0
        torch.testing.assert_close(found[row], expected, **tolerance(torch.float64, scale=10.0))


def test_the_kind_that_tells_more_for_its_cost_is_chosen():
    gp, districts = belief(), sg.evidence.average(X, GROUPS)
    cheap = value_evidence(gp, [Offer(X, NOISE, 1.0), Offer(districts, NOISE, 0.2)], X)
    dear = value_evidence(gp, [Offer(X, NOISE, 1.0), Offer(districts, NOISE, 50.0)], X)
    assert (cheap.offer, dear.offer) == (1, 0)
    assert dear.row == int(dear.values[0].argmax())
    torch.testing.assert_close(cheap.values[1], 250.0 * dear.values[1])


def test_regions_are_rated_as_the_rule_of_a_pool_rates_members():
    gp, likelihood, goal = belief(), Bernoulli("probit"), sg.LevelSet(0.6)
    found = value_evidence(gp, [Offer(X, likelihood)], X, goal=goal).values[0]
    from streamgp.acquisition import StepwiseUncertaintyReduction
    from streamgp.acquisition.pool import Pool

    weights = torch.full((14,), 1.0 / 14, dtype=torch.float64)
    pool = Pool.read(gp, X, likelihood=likelihood, targets=None, weights=weights, pending=None)
    expected = StepwiseUncertaintyReduction(goal).score(pool, torch.arange(14))
    torch.testing.assert_close(found, expected, **tolerance(torch.float64))


def test_counts_of_districts_are_rated_around_the_belief():
    gp, rates = belief(), sg.evidence.average(X, GROUPS, rates=True)
    offers = [Offer(rates, Poisson(torch.tensor([5.0, 50.0, 5.0])), name="districts"), Offer(X, Poisson(1.0))]
    found = value_evidence(gp, offers, X)
    assert found.offer == 0
    assert found.values[0][1] > value_evidence(gp, [Offer(rates, Poisson(5.0))], X).values[0][1]


def test_offers_that_are_none_are_refused():
    gp = belief()
    with pytest.raises(ArgumentTypeError, match="list of streamgp"):
        value_evidence(gp, [], X)
    with pytest.raises(ValueRangeError, match="cost must be positive"):
        value_evidence(gp, [Offer(X, NOISE, 0.0)], X)
    with pytest.raises(ShapeError, match="cost must be a number"):
        value_evidence(gp, [Offer(X, NOISE, torch.ones(3))], X)
    with pytest.raises(ShapeError, match="weights must have shape"):
        value_evidence(gp, [Offer(X, NOISE)], X, weights=torch.ones(3))
    with pytest.raises(UnsupportedError, match="Map, LevelSet and Band"):
        value_evidence(gp, [Offer(X, NOISE)], X, goal=sg.Hotspots(0.1))
    with pytest.raises(OptionError, match="has a row"):
        value_evidence(gp, [Offer(X[:0], NOISE)], X)
