"""Outcomes of several outputs as rows."""

import pytest
import torch

from streamgp.conditioning.multi_output.outcomes import Outcomes
from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Poisson

NAN = float("nan")
X = torch.tensor([[0.1], [0.2]], dtype=torch.float64)
Y = torch.tensor([[1.0, NAN], [NAN, 4.0]], dtype=torch.float64)


def test_what_was_not_observed_is_left_out():
    outcomes = Outcomes.read(X, Y, 2)
    assert outcomes.inputs.tolist() == [[0.1, 0.0], [0.2, 1.0]]
    assert outcomes.targets.tolist() == [1.0, 4.0]


def test_noise_follows_its_output_or_its_outcome():
    outcomes = Outcomes.read(X, Y, 2)
    assert outcomes.noise(0.5) == 0.5
    assert outcomes.noise(torch.tensor([0.1, 0.2], dtype=torch.float64)).tolist() == [0.1, 0.2]
    each = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    assert outcomes.noise(each).tolist() == [1.0, 4.0]


def test_each_row_has_the_likelihood_of_its_output():
    mixed = Outcomes.read(X, Y, 2).likelihood([Poisson(), Bernoulli()])
    assert mixed.kinds.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("outcomes", "error", "message"),
    [
        (torch.zeros(2, 3, dtype=torch.float64), ShapeError, "one column for each of the 2 outputs"),
        (torch.full((2, 2), torch.inf, dtype=torch.float64), ValueRangeError, "holds infinity"),
        (torch.stack([Y, Y.flip(0)]), UnsupportedError, "one by one"),
    ],
)
def test_outcomes_that_make_no_sense_are_answered_with_a_sentence(outcomes, error, message):
    with pytest.raises(error, match=message):
        Outcomes.read(X, outcomes, 2)


def test_a_list_of_likelihoods_of_another_length_is_refused():
    with pytest.raises(OptionError, match="one for each of the 2"):
        Outcomes.read(X, Y, 2).likelihood([Poisson()])
