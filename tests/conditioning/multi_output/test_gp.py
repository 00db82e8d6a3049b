"""Several outputs: the dense reference on the kernel of the linear model of coregionalization, and laws."""

import copy
import pickle

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from tests.support.conditioning_laws import DTYPES
from torch.testing import assert_close

import streamgp as sg
from streamgp.conditioning.multi_output.prediction import MultiOutputPrediction
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, StreamGPError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson
from streamgp.testing.tolerances import approximation, belief_rounding, rounding, sampling, tolerance

NAN = float("nan")


def kernels():
    first, second = ScaleKernel(MaternKernel(2.5)), ScaleKernel(RBFKernel())
    first.outputscale, first.base_kernel.lengthscale = 1.3, 0.4
    second.outputscale, second.base_kernel.lengthscale = 0.7, 0.8
    return [first.double(), second.double()]


MIXING = torch.tensor([[1.0, 0.2], [-0.5, 0.8], [0.3, 1.1]], dtype=torch.float64)
MEAN = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)


def uniform(rng, *shape, dtype=torch.float64):
    return torch.rand(*shape, generator=rng, dtype=torch.float64).to(dtype)


def make(rng, *, dtype=torch.float64, points=None):
    Z = [uniform(rng, 7, 2), uniform(rng, 5, 2)] if points is None else points
    return sg.MultiOutputGP.from_prior(
        kernels(), [each.to(dtype) for each in Z], mixing=MIXING.to(dtype), mean=MEAN.to(dtype)
    )


def dense_kernel(X, Y):
    """The covariance of all outputs, inputs first, by NumPy."""
    parts = [kernel(X, Y).to_dense().detach().numpy() for kernel in kernels()]
    a = MIXING.numpy()
    blocks = sum(np.einsum("o,p,ij->iojp", a[:, j], a[:, j], part) for j, part in enumerate(parts))
    return blocks.reshape(len(X) * 3, len(Y) * 3)


def dense_condition(X, Y, noise, W):
    """Exact regression on the observed outcomes, and the condition number of what is inverted."""
    y = Y.numpy().reshape(-1)
    seen = ~np.isnan(y)
    mean = np.tile(MEAN.numpy(), len(X))
    A = dense_kernel(X, X)[np.ix_(seen, seen)] + np.diag(np.broadcast_to(noise, Y.shape).reshape(-1)[seen])
    cross = dense_kernel(W, X)[:, seen]
    expected = np.tile(MEAN.numpy(), len(W)) + cross @ np.linalg.solve(A, (y - mean)[seen])
    covariance = dense_kernel(W, W) - cross @ np.linalg.solve(A, cross.T)
    return torch.from_numpy(expected).reshape(len(W), 3), torch.from_numpy(covariance), np.linalg.cond(A)


def test_conditioning_equals_the_dense_reference(rng):
    gp, X, W = make(rng), uniform(rng, 6, 2), uniform(rng, 4, 2)
    Y = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    Y[1, 0] = Y[2] = Y[4, 1:] = NAN
    noise = np.array([0.1, 0.02, 0.3])
    prediction = gp.condition(X, Y, noise_variance=noise).predict(W, covariance=True)
    mean, covariance, condition = dense_condition(X, Y, noise, W)
    limits = rounding(torch.float64, condition=condition, scale=3.0)
    assert_close(prediction.mean, mean, **limits)
    assert_close(prediction.covariance, covariance, **limits)
    assert_close(prediction.variance.flatten(), covariance.diagonal(), **limits)


