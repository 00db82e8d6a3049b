import gpytorch
import pytest
import torch
from tests.support.conditioning_laws import DTYPES
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import NumericalError
from streamgp.gp import Prediction, row_by_row
from streamgp.gp.inducing import InducingPoints
from streamgp.testing.tolerances import sampling, tolerance


@pytest.mark.parametrize("moment", ["mean", "variance", "covariance"])
def test_moments_that_overflow_are_refused(moment):
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.LinearKernel())
    gp, _ = sg.SparseGP.from_prior(kernel, torch.ones(1, 1)).absorb(
        torch.ones(1, 1), torch.full((1,), 100.0), noise_variance=0.1, inducing="keep"
    )
    prediction = gp.predict(torch.tensor([[1.0], [3e38]]))
    with pytest.raises(NumericalError, match=f"The {moment} of the prediction is beyond what float32 can hold"):
        getattr(prediction, moment)


def test_moments_are_computed_once_and_only_when_asked_for(rng):
    prediction = random_sparse_gp(rng).gp.predict(torch.rand(3, 2, generator=rng, dtype=torch.float64))
    assert not {"mean", "variance", "covariance"} & set(vars(prediction))
    assert prediction.mean is prediction.mean
    assert prediction.standard_deviation.equal(prediction.variance.sqrt())
    assert "covariance" not in vars(prediction)


def test_samples_have_the_predicted_moments_also_in_a_batch(rng):
    gp = random_sparse_gp(rng, batch_shape=(2,)).gp
    X, s = torch.rand(3, 2, generator=rng, dtype=torch.float64), 3000
    samples, prediction = gp.sample(X, s, generator=rng), gp.predict(X)
    assert samples.shape == (s, 2, 3)
    largest = float(prediction.variance.max())
    assert_close(samples.mean(0), prediction.mean, **sampling((largest / s) ** 0.5))
    for i in range(2):
        assert_close(samples[:, i].T.cov(), prediction.covariance[i], **sampling(largest * (2 / s) ** 0.5))


def test_moments_are_tensors_unless_asked_otherwise_and_in_the_shape_of_their_rows(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    assert isinstance(Prediction(gp.process, X).mean, torch.Tensor)
    slopes = gp.predict(sg.evidence.gradient(X))
    assert slopes.mean.shape == slopes.variance.shape == slopes.std.shape == (3, 2)
    assert slopes.covariance.shape == (6, 6)
    flat = slopes.covariance.diagonal().reshape(3, 2)
    assert_close(slopes.variance, flat, **tolerance(X.dtype))
    assert_close(slopes.std, flat.sqrt(), **tolerance(X.dtype))


def test_the_variance_is_read_off_a_covariance_that_is_there(rng):
    prediction = random_sparse_gp(rng).gp.predict(torch.rand(3, 2, generator=rng, dtype=torch.float64), covariance=True)
    assert prediction.variance.equal(prediction.covariance.diagonal())


@pytest.mark.parametrize("moment", ["mean", "variance"])
@pytest.mark.parametrize("is_conditioned", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_very_many_inputs_are_predicted_part_by_part(rng, monkeypatch, moment, is_conditioned, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X, Y = (torch.rand(*shape, generator=rng, dtype=torch.float64).to(dtype) for shape in ((23, 2), (4, 2)))
    if is_conditioned:
        gp = gp.condition(X[:2], Y, noise_variance=0.1)
    expected = getattr(gp.predict(X), moment)
    sizes = []
    function = getattr(type(gp.process), moment)
    monkeypatch.setattr(
        "streamgp.gp.process._PART_NUMBERS", 5 * gp.process.num_inducing * gp.process.batch_shape.numel()
    )
    monkeypatch.setattr(
        type(gp.process), moment, lambda process, X, cross: sizes.append(len(X)) or function(process, X, cross)
    )
    found = getattr(gp.predict(X), moment)
    assert sizes == [5, 5, 5, 5, 3]
    assert_close(found, expected, **tolerance(X.dtype))


def test_gradients_pass_through_very_many_inputs(rng, monkeypatch):
    """Those of what a belief hangs on, though its inputs have none."""
    gp, X = random_sparse_gp(rng).gp, torch.rand(9, 2, generator=rng, dtype=torch.float64)
    gradients = []
    for numbers in (10**6, 2 * gp.process.num_inducing):
        monkeypatch.setattr("streamgp.gp.process._PART_NUMBERS", numbers)
        place = X[:3].clone().requires_grad_(True)
        variance = gp.condition(place, X[:3, 0], noise_variance=0.1).predict(X).variance
        gradients.append(torch.autograd.grad(variance.sum(), place)[0])
    assert_close(*gradients, **tolerance(X.dtype))


@pytest.mark.parametrize("batch_shape", [(), (3,), (2, 3)])
def test_leading_axes_of_inputs_alone_are_evaluated_as_rows(rng, batch_shape):
    X = torch.randn(4, 1, 5, *batch_shape, 6, 2, generator=rng, dtype=torch.float64)
    weights = torch.randn(*batch_shape, 1, 2, generator=rng, dtype=torch.float64)
    seen = []

    def function(rows):
        seen.append(rows.shape)
        return (weights * rows).sum(-1)

    values = row_by_row(function, X, len(batch_shape))
    assert seen == [(*batch_shape, 4 * 5 * 6, 2)]
    assert values.equal((weights * X).sum(-1))
    assert row_by_row(function, X[:0], len(batch_shape)).shape == (0, *X.shape[1:-1])


def count_crosses(monkeypatch):
    calls = []
    for name in ("cross", "crossed"):
        whole = getattr(InducingPoints, name)
        monkeypatch.setattr(InducingPoints, name, lambda *args, whole=whole: calls.append(1) or whole(*args))
    return calls


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("is_conditioned", [False, True])
def test_mean_and_variance_share_the_covariance_with_inducing_values(rng, monkeypatch, is_conditioned, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.rand(4, gp.inducing_points.shape[-1], generator=rng, dtype=torch.float64).to(dtype)
    gp = gp.condition(X[:2], X[:2, 0], noise_variance=0.1) if is_conditioned else gp
    mean, variance = gp.process.mean(X), gp.process.variance(X)
    prediction, calls = gp.predict(X), count_crosses(monkeypatch)
    assert_close(prediction.mean, mean, **tolerance(dtype))
    assert_close(prediction.variance, variance, **tolerance(dtype))
    assert len(calls) == 1


def test_what_mean_and_variance_share_is_not_kept_where_it_is_large(rng, monkeypatch):
    gp = random_sparse_gp(rng).gp
    monkeypatch.setattr("streamgp.gp.sparse._MOST_KEPT", 4 * gp.num_inducing - 1)
    X = torch.rand(4, gp.inducing_points.shape[-1], generator=rng, dtype=torch.float64)
    assert gp.process.cross(X) is None
    assert gp.process.cross(X[:3]) is not None


def test_gradients_of_mean_and_variance_are_taken_one_after_the_other(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(4, gp.inducing_points.shape[-1], generator=rng, dtype=torch.float64).requires_grad_(True)
    prediction = gp.predict(X)
    prediction.mean.sum().backward()
    prediction.variance.sum().backward()
    assert X.grad is not None
