import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import AbstractLikelihood, Gaussian, Poisson


def test_the_abstract_likelihood_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        AbstractLikelihood()


def test_the_information_of_an_observation_is_what_it_tells_of_a_latent_value_around_zero():
    v = torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)
    assert_close(Poisson().expected_information(v), (0.5 * v).exp())
    assert_close(Gaussian(0.1).expected_information(v).expand(3), torch.full_like(v, 10.0))


def test_one_response_out_of_range_is_enough_to_refuse_them_all():
    with pytest.raises(ValueRangeError, match="-2"):
        Poisson().inverse_response(torch.tensor([1.0, -2.0, 3.0]))