def test_absorbing_at_all_inputs_equals_the_exact_gp(rng):
    X, W = uniform(rng, 6, 2), uniform(rng, 4, 2)
    Y = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    absorbed, _ = make(rng, points=[X]).absorb(X, Y, noise_variance=0.1, inducing="keep")
    mean, covariance, condition = dense_condition(X, Y, 0.1, W)
    # The jitter on the inducing points is 1e-8 of the variance, and moves what is inverted by as much.
    limits = approximation(1e-8 * condition, "jitter")
    assert_close(absorbed.predict(W).mean, mean, **limits)
    assert_close(absorbed.predict(W).covariance, covariance, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
def test_in_two_parts_equals_at_once_and_chains_after_absorbing(rng, dtype):
    gp, X, W = make(rng, dtype=dtype), uniform(rng, 6, 2, dtype=dtype), uniform(rng, 4, 2, dtype=dtype)
    Y = torch.randn(6, 3, generator=rng, dtype=torch.float64).to(dtype)
    gp, _ = gp.absorb(uniform(rng, 9, 2, dtype=dtype), uniform(rng, 9, 3, dtype=dtype), noise_variance=0.1)
    once = gp.condition(X, Y, noise_variance=0.1).predict(W)
    twice = gp.condition(X[:2], Y[:2], noise_variance=0.1).condition(X[2:], Y[2:], noise_variance=0.1).predict(W)
    limits = rounding(dtype, condition=dense_condition(X.double(), Y.double(), 0.1, W.double())[2], scale=3.0)
    assert_close(twice.mean, once.mean, **limits)
    assert_close(twice.covariance, once.covariance, **limits)
    nothing = gp.condition(X[:0], Y[:0], noise_variance=0.1).predict(W)
    assert_close(nothing.mean, gp.predict(W).mean, **rounding(dtype, scale=3.0))


@pytest.mark.parametrize("output", [1, -1])
def test_rows_about_one_output_are_outcomes_whose_others_are_missing(rng, output):
    gp, X, W = make(rng), uniform(rng, 3, 2), uniform(rng, 4, 2)
    y, Y = torch.randn(3, generator=rng, dtype=torch.float64), torch.full((3, 3), NAN, dtype=torch.float64)
    Y[:, output] = y
    rows = gp.rows_of(sg.evidence.values(X), output)
    ours, theirs = gp.condition(rows, y, noise_variance=0.1), gp.condition(X, Y, noise_variance=0.1)
    assert_close(ours.predict(W).covariance, theirs.predict(W).covariance, **tolerance(torch.float64))
    assert_close(ours.predict(W).mean, theirs.predict(W).mean, **tolerance(torch.float64))
    poisson = gp.condition(rows, y.abs().round(), likelihood="poisson", sites="laplace")
    same = gp.condition(X, Y.abs().round(), likelihood="poisson", sites="laplace")
    assert_close(poisson.predict(W).mean, same.predict(W).mean, **approximation(1e-6, "iteration"))


def test_deviations_are_roots_of_variances_and_take_the_form_of_the_inputs(rng):
    gp, X = make(rng), uniform(rng, 3, 2)
    prediction = gp.predict(X)
    assert torch.equal(prediction.std, prediction.variance.sqrt())
    assert isinstance(MultiOutputPrediction(prediction.rows, 3).mean, torch.Tensor)
    assert isinstance(gp.predict(X.numpy()).std, np.ndarray)
    assert gp.predict(X, output=[2, 0]).mean.shape == (3, 2)


def test_a_model_for_gpytorch_comes_back(rng):
    gp, X = make(rng), uniform(rng, 3, 2)
    again = sg.from_gpytorch(gp.to_gpytorch())
    assert isinstance(again, sg.MultiOutputGP)
    assert (again.num_dims, again.num_outputs) == (2, 3)
    assert_close(again.predict(X).covariance, gp.predict(X).covariance, **tolerance(torch.float64))


def test_one_output_equals_a_sparse_gp(rng):
    Z, X, W = uniform(rng, 7, 2), uniform(rng, 5, 2), uniform(rng, 4, 2)
    y = torch.randn(5, generator=rng, dtype=torch.float64)
    one = sg.MultiOutputGP.from_prior(kernels()[0], Z, mixing=[[1.0]])
    plain = sg.SparseGP.from_prior(kernels()[0], Z)
    ours, _ = one.absorb(X, y.unsqueeze(-1), noise_variance=0.1, inducing="keep")
    theirs, _ = plain.absorb(X, y, noise_variance=0.1, inducing="keep")
    assert_close(ours.predict(W).mean.squeeze(-1), theirs.predict(W).mean, **tolerance(torch.float64))
    assert_close(ours.predict(W).covariance, theirs.predict(W).covariance, **tolerance(torch.float64))


def test_independent_outputs_equal_separate_gps(rng):
    Z, X, W = uniform(rng, 7, 2), uniform(rng, 5, 2), uniform(rng, 4, 2)
    Y = torch.randn(5, 2, generator=rng, dtype=torch.float64)
    both = sg.MultiOutputGP.from_prior(kernels(), Z, mixing=torch.eye(2, dtype=torch.float64))
    both, _ = both.absorb(X, Y, noise_variance=0.1, inducing="keep")
    for j, kernel in enumerate(kernels()):
        alone, _ = sg.SparseGP.from_prior(kernel, Z).absorb(X, Y[:, j], noise_variance=0.1, inducing="keep")
        # The jitter, 1e-8, is relative to the mean variance of all latent functions.
        condition = float(torch.linalg.cond(kernel(X).to_dense().detach() + 0.1 * torch.eye(5, dtype=torch.float64)))
        limits = approximation(1e-8 * condition, "jitter")
        assert_close(both.predict(W, output=j).mean.squeeze(-1), alone.predict(W).mean, **limits)
        assert_close(both.predict(W, output=j).covariance, alone.predict(W).covariance, **limits)


def test_permuting_outputs_permutes_predictions(rng):
    Z, X, W = uniform(rng, 7, 2), uniform(rng, 5, 2), uniform(rng, 4, 2)
    Y, order = torch.randn(5, 3, generator=rng, dtype=torch.float64), [2, 0, 1]
    plain = sg.MultiOutputGP.from_prior(kernels(), Z, mixing=MIXING, mean=MEAN)
    other = sg.MultiOutputGP.from_prior(kernels(), Z, mixing=MIXING[order], mean=MEAN[order])
    expected = plain.condition(X, Y, noise_variance=[0.1, 0.2, 0.3]).predict(W).mean[:, order]
    noise = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)[order]
    assert_close(other.condition(X, Y[:, order], noise_variance=noise).predict(W).mean, expected)


