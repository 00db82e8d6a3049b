import torch
from torch.testing import assert_close

from streamgp.likelihoods import Exponential, Gamma
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import tolerance


class TestGamma(LikelihoodLaws):
    covers = "Gamma"
    is_discrete = False
    support = (0.0, 5000.0)
    refused = ((0.0, "numbers above 0"), (-1.0, "numbers above 0"))

    def likelihood(self):
        return Gamma(1.7)

    def targets(self, rng, n, dtype):
        return (3.0 * torch.rand(n, generator=rng, dtype=torch.float64) + 0.05).to(dtype)


class TestExponential(LikelihoodLaws):
    covers = "Exponential"
    is_discrete = False
    support = (0.0, 5000.0)
    refused = ((0.0, "numbers above 0"),)

    def likelihood(self):
        return Exponential()

    def targets(self, rng, n, dtype):
        return (3.0 * torch.rand(n, generator=rng, dtype=torch.float64) + 0.05).to(dtype)


def test_the_density_is_that_of_torch():
    f, y = torch.linspace(-2.0, 2.0, 5).double(), torch.linspace(0.1, 6.0, 5).double()
    reference = torch.distributions.Gamma(torch.tensor(1.7, dtype=torch.float64), 1.7 * torch.exp(-f))
    shape = torch.tensor(1.7, dtype=torch.float64)
    assert_close(Gamma(shape).log_density(f, y), reference.log_prob(y), **tolerance(torch.float64))
    waiting = torch.distributions.Exponential(torch.exp(-f))
    assert_close(Exponential().log_density(f, y), waiting.log_prob(y), **tolerance(torch.float64))


def test_a_gamma_of_shape_one_is_exponential():
    f, y = torch.linspace(-2.0, 2.0, 5).double(), torch.linspace(0.1, 6.0, 5).double()
    assert_close(Gamma(1.0).log_density(f, y), Exponential().log_density(f, y))
