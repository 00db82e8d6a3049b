import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.likelihoods import Gaussian
from streamgp.testing.likelihood_laws import LikelihoodLaws


class TestGaussian(LikelihoodLaws):
    covers = "Gaussian"
    is_discrete = False
    support = (-30.0, 30.0)
    refused = ((float("-inf"), "Gaussian targets must be finite numbers"),)

    def likelihood(self):
        return Gaussian(noise_variance=0.3)

    def targets(self, rng, n, dtype):
        return torch.randn(n, generator=rng, dtype=dtype)


@pytest.mark.parametrize("noise_variance", [0.0, -1.0, float("nan")])
def test_noise_variance_must_be_positive(noise_variance):
    with pytest.raises(ValueRangeError, match="noise_variance"):
        Gaussian(noise_variance)


def test_noise_per_observation_is_kept_fixed_and_broadcasts():
    noise = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    likelihood = Gaussian(noise)
    zero = torch.zeros(2, 3, dtype=torch.float64)
    assert likelihood.learnable() == {}
    assert likelihood.with_learnable({}) is likelihood
    assert_close(likelihood.predictive_variance(zero, zero), noise.expand(2, 3))
    assert likelihood.predictive_mean(zero[0, 0], zero[0, 0]).shape == (3,)
    with pytest.raises(ShapeError, match="noise_variance"):
        likelihood.check_targets(torch.zeros(4))


def test_fixed_noise_has_nothing_to_learn():
    assert Gaussian(0.5, is_learned=False).learnable() == {}


def test_quantiles_are_differentiable():
    mean = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    Gaussian(0.5).predictive_quantiles(mean, torch.ones_like(mean), [0.1, 0.9]).sum().backward()
    assert_close(mean.grad, torch.full_like(mean, 2.0))
