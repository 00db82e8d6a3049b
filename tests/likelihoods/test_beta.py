import torch
from torch.testing import assert_close

from streamgp.likelihoods import Beta
from streamgp.testing.likelihood_laws import LikelihoodLaws
from streamgp.testing.tolerances import tolerance


class TestBeta(LikelihoodLaws):
    covers = "Beta"
    is_discrete = False
    support = (0.0, 1.0)
    refused = ((0.0, "above 0 and below 1"), (1.5, "above 0 and below 1"))

    def likelihood(self):
        return Beta(80.0)  # with less, mass hides within rounding of the ends

    def targets(self, rng, n, dtype):
        return (0.05 + 0.9 * torch.rand(n, generator=rng, dtype=torch.float64)).to(dtype)


def test_the_density_is_that_of_torch():
    f, y = torch.linspace(-2.0, 2.0, 5).double(), torch.linspace(0.05, 0.9, 5).double()
    reference = torch.distributions.Beta(12.0 * torch.sigmoid(f), 12.0 * torch.sigmoid(-f))
    assert_close(Beta(12.0).log_density(f, y), reference.log_prob(y), **tolerance(torch.float64))
