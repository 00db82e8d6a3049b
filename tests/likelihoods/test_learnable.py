import pytest
import torch

from streamgp.errors import OptionError
from streamgp.likelihoods import Bernoulli, Gaussian, NegativeBinomial


def test_what_has_nothing_to_learn_stays_as_it_is():
    likelihood = Bernoulli()
    assert likelihood.learnable() == {}
    assert likelihood.with_learnable({}) is likelihood
    assert float(likelihood.log_prior()) == 0.0


@pytest.mark.parametrize("likelihood", [Gaussian(0.3), NegativeBinomial()])
def test_any_real_number_is_a_value_of_what_is_learned(likelihood):
    for shift in (-3.0, 0.0, 3.0):
        values = {name: value + shift for name, value in likelihood.learnable().items()}
        learned = likelihood.with_learnable(values)
        for name, value in learned.learnable().items():
            assert torch.isclose(value, values[name])


def test_names_that_are_not_learned_are_refused():
    with pytest.raises(OptionError, match="names"):
        Gaussian(0.3).with_learnable({"variance": torch.zeros(())})
