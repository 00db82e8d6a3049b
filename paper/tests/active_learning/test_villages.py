import torch
from scipy.stats import norm
from torch.testing import assert_close

from paper.active_learning.villages import Prevalences
from streamgp.testing.tolerances import judgement, tolerance


def test_moments_of_prevalences_equal_those_of_samples(rng):
    mean, variance = torch.tensor([-2.0, 0.5], dtype=torch.float64), torch.tensor([0.4, 2.0], dtype=torch.float64)
    beliefs = Prevalences(mean, variance)
    samples = torch.sigmoid(mean + variance.sqrt() * torch.randn(400_000, 2, generator=rng, dtype=torch.float64))
    assert_close(beliefs.mean, samples.mean(0), **judgement(absolute=2e-3))
    assert_close(beliefs.median, samples.median(0).values, **judgement(absolute=2e-3))
    assert_close(beliefs.exceedance(0.2), (samples > 0.2).double().mean(0), **judgement(absolute=4e-3))


def test_the_exceedance_is_a_normal_tail():
    beliefs = Prevalences(torch.tensor([1.0], dtype=torch.float64), torch.tensor([4.0], dtype=torch.float64))
    # The logit of one half is zero, half a standard deviation below the mean.
    expected = torch.tensor([norm.cdf(0.5)], dtype=torch.float64)
    assert_close(beliefs.exceedance(0.5), expected, **tolerance(torch.float64))
