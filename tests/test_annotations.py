"""The annotations of the package are enforced while the tests run."""

import pytest
import torch
from jaxtyping import TypeCheckError

from streamgp.cli.pictures import draw_belief
from streamgp.testing.tolerances import tolerance
from streamgp.training.priors import _gamma


def test_a_wrong_shape_is_refused():
    with pytest.raises(TypeCheckError, match="variance"):
        draw_belief(None, torch.zeros(3), torch.zeros(3), torch.zeros(4))


def test_functions_within_functions_are_checked():
    density = _gamma(2.0, 1.0)
    with pytest.raises(TypeCheckError, match="density"):
        density(1.0)


def test_some_of_many_calls_are_still_checked():
    def call_often():
        for i in range(1000):
            tolerance(torch.float64, scale=1.0 if i < 500 else torch.ones(()))

    with pytest.raises(TypeCheckError, match="scale"):
        call_often()


def test_an_int_passes_for_a_float_as_in_mypy():
    assert tolerance(torch.float64, scale=2)["atol"] == 2 * tolerance(torch.float64)["atol"]
