import pytest
import torch
from torch.testing import assert_close

from streamgp.likelihoods import AbstractLikelihood, Beta, Gaussian, Poisson
from streamgp.likelihoods.links import AbstractIdentityLink, AbstractLogitLink, AbstractLogLink
from streamgp.testing.tolerances import tolerance

LINKS = {AbstractIdentityLink: Gaussian(0.3), AbstractLogLink: Poisson(), AbstractLogitLink: Beta()}


@pytest.mark.parametrize("link", LINKS)
def test_the_inverse_of_a_response_is_that_of_a_search(link):
    likelihood = LINKS[link]
    assert isinstance(likelihood, link)
    f = torch.linspace(-3.0, 3.0, 9, dtype=torch.float64)
    response = likelihood.response(f)
    assert bool((response.diff() > 0).all())
    assert_close(likelihood.inverse_response(response), f, **tolerance(torch.float64))
    found = AbstractLikelihood.inverse_response(likelihood, response)
    assert_close(found, f, **tolerance(torch.float64, scale=10.0))


def test_a_latent_value_with_noise_has_its_own_variance(rng):
    mean, variance = torch.randn(4, 1, generator=rng), torch.rand(3, generator=rng)
    assert torch.equal(Gaussian(0.3).response_variance(mean, variance), variance.expand(4, 3))
