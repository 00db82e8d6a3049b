import pytest
import torch

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.loops.model_selection import is_likeliest_without_noise

BOX = [(0.0, 1.0)]
X = torch.linspace(0.0, 1.0, 12, dtype=torch.float64).unsqueeze(-1)


def wave(x):
    return torch.sin(6.0 * x).squeeze(-1)


def fitted(y, **options):
    optimizer = sg.Optimizer(BOX, **options)
    optimizer.tell(X, y)
    return optimizer


def noise(optimizer):
    return float(optimizer.inspect().surrogate.results[0].likelihood.noise_variance)


@pytest.fixture(scope="module")
def smooth():
    optimizer = fitted(wave(X))
    optimizer.inspect()
    return optimizer


@pytest.mark.slow
def test_outcomes_without_noise_are_recognized_and_more_of_them_need_one_fit(smooth):
    assert noise(smooth) == pytest.approx(1e-6)
    assert smooth.inspect(refit=False).surrogate.is_noise_free(0)
    smooth.tell([[0.33]], [wave(torch.tensor([[0.33]])).item()])
    assert noise(smooth) == pytest.approx(1e-6)


@pytest.mark.slow
def test_noise_is_learned_where_there_is_some(rng):
    assert noise(fitted(wave(X) + 0.3 * torch.randn(12, generator=rng, dtype=torch.float64))) > 1e-3


def test_an_outcome_that_contradicts_the_others_brings_noise_back(smooth):
    smooth.tell([[0.33], [0.33]], [0.5, -0.5])
    assert noise(smooth) > 1e-3


def test_known_noise_stays_as_it_is():
    optimizer = fitted(wave(X), likelihood=Gaussian(0.01, is_learned=False))
    scale = optimizer.inspect().surrogate.units[0].scale
    assert noise(optimizer) * scale**2 == pytest.approx(0.01)


def test_the_likeliest_noise_is_that_of_a_dense_reference(smooth, rng):
    result = smooth.inspect().surrogate.results[0]
    rows = torch.rand(10, 1, generator=rng, dtype=torch.float64)
    prior = result.gp.process.prior
    K, mean = prior.covariance(rows, rows), prior.mean(rows)
    for y in (
        mean + torch.linalg.cholesky(K + 1e-6 * torch.eye(10)) @ torch.randn(10, generator=rng).double(),
        mean + 1,
    ):
        likelihoods = [
            torch.distributions.MultivariateNormal(mean, K + 10.0**k * torch.eye(10)).log_prob(y) for k in range(-6, 0)
        ]
        expected = int(torch.stack(likelihoods).argmax()) == 0
        assert is_likeliest_without_noise(result, rows, y, 1e-6) is expected


@pytest.mark.slow
def test_a_constraint_without_noise_is_known_more_exactly_than_an_objective():
    optimizer = sg.Optimizer([(0.0, 1.0)], constraints=[sg.Constraint(upper=0.0)], num_initial=4)
    optimizer.tell(X, torch.stack([wave(X), X.squeeze(-1) ** 2 - 0.5], -1))
    results = optimizer.inspect().surrogate.results
    assert [float(one.likelihood.gaussian_noise_variance) for one in results] == pytest.approx([1e-6, 1e-8])


# Where an optimizer had been after 24 evaluations of the six-hump camel function, which is steep in one corner and flat
# around its minima.
VISITED = [
    [-1.39, -0.55],
    [2.06, 1.97],
    [0.9, -1.49],
    [-1.76, 0.03],
    [-2.29, -1.52],
    [0.31, 0.99],
    [-0.72, 0.33],
    [2.27, 0.66],
    [-0.98, 0.89],
    [-0.28, 0.94],
    [-0.57, 1.47],
    [-0.21, 0.75],
    [0.86, -0.5],
    [3.0, -0.67],
    [-0.07, -0.4],
    [0.09, -0.69],
    [0.1, -0.62],
    [-0.14, -0.75],
    [0.15, 0.65],
    [0.16, -0.72],
    [-3.0, 2.0],
    [3.0, -2.0],
    [-3.0, -0.18],
    [-0.67, -0.38],
]


def camel(X):
    x, y = X.unbind(-1)
    return (4.0 - 2.1 * x**2 + x**4 / 3.0) * x**2 + x * y + (4.0 * y**2 - 4.0) * y**2


def test_what_is_steep_is_not_taken_for_noise_when_the_search_begins_from_the_start():
    visited = torch.tensor(VISITED, dtype=torch.float64)
    optimizer = sg.Optimizer([(-3.0, 3.0), (-2.0, 2.0)], maximize=False)
    optimizer.tell(visited, camel(visited))
    assert optimizer.inspect().surrogate.is_noise_free(0)
    best = optimizer.best()
    assert best.observed == float(camel(visited).min())
