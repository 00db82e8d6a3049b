import numpy as np
import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Binomial, Gaussian, NegativeBinomial, Poisson, StudentT
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.prediction import StreamPrediction
from streamgp.testing.tolerances import approximation, within

LEVELS = (0.05, 0.3, 0.5, 0.95)


def predicted(likelihood, *, shift=0.0, scale=1.0, is_scaled=False):
    """Three experts of two rows, which do not agree."""
    mean = np.array([[[0.1, 1.9]], [[1.2, -0.3]], [[2.5, 0.4]]])
    mixture = Mixture.even(3, 1, is_scaled=is_scaled)
    mixture = mixture.judged(np.array([[0.0], [0.7], [-0.4]]))
    units = (np.full((1, 1), each) for each in (shift, scale))
    return StreamPrediction(mean, np.full_like(mean, 0.3), mixture, likelihood, *units)


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood", [Poisson(), NegativeBinomial(3.0), Binomial(torch.tensor([9.0, 30.0], dtype=torch.float64))]
)
def test_quantiles_of_counts_are_those_of_the_mixture(likelihood):
    prediction = predicted(likelihood)
    counts = torch.arange(120, dtype=torch.float64)
    if isinstance(likelihood, Binomial):
        counts = counts[:10]
    mass = torch.stack([prediction.log_density(count.expand(2)).exp() for count in counts])
    cumulative = mass.cumsum(0)
    for column, level in enumerate(LEVELS):
        expected = (cumulative < level).sum(0).double()
        found = prediction.quantiles(LEVELS)[:, column]
        assert_close(found[0], expected[0])
        if not isinstance(likelihood, Binomial):
            assert_close(found[1], expected[1])
    assert_close(prediction.cumulative(torch.tensor([3.0, 4.0], dtype=torch.float64))[0], cumulative[3, 0])


@pytest.mark.parametrize(
    ("likelihood", "is_scaled"), [(Gaussian(0.4), True), (Gaussian(0.4), False), (StudentT(4.0, 0.5), False)]
)
def test_quantiles_of_real_targets_are_where_the_cumulative_probability_is_their_level(likelihood, is_scaled):
    prediction = predicted(likelihood, shift=3.0, scale=2.0, is_scaled=is_scaled)
    quantiles = prediction.quantiles(LEVELS)
    for column, level in enumerate(LEVELS):
        reached = prediction.cumulative(quantiles[:, column])
        assert_close(reached, torch.full_like(reached, level), **approximation(1e-7, "iteration"))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(3.0), Binomial(10**7)])
def test_quantiles_of_many_counts_are_the_first_to_reach_their_level(likelihood):
    mean = np.array([[[12.0, 14.0]], [[12.5, 13.0]], [[11.0, 19.0]]]) - (15.0 if likelihood.link != "log" else 0.0)
    mixture, unit = Mixture.even(3, 1, is_scaled=False), np.ones((1, 1))
    prediction = StreamPrediction(mean, np.full_like(mean, 0.01), mixture, likelihood, 0.0 * unit, unit)
    quantiles = prediction.quantiles(LEVELS)
    for column, level in enumerate(LEVELS):
        assert bool((prediction.cumulative(quantiles[:, column]) >= level - 1e-7).all())
        assert bool((prediction.cumulative(quantiles[:, column] - 1.0) < level).all())


def test_a_density_is_found_once_for_the_same_targets():
    prediction, y = predicted(Poisson()), np.array([[1.0, 4.0]])
    found = prediction.log_densities(y)
    assert prediction.log_densities(y.copy()) is found
    assert not np.array_equal(prediction.log_densities(y + 1.0), found)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize("gap", [0.0, 0.5, 400.0])
def test_quantiles_of_experts_that_disagree_are_those_of_the_mixture(gap, is_scaled):
    mixture = Mixture.even(2, 1, is_scaled=is_scaled).judged(np.array([[0.0], [1.5]]))
    mean, variance, unit = np.reshape([-gap, gap], (2, 1, 1)), np.reshape([0.2, 3.0], (2, 1, 1)), np.ones((1, 1))
    prediction = StreamPrediction(mean, variance, mixture, Gaussian(0.1), 0.0 * unit, unit)
    levels = [1e-4, 0.05, 0.18, 0.5, 0.95]
    found = prediction.quantiles(levels)[0]
    for value, level in zip(found, levels, strict=True):
        assert float(prediction.cumulative(value.reshape(1))) == pytest.approx(
            level, **within(approximation(1e-9, "iteration"))
        )
    assert torch.equal(prediction.quantiles(levels[3:4])[0], found[3:4])
