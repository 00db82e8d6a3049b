import pytest
import torch
from torch.testing import assert_close

from streamgp.sites.belief import DenseBelief, FactoredBelief
from streamgp.testing.tolerances import rounding


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("kind", ["dense", "factored"])
def test_an_update_equals_the_product_of_gaussians(rng, dtype, k, kind):
    W, mean = (torch.randn(*shape, generator=rng, dtype=torch.float64).to(dtype) for shape in ((5, k), (k,)))
    belief = DenseBelief(mean, W.T @ W) if kind == "dense" else FactoredBelief(mean, W)
    pull = torch.randn(k, generator=rng, dtype=torch.float64).to(dtype)
    precision = torch.rand(k, generator=rng, dtype=torch.float64).to(dtype) + 0.1
    updated = belief.update(pull, precision)
    C = (W.T @ W).double()
    after = (C.inverse() + precision.double().diag()).inverse()
    shift = after @ pull.double()
    limits = rounding(dtype, condition=torch.linalg.cond(C).item(), scale=C.max().item())
    assert_close(updated.shift.double(), shift, **limits)
    assert_close(updated.variance.double(), after.diagonal(), **limits)
    assert_close(updated.gradient.double(), C.inverse() @ shift, **limits)
    assert_close(updated.quadratic.double(), shift @ C.inverse() @ shift, **limits)
    assert_close(updated.log_determinant.double(), C.logdet() - after.logdet(), **limits)
    assert_close(belief.variance().double(), C.diagonal(), **limits)


def test_slack_is_added_and_not_reduced():
    slack = torch.tensor([0.5], dtype=torch.float64)
    belief = DenseBelief(torch.zeros_like(slack), torch.ones(1, 1, dtype=torch.float64), slack)
    updated = belief.update(torch.ones_like(slack), torch.ones_like(slack))
    assert updated.variance.item() == 0.5
    assert updated.spread.item() == 1.0
