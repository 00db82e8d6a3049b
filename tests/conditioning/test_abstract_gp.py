import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from tests.support.conditioning_laws import condition
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ShapeError, ValueRangeError
from streamgp.testing.tolerances import rounding


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


@pytest.fixture(params=[torch.float32, torch.float64])
def line(request):
    Z = torch.linspace(0.0, 1.0, 4, dtype=request.param).unsqueeze(-1)
    return sg.SparseGP.from_prior(RBFKernel().to(request.param), Z)


def test_a_picture_has_the_mean_and_two_standard_deviations(line):
    after = line.condition([[0.5]], [2.0], noise_variance=0.1)
    axes = after.plot(lower=0.0, upper=2.0, num_points=5)
    mean = torch.as_tensor(axes.lines[0].get_ydata()).to(line.inducing_points)
    expected = after.predict(torch.linspace(0.0, 2.0, 5).unsqueeze(-1).to(line.inducing_points))
    assert_close(mean, expected.mean)
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    upper = (expected.mean + 2.0 * expected.standard_deviation).max()
    assert_close(torch.tensor(band.max()).to(upper), upper, **rounding(upper.dtype))
    assert line.plot(axes) is axes


def test_only_one_input_can_be_drawn(line):
    wide = sg.SparseGP.from_prior(RBFKernel(), torch.rand(3, 2))
    with pytest.raises(ShapeError, match="A GP is drawn over a single input, but this one has 2"):
        wide.plot()
    with pytest.raises(ValueRangeError, match="lower must be below upper, but they are 3 and 1"):
        line.plot(lower=3.0, upper=1.0)


def test_notebooks_show_a_small_table(line):
    assert "<svg" in line._repr_html_()
    assert "<svg" not in sg.SparseGP.from_prior(RBFKernel(), torch.rand(3, 2))._repr_html_()
    assert "inducing points" in line.condition([[0.5]], [2.0], noise_variance=0.1)._repr_html_()


@pytest.mark.parametrize("is_joint", [False, True])
def test_what_comes_in_as_numpy_goes_out_as_numpy(line, is_joint):
    after = line.condition(np.array([[0.5]]), np.array([2.0]), noise_variance=np.array([0.1]))
    X = torch.linspace(0.0, 1.0, 3).unsqueeze(-1).to(line.inducing_points)
    arrays, tensors = after.predict(X.numpy(), covariance=is_joint), after.predict(X, covariance=is_joint)
    for name in ("mean", "variance", "standard_deviation", "std", "covariance"):
        array, tensor = getattr(arrays, name), getattr(tensors, name)
        assert isinstance(array, np.ndarray)
        assert isinstance(tensor, torch.Tensor)
        assert_close(torch.from_numpy(np.ascontiguousarray(array)), tensor)
    seeds = [torch.Generator().manual_seed(0) for _ in range(2)]
    sampled = after.sample(X.numpy(), 2, generator=seeds[0])
    assert_close(torch.from_numpy(sampled), after.sample(X, 2, generator=seeds[1]))


def test_counts_may_be_arrays_and_likelihoods_names(line):
    X, counts = np.array([[0.2], [0.8]]), np.array([3, 0])
    named = line.condition(X, counts, likelihood="poisson").predict(X).mean
    built = line.condition(X, counts.tolist(), likelihood=sg.likelihoods.Poisson(np.ones(2))).predict(X).mean
    assert_close(torch.from_numpy(named), torch.from_numpy(built))
    total = line.condition(X, counts, likelihood=sg.likelihoods.Binomial(np.array([5, 9])))
    assert total.num_observations == 2
    assert line.condition(X, np.array([True, False]), likelihood="bernoulli").num_observations == 2
