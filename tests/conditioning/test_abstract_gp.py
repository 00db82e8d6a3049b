import pytest
import torch

from streamgp.errors import ShapeError, ValueRangeError
from streamgp.testing.conditioning_laws import condition
from streamgp.testing.problems import random_observations, random_sparse_gp


@pytest.fixture(params=["sparse", "conditioned"])
def gp(request, rng):
    sparse = random_sparse_gp(rng, batch_shape=(2,)).gp
    return sparse if request.param == "sparse" else condition(sparse, random_observations(rng, num_observations=3))


def test_a_reader_of_a_notebook_sees_sizes_and_no_tensors(gp):
    assert "num_inducing=6, num_dims=2, batch_shape=(2,), dtype=float64" in repr(gp)
    assert "tensor" not in repr(gp)


def test_inputs_of_another_shape_are_refused(gp):
    with pytest.raises(ShapeError, match="X must have 2 columns"):
        gp.predict(torch.zeros(4, 3, dtype=torch.float64))
    with pytest.raises(ShapeError, match=r"leading axes \(3,\) of X do not broadcast"):
        gp.predict(torch.zeros(3, 4, 2, dtype=torch.float64))


def test_a_covariance_that_is_asked_for_is_there_at_once(gp):
    X = torch.zeros(4, 2, dtype=torch.float64)
    assert "covariance" in vars(gp.predict(X, covariance=True))
    assert "covariance" not in vars(gp.predict(X))


def test_samples_have_the_leading_axes_of_the_gp(gp, rng):
    assert gp.sample(torch.rand(4, 2, generator=rng, dtype=torch.float64), 3, generator=rng).shape == (3, 2, 4)
    with pytest.raises(ValueRangeError, match="num_samples must be a whole number"):
        gp.sample(torch.zeros(4, 2, dtype=torch.float64), 0)
