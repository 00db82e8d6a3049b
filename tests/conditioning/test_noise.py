import pytest
import torch
from torch.testing import assert_close

from streamgp.conditioning.observation import Noise
from streamgp.errors import OptionError, ValueRangeError
from streamgp.testing.tolerances import rounding

X = torch.zeros(3, 1, dtype=torch.float64)
VARIANCES = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
ROOT = torch.tensor([[1.0, 0.0, 0.0], [0.3, 1.0, 0.0], [-0.2, 0.4, 0.7]], dtype=torch.float64)
KINDS = {"number": 0.5, "vector": VARIANCES, "matrix": ROOT @ ROOT.T}


def dense(kind):
    value = KINDS[kind]
    return (
        value * torch.eye(3, dtype=torch.float64) if kind == "number" else value.diag() if kind == "vector" else value
    )


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_act_as_their_covariance_matrix(rng, kind):
    noise, covariance = Noise.read(KINDS[kind], X), dense(kind)
    rows = torch.randn(3, 2, generator=rng, dtype=torch.float64)
    assert_close(noise.add_to(torch.ones(3, 3, dtype=torch.float64)), 1 + covariance, **rounding(X.dtype))
    assert_close(noise.variances(3), covariance.diagonal(), **rounding(X.dtype))
    whitened = noise.whiten(rows)
    expected = rows.T @ torch.linalg.solve(covariance, rows)
    assert_close(whitened.T @ whitened, expected, **rounding(X.dtype, condition=torch.linalg.cond(covariance).item()))


def test_noise_that_is_missing_or_zero_is_refused_with_a_remedy():
    with pytest.raises(OptionError, match="Neither noise_variance nor likelihood was given"):
        Noise.read(None, X)
    with pytest.raises(ValueRangeError, match="must be positive to absorb observations, but is zero"):
        Noise.read(0.0, X).check_positive()
    assert Noise.read(1e-300, X).check_positive().values > 0
