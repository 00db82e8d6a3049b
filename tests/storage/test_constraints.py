import pytest
import torch
from gpytorch.constraints import GreaterThan, Interval, Positive
from gpytorch.kernels import RBFKernel

from streamgp.storage.constraints import describe_constraints, rebuild_constraint


@pytest.mark.parametrize(
    "constraint",
    [Positive(), GreaterThan(0.1), Interval(0.1, 3.0), GreaterThan(0.1, transform=None)],
    ids=["positive", "above", "between", "without transform"],
)
def test_a_described_constraint_is_the_same_again(constraint):
    kernel = RBFKernel(lengthscale_constraint=constraint).double()
    (described,) = describe_constraints(kernel).values()
    again = rebuild_constraint(described)
    assert type(again) is type(constraint)
    assert repr(again._transform) == repr(constraint._transform)
    for name in ("lower_bound", "upper_bound"):
        assert torch.equal(getattr(again, name), getattr(constraint, name))


def test_a_constraint_with_a_transform_of_its_own_is_not_described():
    kernel = RBFKernel(lengthscale_constraint=Positive(transform=torch.exp, inv_transform=torch.log))
    assert describe_constraints(kernel) == {"raw_lengthscale": None}
