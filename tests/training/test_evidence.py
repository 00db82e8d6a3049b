"""Fits to evidence: values as rows, areas alone, gradients alone, in any units."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError
from streamgp.testing.tolerances import approximation, tolerance
from streamgp.training import Minibatches


def f(X):
    return torch.sin(4 * X[:, 0]) + X[:, 1] ** 2


def slope(X):
    return torch.stack([4 * torch.cos(4 * X[:, 0]), 2 * X[:, 1]], dim=-1)


def test_rows_of_values_are_fitted_as_inputs_are(rng):
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    plain = sg.fit(X, f(X), num_inducing=10, max_iterations=20)
    rows = sg.fit(sg.evidence.values(X), f(X), num_inducing=10, max_iterations=20)
    assert_close(rows.predict(X).mean, plain.predict(X).mean, **tolerance(torch.float64))


@pytest.mark.parametrize("standardize", [None, True])
def test_a_function_is_learned_from_areas_alone(rng, standardize):
    X = torch.rand(800, 2, generator=rng, dtype=torch.float64)
    cells = (6 * X[:, 0]).long() + 6 * (6 * X[:, 1]).long()
    areas = sg.evidence.average(X, cells)
    y = areas.sums(f(areas.points)) + 0.01 * torch.randn(areas.num_rows, generator=rng, dtype=torch.float64)
    result = sg.fit(areas, y, num_inducing=30, standardize=standardize)
    error = (result.predict(X).mean - f(X)).square().mean().sqrt() / f(X).std()
    assert float(error) < 0.1
    # Areas are predicted better than the pixels in them, in the units of the user.
    assert_close(result.predict(areas).mean, y, **approximation(0.06, "model"))
    half = result.condition(areas, y, noise_variance=1e-4).predict(areas).mean
    assert_close(half, y, **approximation(0.03, "model"))


@pytest.mark.parametrize("standardize", [None, True])
def test_a_function_is_learned_from_gradients_alone_up_to_its_level(rng, standardize):
    X = torch.rand(25, 2, generator=rng, dtype=torch.float64)
    result = sg.fit(sg.evidence.gradient(X), slope(X), num_inducing=40, standardize=standardize)
    W = torch.rand(200, 2, generator=rng, dtype=torch.float64)
    error = result.predict(W).mean - f(W)
    assert float(error.std() / f(W).std()) < 0.15
    assert_close(result.predict(sg.evidence.gradient(X)).mean, slope(X), **approximation(0.3, "model"))


def test_gradients_help_a_fit(rng):
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    W = torch.rand(300, 2, generator=rng, dtype=torch.float64)
    both = sg.evidence.combine(X, sg.evidence.gradient(X))
    slopes = slope(X)
    slopes[3, 1] = torch.nan  # not known
    alone, helped = sg.fit(X, f(X), num_inducing=12), sg.fit(both, (f(X), slopes), num_inducing=36)
    errors = [float((fit.predict(W).mean - f(W)).square().mean().sqrt()) for fit in (alone, helped)]
    assert errors[1] < 0.5 * errors[0]


def test_comparisons_are_fitted_as_differences(rng):
    pairs = torch.rand(60, 2, 2, generator=rng, dtype=torch.float64)
    won = (f(pairs[:, 0]) > f(pairs[:, 1])).double()
    fits = [
        sg.fit(X, won, likelihood=sg.likelihoods.Preference(0.5), num_inducing=10, max_iterations=10)
        for X in (pairs, sg.evidence.difference(pairs[:, 0], pairs[:, 1]))
    ]
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    assert_close(fits[0].predict(W).mean, fits[1].predict(W).mean, **tolerance(torch.float64))


def test_evidence_is_not_divided_into_minibatches():
    X = torch.rand(4, 2, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match="Rows of evidence are fitted at once"):
        sg.fit(sg.evidence.values(X), X[:, 0], minibatches=Minibatches(batch_size=2))
