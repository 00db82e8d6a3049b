import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Softmax, from_name, names
from streamgp.testing.multi_latent_laws import MultiLatentLaws
from streamgp.testing.tolerances import approximation, sampling, tolerance


class TestSoftmax(MultiLatentLaws):
    covers = "Softmax"
    refused = ((3.0, "from 0 to 2"), (-1.0, "from 0 to 2"), (0.5, "whole numbers"))
    # 256 points of quasi-Monte Carlo in three dimensions.
    quadrature = 3e-3

    def likelihood(self):
        return Softmax(3)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 3, (n,), generator=rng).to(dtype)

    def check_samples(self, likelihood, f, drawn):
        for k, p in enumerate(torch.softmax(f, 0).squeeze(-1).tolist()):
            error = (p * (1 - p) / len(drawn)) ** 0.5
            assert_close((drawn == k).double().mean(), torch.tensor(p, dtype=torch.float64), **sampling(error))


def test_two_classes_are_a_bernoulli_of_the_difference(rng):
    mean, variance = torch.randn(2, 4, generator=rng).double(), torch.rand(2, 4, generator=rng).double()
    p = Softmax(2).predictive_probabilities(mean, variance)
    expected = Bernoulli().predictive_mean(mean[1] - mean[0], variance.sum(0))
    assert_close(p[1], expected, **approximation(1e-7, "quadrature"))


def test_probabilities_sum_to_one_and_do_not_change_with_a_common_shift(rng):
    mean, variance = torch.randn(5, 4, generator=rng).double(), torch.rand(5, 4, generator=rng).double()
    p = Softmax(5).predictive_probabilities(mean, variance)
    assert_close(p.sum(0), torch.ones(4, dtype=torch.float64), **tolerance(torch.float64))
    assert_close(Softmax(5).predictive_probabilities(mean + 300.0, variance), p, **tolerance(torch.float64))


def test_classes_have_neither_moments_nor_quantiles_nor_a_default_number():
    zero = torch.zeros(3, 1, dtype=torch.float64)
    for call in (
        lambda: Softmax(3).predictive_mean(zero, zero),
        lambda: Softmax(3).predictive_variance(zero, zero),
        lambda: Softmax(3).predictive_quantiles(zero, zero, [0.5]),
    ):
        with pytest.raises(UnsupportedError, match=r"Use Softmax.predictive_probabilities"):
            call()
    with pytest.raises(UnsupportedError, match="how many classes"):
        from_name("softmax")
    assert "softmax" not in names()
    with pytest.raises(ValueRangeError, match="num_classes"):
        Softmax(1)


def test_classes_are_numbers_from_zero_and_start_with_nothing_known():
    likelihood = Softmax(4)
    assert likelihood.support == (0.0, 3.0)
    mean, variance = likelihood.starting_latents(torch.zeros(5, dtype=torch.float64))
    assert (mean.tolist(), variance.tolist()) == ([0.0] * 4, [1.0] * 4)
