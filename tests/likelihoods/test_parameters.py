import math

import pytest
import torch

from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Bernoulli
from streamgp.likelihoods.parameters import finite_exp, to_parameter


def test_numbers_become_double_and_tensors_keep_their_dtype_and_gradient():
    assert to_parameter(2, "scale").dtype == torch.float64
    value = torch.tensor(2.0, requires_grad=True)
    assert to_parameter(value, "scale", above=0.0) is value


def test_errors_name_the_first_offending_value():
    with pytest.raises(ValueRangeError, match="positive"):
        to_parameter(torch.tensor([1.0, -3.0, -4.0]), "scale", above=0.0)
    with pytest.raises(ValueRangeError, match="shift"):
        to_parameter(math.inf, "shift")


@pytest.mark.parametrize(("dtype", "largest"), [(torch.float32, 78.0), (torch.float64, 699.0)])
def test_exponentials_are_exact_until_near_overflow_and_finite_beyond(dtype, largest):
    x = torch.tensor([-1000.0, 0.0, largest, 1e6], dtype=dtype)
    value = finite_exp(x)
    assert torch.equal(value[:3], x[:3].exp())
    assert math.isfinite(20_000 * value[3].item())
    assert bool(torch.isfinite(value.expand(20_000, 4).sum(0)).all())


def test_the_advice_on_targets_that_are_not_numbers_is_to_drop_them():
    for value, advice in ((math.nan, "Drop those observations"), (-1.0, "Labels -1 and 1 become 0 and 1")):
        with pytest.raises(ValueRangeError, match=advice):
            Bernoulli().check_targets(torch.tensor([0.0, value]))
