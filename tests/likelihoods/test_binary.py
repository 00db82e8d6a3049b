import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import Bernoulli, Preference
from streamgp.testing.tolerances import tolerance


@pytest.mark.parametrize("likelihood", [Bernoulli(), Bernoulli("probit"), Preference(0.5)])
def test_the_probabilities_of_both_outcomes_sum_to_one(likelihood):
    mean = torch.linspace(-4, 4, 9, dtype=torch.float64)
    variance = torch.linspace(0, 3, 9, dtype=torch.float64)
    one, other = likelihood.predictive_mean(mean, variance), likelihood.predictive_mean(-mean, variance)
    assert_close(one + other, torch.ones_like(mean), **tolerance(mean.dtype))
    assert_close(likelihood.predictive_variance(mean, variance), one * (1 - one), **tolerance(mean.dtype))
