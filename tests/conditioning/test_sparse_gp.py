"""What a user meets: bad input gets a sentence, and nothing else changes."""

import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from tests.support.problems import random_observations, random_sparse_gp

import streamgp as sg
from streamgp.errors import DTypeError, OptionError, ShapeError, StreamGPError, ValueRangeError
from streamgp.testing.tolerances import judgement, rounding, within

NAN, INFINITY = float("nan"), float("inf")
X, Y = torch.rand(3, 2, dtype=torch.float64), torch.rand(3, dtype=torch.float64)

BAD = {
    "targets with an output axis": (X, Y.unsqueeze(-1), 0.1, ShapeError, r"Drop a trailing output axis with y.squeeze"),
    "too few targets": (
        X,
        Y[:2],
        0.1,
        ShapeError,
        r"y must have shape \(3,\), one value for each row of inputs",
    ),
    "wrong dimension": (X[:, :1], Y, 0.1, ShapeError, "X must have 2 columns"),
    "a single input": (X[0], Y[0], 0.1, ShapeError, "For a single input use X.reshape"),
    "mixed dtypes": (X.float(), Y.float(), 0.1, DTypeError, "X is float32, but the model is float64"),
    "mixed dtypes in targets": (X, Y.float(), 0.1, DTypeError, "y is float32, but the model is float64"),
    "integers": (torch.ones(3, 2, dtype=torch.long), Y, 0.1, DTypeError, "must be float32 or float64, but is int64"),
    "NaN": (torch.where(X > 2, X, NAN), Y, 0.1, ValueRangeError, "6 of its 6 values are NaN or infinite"),
    "an infinite target": (X, Y * INFINITY, 0.1, ValueRangeError, r"y must be finite.*the first at index \(0,\)"),
    "negative noise": (X, Y, -0.1, ValueRangeError, "must not be negative, but is -0.1"),
    "noise of a wrong shape": (X, Y, torch.ones(2, dtype=torch.float64), ShapeError, "noise_variance must be a number"),
    "NaN noise": (X, Y, NAN, ValueRangeError, "noise_variance must be finite"),
    "noise beyond all numbers": (X, Y, 10**400, ValueRangeError, "must be finite.*with 401 digits"),
    "a sparse tensor": (X.to_sparse(), Y, 0.1, DTypeError, "X must be a dense tensor of real numbers"),
    "a tensor without values": (X.to("meta"), Y, 0.1, DTypeError, "on the meta device, which holds no values"),
    "complex numbers": (X, Y.to(torch.complex128), 0.1, DTypeError, "y must be a dense tensor of real numbers"),
    "truth values": (X > 0.5, Y, 0.1, DTypeError, "must be float32 or float64, but is bool"),
    "strings": ([["a", "b"]] * 3, Y, 0.1, DTypeError, "X must be numbers, but holds text"),
    "objects": (np.array([[object(), 1.0]] * 3), Y, 0.1, DTypeError, "X is a ndarray that cannot be read"),
    "ragged lists": ([[1.0], [1.0, 2.0], [1.0]], Y, 0.1, DTypeError, "X is a list that cannot be read"),
    "masked values": (
        np.ma.masked_greater(X.numpy(), 0.0),
        Y,
        0.1,
        ValueRangeError,
        "X is a masked array with 6 masked values",
    ),
    "no noise": (X, Y, None, OptionError, "Neither noise_variance nor likelihood was given"),
    "batches that do not broadcast": (X.expand(2, 3, 2), Y.expand(3, 3), 0.1, ShapeError, "only leading axes may be"),
}