def test_one_kernel_for_all_latent_functions_is_intrinsic_coregionalization(rng):
    Z, X, W = uniform(rng, 7, 2), uniform(rng, 5, 2), uniform(rng, 4, 2)
    Y = torch.randn(5, 3, generator=rng, dtype=torch.float64)
    shared = sg.MultiOutputGP.from_prior(kernels()[0], Z, mixing=MIXING).condition(X, Y, noise_variance=0.1)
    listed = sg.MultiOutputGP.from_prior([kernels()[0]] * 2, Z, mixing=MIXING).condition(X, Y, noise_variance=0.1)
    assert_close(shared.predict(W).mean, listed.predict(W).mean)
    assert_close(shared.predict(W).covariance, listed.predict(W).covariance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fantasies_and_batches_equal_a_loop(rng, dtype):
    gp, X, W = make(rng, dtype=dtype), uniform(rng, 4, 3, 2, dtype=dtype), uniform(rng, 4, 2, 2, dtype=dtype)
    Y = torch.randn(5, 4, 3, 3, generator=rng, dtype=torch.float64).to(dtype)
    mean = gp.condition(X, Y, noise_variance=0.1).predict(W).mean
    assert mean.shape == (5, 4, 2, 3)
    for s, b in ((0, 0), (4, 3)):
        alone = gp.condition(X[b], Y[s, b], noise_variance=0.1).predict(W[b]).mean
        condition = dense_condition(X[b].double(), Y[s, b].double(), 0.1, W[b].double())[2]
        assert_close(mean[s, b], alone, **rounding(dtype, condition=condition, scale=3.0))


def test_gradients_reach_inputs_outcomes_and_noise(rng):
    gp, X = make(rng), uniform(rng, 2, 2).requires_grad_(True)
    Y = torch.randn(2, 3, generator=rng, dtype=torch.float64).requires_grad_(True)
    noise = torch.full((3,), 0.2, dtype=torch.float64, requires_grad=True)

    def value(X, Y, noise):
        prediction = gp.condition(X, Y, noise_variance=noise).predict(X + 0.1)
        return prediction.mean.sum(), prediction.variance.sum()

    assert torch.autograd.gradcheck(value, [X, Y, noise])


def test_merging_and_unlearning(rng):
    gp, W = make(rng), uniform(rng, 4, 2)
    shards = [(uniform(rng, 5, 2), torch.randn(5, 3, generator=rng, dtype=torch.float64)) for _ in range(2)]
    a, b = (gp.absorb(X, Y, noise_variance=0.1, inducing="keep")[0] for X, Y in shards)
    both, _ = a.absorb(*shards[1], noise_variance=0.1, inducing="keep")
    limits = belief_rounding(both.sparse_gp, gp.sparse_gp, scale=3.0)
    assert_close(sg.merge([a, b]).predict(W).mean, both.predict(W).mean, **limits)
    back, _ = both.unlearn(*shards[1], noise_variance=0.1)
    assert_close(back.predict(W).mean, a.predict(W).mean, **limits)
    assert_close(
        gp.absorb(*shards[0], noise_variance=0.2, inducing="keep")[0].predict(W).mean,
        a.forget(0.5).predict(W).mean,
        **limits,
    )


def test_leaving_one_out_equals_absorbing_all_others(rng):
    gp, X = make(rng), uniform(rng, 4, 2)
    Y = torch.randn(4, 3, generator=rng, dtype=torch.float64)
    Y[1, 2] = NAN
    noise = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    whole, _ = gp.absorb(X, Y, noise_variance=noise, inducing="keep")
    limits = belief_rounding(whole.sparse_gp, gp.sparse_gp, scale=10.0)
    left_out = whole.leave_one_out(X, Y, noise_variance=noise)
    assert torch.equal(torch.isnan(left_out.mean), torch.isnan(Y))
    others = Y.clone()
    others[2, 1] = NAN
    without, _ = gp.absorb(X, others, noise_variance=noise, inducing="keep")
    expected = without.predict(X[2:3], output=1)
    assert_close(left_out.mean[2, 1], expected.mean[0, 0], **limits)
    assert_close(left_out.variance[2, 1], expected.variance[0, 0], **limits)
    density = torch.distributions.Normal(expected.mean, (expected.variance + 0.2).sqrt()).log_prob(Y[2, 1])
    assert_close(left_out.log_density[2, 1], density[0, 0], **limits)


def test_outputs_of_different_kinds_beside_each_other(rng):
    gp, X, W = make(rng), uniform(rng, 8, 2), uniform(rng, 4, 2)
    Y = torch.stack(
        [
            torch.randn(8, generator=rng, dtype=torch.float64),
            torch.poisson(torch.full((8,), 2.0, dtype=torch.float64), generator=rng),
            (uniform(rng, 8) > 0.5).double(),
        ],
        dim=-1,
    )
    Y[0, 1] = NAN
    mixed = gp.condition(X, Y, likelihood=[Gaussian(0.1), Poisson(), Bernoulli()])
    assert mixed.conditioned_gp.site_info.is_converged.all()
    # The Gaussian column is exact in either order, and sites see it: first alone, then the others given it.
    gaussian = Y.clone()
    gaussian[:, 1:] = NAN
    rest = Y.clone()
    rest[:, 0] = NAN
    chained = gp.condition(X, gaussian, noise_variance=0.1).condition(
        X, rest, likelihood=[Gaussian(0.1), Poisson(), Bernoulli()]
    )
    assert_close(mixed.predict(W).mean, chained.predict(W).mean, **approximation(1e-5, "iteration"))
    absorbed, _ = gp.absorb(X, Y, likelihood=[Gaussian(0.1), Poisson(), Bernoulli()], inducing="keep")
    assert torch.isfinite(absorbed.predict(W).mean).all()


def test_samples_have_the_moments_of_the_prediction(rng):
    gp, X = make(rng), uniform(rng, 2, 2)
    samples = gp.sample(X, 20_000, generator=rng)
    assert samples.shape == (20_000, 2, 3)
    covariance = samples.flatten(1).T.cov()
    largest = gp.predict(X).variance.max().item()
    assert_close(samples.mean(0), gp.predict(X).mean, **sampling((largest / 20_000) ** 0.5))
    assert_close(covariance, gp.predict(X).covariance, **sampling(largest * (2 / 20_000) ** 0.5))


def test_copies_pickles_and_files_predict_identically(rng, tmp_path):
    gp, X = make(rng), uniform(rng, 3, 2)
    gp, _ = gp.absorb(X, uniform(rng, 3, 3), noise_variance=0.1, inducing="keep")
    gp.save(tmp_path / "gp.sgp")
    for other in (copy.deepcopy(gp), pickle.loads(pickle.dumps(gp)), sg.load(tmp_path / "gp.sgp")):
        assert isinstance(other, sg.MultiOutputGP)
        assert torch.equal(other.predict(X).mean, gp.predict(X).mean)
        assert torch.equal(other.predict(X).variance, gp.predict(X).variance)


def test_samples_of_some_outputs_come_in_the_form_of_the_inputs(rng):
    gp, X = make(rng), uniform(rng, 4, 2)
    samples = gp.sample(X.numpy(), 5, output=[2, 0], generator=rng)
    assert isinstance(samples, np.ndarray)
    assert samples.shape == (5, 4, 2)


@pytest.mark.parametrize("is_list", [False, True])
def test_points_given_to_the_prior_are_those_it_could_have_started_from(rng, is_list):
    gp, X, W = make(rng), uniform(rng, 6, 2), uniform(rng, 4, 2)
    Y = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    points = [uniform(rng, 8, 2), uniform(rng, 4, 2)] if is_list else uniform(rng, 8, 2)
    moved, info = gp.absorb(X, Y, noise_variance=0.1, inducing=points)
    started = sg.MultiOutputGP.from_prior(kernels(), points, mixing=MIXING, mean=MEAN)
    started, _ = started.absorb(X, Y, noise_variance=0.1, inducing="keep")
    assert info.num_swapped == moved.sparse_gp.num_inducing == (12 if is_list else 16)
    # The two have jitters, 1e-8 of the mean variance of their points, that differ by less than that.
    limits = approximation(1e-8 * dense_condition(X, Y, 0.1, W)[2], "jitter", scale=3.0)
    assert_close(moved.predict(W).mean, started.predict(W).mean, **limits)
    assert_close(moved.predict(W).covariance, started.predict(W).covariance, **limits)


def test_absorb_takes_what_a_sparse_gp_takes(rng):
    Z, X, W, new = uniform(rng, 7, 2), uniform(rng, 5, 2), uniform(rng, 4, 2), uniform(rng, 6, 2)
    y = torch.randn(5, generator=rng, dtype=torch.float64)
    changed = ScaleKernel(MaternKernel(1.5, ard_num_dims=2)).double()
    changed.base_kernel.lengthscale = torch.tensor([[0.5, 0.8]])
    one = sg.MultiOutputGP.from_prior(kernels()[0], Z, mixing=[[1.0]])
    plain = sg.SparseGP.from_prior(kernels()[0], Z)
    one, _ = one.absorb(X, y.unsqueeze(-1), noise_variance=0.1)
    plain, _ = plain.absorb(X, y, noise_variance=0.1)
    constant = ConstantMean()
    constant.constant = 0.5
    ours, _ = one.absorb(X, y.unsqueeze(-1), noise_variance=0.1, inducing=new, kernels=changed, mean=[0.5])
    theirs, _ = plain.absorb(X, y, noise_variance=0.1, inducing=new, kernel=changed, mean=constant)
    assert_close(ours.predict(W).mean.squeeze(-1), theirs.predict(W).mean, **tolerance(torch.float64))
    assert_close(ours.predict(W).covariance, theirs.predict(W).covariance, **tolerance(torch.float64))


def test_a_prior_may_change_before_any_data(rng):
    gp, X, W = make(rng, points=[uniform(rng, 7, 2)]), uniform(rng, 5, 2), uniform(rng, 4, 2)
    Y = torch.randn(5, 3, generator=rng, dtype=torch.float64)
    changed, _ = gp.absorb(X, Y, noise_variance=0.1, inducing="keep", mixing=-2.0 * MIXING, mean=-MEAN)
    started = sg.MultiOutputGP.from_prior(
        kernels(), gp.sparse_gp.inducing_points[:7, :2], mixing=-2.0 * MIXING, mean=-MEAN
    )
    started, _ = started.absorb(X, Y, noise_variance=0.1, inducing="keep")
    assert_close(changed.predict(W).mean, started.predict(W).mean, **tolerance(torch.float64, scale=3.0))
    assert_close(changed.predict(W).covariance, started.predict(W).covariance, **tolerance(torch.float64, scale=10.0))
    with pytest.raises(ShapeError, match=r"mixing must keep its shape \(3, 2\)"):
        gp.absorb(X, Y, noise_variance=0.1, mixing=MIXING[:2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", [(3,), (2, 1)])
def test_a_batch_of_gps_equals_a_loop(rng, batch_shape, dtype, tmp_path):
    Z, X = uniform(rng, *batch_shape, 5, 2, dtype=dtype), uniform(rng, *batch_shape, 4, 2, dtype=dtype)
    Y = torch.randn(*batch_shape, 4, 3, generator=rng, dtype=torch.float64).to(dtype)
    Y[..., 1, 0] = NAN
    W = uniform(rng, 3, 2, dtype=dtype)
    gp = make(rng, dtype=dtype, points=[Z])
    assert gp.batch_shape == batch_shape
    absorbed, _ = gp.absorb(X, Y, noise_variance=0.1, inducing="keep")
    absorbed.save(tmp_path / "gp.sgp")
    assert torch.equal(sg.load(tmp_path / "gp.sgp").predict(W).mean, absorbed.predict(W).mean)
    conditioned = absorbed.condition(X, Y, noise_variance=0.2)
    for index in np.ndindex(*batch_shape):
        one, _ = make(rng, dtype=dtype, points=[Z[index]]).absorb(
            X[index], Y[index], noise_variance=0.1, inducing="keep"
        )
        condition = dense_condition(X[index].double(), Y[index].double(), 0.1, W.double())[2]
        # The jitter is relative to the variance of all members together.
        jitter = approximation(float(absorbed.sparse_gp.process.total_jitter.max()) * condition, "jitter", scale=3.0)
        limits = max(jitter, rounding(dtype, condition=condition, scale=3.0), key=lambda each: each["atol"])
        assert_close(absorbed.predict(W).mean[index], one.predict(W).mean, **limits)
        after = one.condition(X[index], Y[index], noise_variance=0.2)
        assert_close(conditioned.predict(W).mean[index], after.predict(W).mean, **limits)
        assert_close(conditioned.predict(W).covariance[index], after.predict(W).covariance, **limits)


def test_outputs_are_named_by_whole_numbers_of_any_library(rng):
    gp, X = make(rng), uniform(rng, 4, 2)
    mean = gp.predict(X).mean
    for one in (1, np.int64(1), torch.tensor(1), [1], np.array([1]), -2):
        assert torch.equal(gp.predict(X, output=one).mean, mean[:, 1:2])
    assert torch.equal(gp.predict(X, output=np.array([2, 0])).mean, mean[:, [2, 0]])
    for bad in (1.0, "1", [0.5], [], [3]):
        with pytest.raises(OptionError, match="output must be whole numbers from -3 to 2"):
            gp.predict(X, output=bad)


@pytest.mark.parametrize("shape", [(1, 3), (4, 3), (5, 2, 3)])
@pytest.mark.parametrize(
    "trust",
    [
        {"noise_variance": 0.1},
        {"noise_variance": [0.1, 0.2, 0.3]},
        {"likelihood": [Gaussian(0.1), "poisson", "bernoulli"]},
    ],
)
def test_rows_of_which_nothing_was_observed_change_nothing_even_alone(rng, shape, trust):
    gp, X, W = make(rng), uniform(rng, shape[-2], 2), uniform(rng, 3, 2)
    Y = torch.full(shape, NAN, dtype=torch.float64)
    expected = gp.predict(W)
    after = gp.condition(X, Y, **trust).predict(W)
    assert torch.equal(after.mean, expected.mean.expand(*shape[:-2], 3, 3))
    assert_close(after.variance, expected.variance.expand_as(after.variance), **rounding(X.dtype))
    if len(shape) > 2:
        return
    for inducing in ("keep", "pivoted"):
        absorbed, info = gp.absorb(X, Y, inducing=inducing, **trust)
        assert_close(absorbed.predict(W).mean, expected.mean, **rounding(X.dtype))
        assert info.num_swapped == 0
    if "noise_variance" in trust:
        unlearned, _ = gp.unlearn(X, Y, **trust)
        assert_close(unlearned.predict(W).mean, expected.mean, **rounding(X.dtype))
        assert gp.leave_one_out(X, Y, **trust).mean.isnan().all()


def bad_cases():
    X, Y = torch.rand(3, 2, dtype=torch.float64), torch.rand(3, 3, dtype=torch.float64)
    return {
        "wrong number of outputs": (X, Y[:, :2], {"noise_variance": 0.1}, ShapeError, "one column for each of the 3"),
        "infinite": (X, Y / 0.0, {"noise_variance": 0.1}, ValueRangeError, "but holds infinity"),
        "noise": (X, Y, {"noise_variance": torch.ones(2, dtype=X.dtype)}, ShapeError, "one variance for each of the 3"),
        "likelihoods": (X, Y, {"likelihood": [Gaussian(0.1)]}, OptionError, "one for each of the 3, but there are 1"),
        "no likelihood": (X, Y, {"likelihood": [1, 2, 3]}, ArgumentTypeError, "likelihood must be a name or one of"),
        "neither": (X, Y, {}, OptionError, "Neither noise_variance nor likelihood was given"),
        "inputs": (X[:, :1], Y, {"noise_variance": 0.1}, ShapeError, "X must have 2 columns"),
        "patterns": (
            X,
            torch.stack([Y, torch.where(Y > 2, Y, NAN)]),
            {"noise_variance": 0.1},
            UnsupportedError,
            "must be the same for all leading axes",
        ),
    }


@pytest.mark.parametrize("method", ["condition", "absorb"])
@pytest.mark.parametrize("case", bad_cases())
def test_bad_input_gets_a_sentence(rng, method, case):
    X, Y, options, error, sentence = bad_cases()[case]
    with pytest.raises(error, match=sentence) as caught:
        getattr(make(rng), method)(X, Y, **options)
    assert isinstance(caught.value, StreamGPError)


def test_bad_priors_get_a_sentence(rng):
    Z = uniform(rng, 4, 2)
    with pytest.raises(ShapeError, match="or one for each, but there are 2 kernels"):
        sg.MultiOutputGP.from_prior(kernels(), Z, mixing=torch.eye(3, dtype=torch.float64))
    with pytest.raises(ShapeError, match=r"mixing must have shape \(o, l\)"):
        sg.MultiOutputGP.from_prior(kernels(), Z, mixing=[1.0, 2.0])
    with pytest.raises(ShapeError, match="has 3 lengthscales"):
        sg.MultiOutputGP.from_prior(MaternKernel(ard_num_dims=3), Z, mixing=[[1.0]])
    with pytest.raises(OptionError, match="output must be whole numbers from -3 to 2"):
        make(rng).predict(Z, output=3)


def test_likelihoods_may_be_given_by_name(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    Y = torch.stack([torch.arange(6.0), X[:, 0], (X[:, 1] > 0.5).double()], dim=-1).double()
    gp = sg.MultiOutputGP.from_prior(kernels(), X, mixing=MIXING)
    named, _ = gp.absorb(X, Y, likelihood=["poisson", Gaussian(0.1), "bernoulli"])
    made, _ = gp.absorb(X, Y, likelihood=[Poisson(), Gaussian(0.1), Bernoulli()])
    assert torch.equal(named.predict(X).mean, made.predict(X).mean)


def test_conditioned_outputs_are_saved(rng, tmp_path):
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    gp = sg.MultiOutputGP.from_prior(kernels(), X, mixing=MIXING).condition(X, X[:, :1] * MEAN, noise_variance=0.1)
    gp.save(tmp_path / "gp.zip")
    assert torch.equal(sg.load(tmp_path / "gp.zip").predict(X).mean, gp.predict(X).mean)
