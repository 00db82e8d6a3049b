import pytest
import torch
from torch.testing import assert_close

from streamgp.conditioning.noise import Noise
from streamgp.errors import NumericalError, OptionError, ValueRangeError
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


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_raised_where_it_is_too_small_and_counted(kind):
    noise = Noise.read(KINDS[kind], X)
    assert noise.raised_to(torch.full((3,), 1e-6, dtype=torch.float64)) == (noise, 0)
    raised, number = noise.raised_to(torch.full((3,), 0.7, dtype=torch.float64))
    assert number == {"number": 3, "vector": 1, "matrix": 3}[kind]
    least = torch.linalg.eigvalsh(raised.add_to(torch.zeros(3, 3, dtype=torch.float64))).min()
    assert_close(least, torch.tensor(0.7, dtype=torch.float64), **rounding(X.dtype))
    floors = torch.tensor([0.9, 0.1, 0.6], dtype=torch.float64)
    raised, number = noise.raised_to(floors)
    if kind == "matrix":  # no direction has less than the largest floor
        raised, floors = torch.linalg.eigvalsh(raised.values), floors.max()
        assert_close(raised.min(), floors, **rounding(X.dtype))
    else:
        assert torch.equal(raised.variances(3), torch.maximum(noise.variances(3), floors))
        assert number == int((noise.variances(3) < floors).sum())


@pytest.mark.parametrize("kind", [0.5, torch.zeros(0, dtype=X.dtype), torch.zeros(0, 0, dtype=X.dtype)], ids=KINDS)
def test_the_noise_of_no_observations_is_nowhere_too_small(kind):
    noise = Noise.read(kind, X[:0])
    assert noise.raised_to(torch.zeros(0, dtype=X.dtype)) == (noise, 0)


def test_noise_that_is_missing_or_zero_is_refused_with_a_remedy():
    with pytest.raises(OptionError, match="Neither noise_variance nor likelihood was given"):
        Noise.read(None, X)
    with pytest.raises(ValueRangeError, match="must be positive to absorb observations, but is zero"):
        Noise.read(0.0, X).check_positive()
    assert Noise.read(1e-300, X).check_positive().values > 0


def test_a_matrix_without_eigenvalues_is_refused_with_a_sentence():
    values = torch.eye(3, dtype=torch.float64)
    values[2, 1] = torch.nan
    with pytest.raises(NumericalError, match="noise_variance has no eigenvalues that could be computed"):
        Noise(values, is_matrix=True).raised_to(torch.full((3,), 1e-6, dtype=torch.float64))
