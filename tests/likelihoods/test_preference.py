import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Bernoulli, Preference
from streamgp.testing.likelihood_laws import LikelihoodLaws


class TestPreference(LikelihoodLaws):
    covers = "Preference"
    is_discrete = True
    support = (0.0, 1.0)
    refused = ((0.5, "Preference targets must be 1 .* Leave out ties"), (-1.0, "the first of the pair"))

    def likelihood(self):
        return Preference(noise_scale=0.8, is_learned=True)

    def targets(self, rng, n, dtype):
        return torch.randint(0, 2, (n,), generator=rng).to(dtype)


def test_preference_is_a_probit_of_the_scaled_difference():
    g = torch.linspace(-3.0, 3.0, 7, dtype=torch.float64)
    y = torch.ones_like(g)
    expected = Bernoulli("probit").log_density(g / (2.0**0.5 * 0.4), y)
    assert_close(Preference(0.4).log_density(g, y), expected)


def test_swapping_the_pair_swaps_the_answer():
    g = torch.linspace(-3.0, 3.0, 7, dtype=torch.float64)
    likelihood = Preference(0.4)
    assert_close(likelihood.log_density(g, torch.ones_like(g)), likelihood.log_density(-g, torch.zeros_like(g)))


def test_preference_looks_at_two_inputs_and_learns_nothing_by_default():
    assert Preference.num_inputs == 2
    assert Preference().learnable() == {}


def test_noise_scale_must_be_positive():
    with pytest.raises(ValueRangeError, match="noise_scale"):
        Preference(0.0)


@pytest.mark.parametrize(("noise_scale", "variance"), [(0.02, 2.0), (0.5, 1.0), (1.0, 0.01)])
def test_the_information_of_a_comparison_is_the_mean_square_of_its_score(rng, noise_scale, variance):
    likelihood = Preference(noise_scale)
    g = variance**0.5 * torch.randn(400_000, generator=rng, dtype=torch.float64)
    squares = likelihood.derivatives(g, likelihood.sample(g, generator=rng))[0].square()
    error = squares.std() / len(g) ** 0.5
    found = likelihood.expected_information(torch.tensor(variance, dtype=torch.float64))
    assert (found - squares.mean()).abs() < 5 * error