@pytest.mark.parametrize("method", ["condition", "absorb"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_raises_our_error_with_a_sentence(rng, method, case):
    inputs, targets, noise, error, sentence = BAD[case]
    gp = random_sparse_gp(rng).gp
    before = gp.predict(X).mean.clone()
    with pytest.raises(error, match=sentence) as caught:
        getattr(gp, method)(inputs, targets, noise_variance=noise)
    assert isinstance(caught.value, StreamGPError)
    assert torch.equal(gp.predict(X).mean, before)


def test_bad_inputs_of_predictions_and_samples_are_refused(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(ShapeError, match="X must have 2 columns"):
        gp.predict(torch.rand(3, 5, dtype=torch.float64))
    with pytest.raises(ValueRangeError, match="num_samples must be a whole number of at least 1, but is 0"):
        gp.sample(X, 0)
    with pytest.raises(ShapeError, match="X must have 2 columns"):
        gp.sample_paths(1)(torch.rand(3, 5, dtype=torch.float64))


def test_starting_from_the_prior_predicts_the_prior(rng):
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    gp = sg.SparseGP.from_prior(kernel, X)
    prediction = gp.predict(X, covariance=True)
    assert torch.equal(prediction.mean, torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(prediction.covariance, kernel(X).to_dense(), **rounding(torch.float64))
    with pytest.raises(ShapeError, match="inducing_points must have shape"):
        sg.SparseGP.from_prior(kernel, X[0])


def test_later_changes_of_the_kernel_do_not_reach_the_gp(rng):
    kernel = gpytorch.kernels.RBFKernel().double()
    gp, _ = sg.SparseGP.from_prior(kernel, X).absorb(X, Y, noise_variance=0.1)
    before = gp.predict(X).mean
    kernel.lengthscale = 100.0
    assert torch.equal(gp.predict(X).mean, before)


def test_moments_are_computed_only_when_read(rng):
    gp = random_sparse_gp(rng).gp
    prediction = gp.predict(X)
    assert not {"mean", "variance", "covariance"} & set(vars(prediction))
    assert prediction.mean.shape == (3,)
    assert "covariance" not in vars(prediction)
    joint = gp.predict(X, covariance=True)
    assert torch.equal(joint.variance, joint.covariance.diagonal())
    assert torch.equal(joint.standard_deviation, joint.variance.sqrt())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_have_the_dtype_of_the_inputs(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    new = random_observations(rng, num_observations=3, dtype=dtype)
    conditioned = gp.condition(new.inputs, new.targets, noise_variance=0.1)
    absorbed, _ = gp.absorb(new.inputs, new.targets, noise_variance=0.1)
    for each in (gp, conditioned, absorbed):
        prediction = each.predict(new.inputs)
        assert prediction.mean.dtype == prediction.variance.dtype == prediction.covariance.dtype == dtype
        assert each.sample(new.inputs, 2).dtype == dtype
    assert gp.sample_paths(2)(new.inputs).dtype == dtype


def test_leading_axes_that_do_not_fit_the_model_are_refused(rng):
    gp = random_sparse_gp(rng, batch_shape=(3,)).gp
    sentence = r"leading axes \(2,\) of X do not broadcast with the leading axes \(3,\) of the model"
    with pytest.raises(ShapeError, match=sentence):
        gp.predict(X.expand(2, 3, 2))
    with pytest.raises(ShapeError, match=sentence):
        gp.condition(X.expand(2, 3, 2), Y.expand(2, 3), noise_variance=0.1)
    with pytest.raises(ShapeError, match=r"leading axes \(2,\) of y do not broadcast"):
        gp.absorb(X, Y.expand(2, 3), noise_variance=0.1)


def test_the_text_of_a_gp_is_short(rng):
    gp = random_sparse_gp(rng, batch_shape=(3,), num_inducing=6).gp
    assert repr(gp) == "SparseGP(num_inducing=6, num_dims=2, batch_shape=(3,), dtype=float64)"
    conditioned = gp.condition(X, Y, noise_variance=0.1)
    assert repr(conditioned).startswith("ConditionedGP(num_observations=3, num_inducing=6")


def test_numpy_and_lists_are_accepted_where_tensors_are(rng):
    gp = random_sparse_gp(rng).gp
    expected = gp.condition(X, Y, noise_variance=0.1).predict(X).mean
    given = gp.condition(X.numpy(), Y.tolist(), noise_variance=np.full(3, 0.1)).predict(X.tolist()).mean
    assert torch.equal(given, expected)
    absorbed, _ = gp.absorb(X.tolist(), Y.numpy(), noise_variance=0.1, inducing=X.numpy())
    assert torch.equal(absorbed.inducing_points, X)
    assert sg.SparseGP.from_prior(gp.kernel, X.float().numpy()).inducing_points.dtype == torch.float32


def test_no_inducing_points_are_refused_instead_of_forgetting_all(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(ShapeError, match=r"inducing must have shape .* with at least one point"):
        gp.absorb(X, Y, noise_variance=0.1, inducing=gp.inducing_points[:0])


@pytest.mark.parametrize("num_dims", [1, 3])
def test_a_kernel_whose_lengthscales_do_not_fit_is_refused(rng, num_dims):
    Z = torch.rand(4, num_dims, dtype=torch.float64)
    for kernel in (
        gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(ard_num_dims=2)),
        gpytorch.kernels.RBFKernel() + gpytorch.kernels.PeriodicKernel(ard_num_dims=2),
    ):
        with pytest.raises(
            ShapeError, match=f"has 2 lengthscales .* with {num_dims} columns. Make it with ard_num_dims"
        ):
            sg.SparseGP.from_prior(kernel, Z)
        gp = sg.SparseGP.from_prior(gpytorch.kernels.RBFKernel(), Z)
        with pytest.raises(ShapeError, match="has 2 lengthscales"):
            gp.absorb(Z, Z[:, 0], noise_variance=0.1, kernel=kernel)
    with pytest.raises(ShapeError, match="active dimension 7 does not exist"):
        sg.SparseGP.from_prior(gpytorch.kernels.RBFKernel(active_dims=(7,)), Z)


def test_an_unknown_choice_of_points_is_refused(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(OptionError, match="inducing must be one of 'pivoted', 'keep', but is 'all'"):
        gp.absorb(X, Y, noise_variance=0.1, inducing="all")


@pytest.mark.parametrize(("dtype", "share"), [(torch.float64, 1e-8), (torch.float32, 1e-5)])
def test_the_jitter_of_a_prior_is_as_documented_and_stays_when_points_move(dtype, share):
    X = torch.linspace(0, 1, 6, dtype=dtype).unsqueeze(-1)
    variance = torch.tensor(3.0, dtype=dtype)
    gp = sg.SparseGP.from_prior(ScaleKernel(RBFKernel()).to(dtype).initialize(outputscale=variance), X[:4])
    moved, _ = gp.absorb(X, X[:, 0], noise_variance=0.1)
    assert gp.process.jitter == pytest.approx(3.0 * share, **within(judgement(relative=1e-5)))
    assert moved.process.jitter == gp.process.jitter
