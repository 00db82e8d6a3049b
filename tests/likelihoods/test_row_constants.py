import pytest
import torch

from streamgp.errors import OptionError
from streamgp.likelihoods import Bernoulli, Binomial, Gaussian, Poisson, from_name, names

COUNTS = torch.tensor([3.0, 9.0, 4.0], dtype=torch.float64)


def test_rows_are_chosen_with_their_constants():
    likelihood = Binomial(COUNTS)
    assert likelihood.has_row_constants
    index = torch.tensor([2, 0])
    assert torch.equal(likelihood.at_rows(index).total_count, COUNTS[index])
    assert likelihood.at_rows(index, num_axes=2).total_count.shape == (2, 1, 1)
    assert likelihood.with_axis().total_count.shape == (3, 1)


def test_what_is_the_same_for_all_rows_stays_as_it_is():
    likelihood = Poisson(2.0)
    assert not likelihood.has_row_constants
    assert likelihood.at_rows(torch.tensor([0, 1])) is likelihood
    assert likelihood.with_axis() is likelihood


def test_data_of_rows_takes_the_place_of_what_was_known():
    assert torch.equal(Binomial(1).with_row_data(COUNTS).row_values, COUNTS)
    assert Gaussian(0.3).row_data == "noise_variance"
    with pytest.raises(OptionError, match="exposure"):
        Bernoulli().with_row_data(COUNTS)
    assert Bernoulli().row_values is None


def test_only_a_number_of_successes_needs_to_know_out_of_how_many():
    assert [name for name in names() if from_name(name).needs_row_data] == ["binomial"]
