import pytest
import scipy.stats
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Ordinal
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import rounding


class TestOrdinal(LikelihoodLaws):
    covers = "Ordinal"
    is_discrete = True
    support = (0.0, 3.0)
    refused = ((4.0, "whole numbers from 0 to 3"), (-1.0, "whole numbers from 0 to 3"), (0.5, "whole numbers"))

    def likelihood(self):
        return Ordinal([-1.1, 0.2, 1.6])

    def targets(self, rng, n, dtype):
        return torch.randint(0, 4, (n,), generator=rng).to(dtype)


def test_two_grades_are_a_probit():
    f = torch.linspace(-3.0, 3.0, 8, dtype=torch.float64)
    y = torch.tensor([0.0, 1.0], dtype=torch.float64).repeat(4)
    grades, classes = Ordinal([0.0]), Bernoulli("probit")
    assert_close(grades.log_density(f, y), classes.log_density(f, y))
    assert_close(grades.log_predictive_derivatives(f, f**2, y), classes.log_predictive_derivatives(f, f**2, y))


def test_probabilities_are_those_of_the_normal_distribution():
    edges, m, v = [-0.3, 0.4, 2.0], 0.7, 1.3
    cumulative = [0.0, *scipy.stats.norm.cdf(edges, m, (1 + v) ** 0.5), 1.0]
    expected = torch.tensor(cumulative, dtype=torch.float64).diff()
    m, v = torch.tensor([[m], [v]], dtype=torch.float64)
    assert_close(Ordinal(edges).predictive_probabilities(m, v)[0], expected, **rounding(torch.float64))


def test_edges_are_learned_in_fit():
    """Grades of unequal width: the fitted edges have the ratio of gaps that made them."""
    rng = torch.Generator().manual_seed(0)
    X = torch.rand(600, 1, generator=rng, dtype=torch.float64)
    f = 3.0 * (6.0 * X[:, 0]).sin() + torch.randn(600, generator=rng, dtype=torch.float64)
    grades = (f.unsqueeze(-1) > torch.tensor([-2.0, -1.0, 2.0])).sum(-1)
    result = sg.fit(X, grades, likelihood=Ordinal.of(4), num_inducing=12)
    narrow, wide = result.likelihood.edges.diff().tolist()
    assert 2.0 < wide / narrow < 4.5


def test_edges_that_do_not_ascend_are_refused():
    with pytest.raises(ValueRangeError, match="edges must ascend, but are"):
        Ordinal([0.0, 0.0])
    with pytest.raises(ShapeError, match=r"edges must have shape \(k,\)"):
        Ordinal(torch.zeros(2, 2))
