import itertools

import pytest
import torch
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES, assert_same_prediction
from tests.support.problems import random_observations, random_sparse_gp
from tests.support.reference import assert_predicts, exact_gp, predict_dense
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ValueRangeError
from streamgp.testing.tolerances import approximation, rounding


def dense_decay(S, m, factor):
    """The decayed site, with inverses, as it is defined."""
    eye = torch.eye(len(m), dtype=torch.float64)
    precision = eye + factor * (S.inverse() - eye)
    return precision.inverse(), precision.inverse() @ (factor * S.inverse() @ m)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("width", [0.9, 1.6])
@pytest.mark.parametrize("factor", [0.99, 0.5, 1e-3])
def test_forgetting_decays_the_site_as_the_dense_algebra_says(rng, batch_shape, dtype, width, factor):
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype, width=width)
    gp = problem.gp.forget(factor)
    assert torch.equal(gp.inducing_points, problem.inducing_points)
    for index in itertools.product(*map(range, batch_shape)):
        before = problem.gp.whitened_covariance[index].double(), problem.whitened_mean[index].double()
        S, m = dense_decay(*before, factor)
        limits = rounding(dtype, condition=torch.linalg.cond(before[0]).item())
        assert_close(gp.whitened_covariance[index].double(), S, **limits)
        assert_close(gp.whitened_mean[index].double(), m, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_forgetting_divides_the_noise_variance_of_all_past_observations(rng, batch_shape, dtype):
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)
    new = random_observations(rng, num_observations=9, batch_shape=batch_shape, dtype=dtype)
    precise, _ = prior.absorb(new.inputs, new.targets, noise_variance=new.noise_variance, inducing="keep")
    vague, _ = prior.absorb(new.inputs, new.targets, noise_variance=new.noise_variance / 0.3, inducing="keep")
    W = torch.rand(*batch_shape, 4, 2, generator=rng, dtype=torch.float64).to(dtype)
    assert_same_prediction(precise.forget(0.3), vague, W, like=predict_dense(precise, W, is_derived=True))


def test_with_inducing_points_at_all_inputs_it_equals_the_exact_gp_with_more_noise(rng):
    problem = random_sparse_gp(rng)
    new = random_observations(rng, num_observations=12)
    prior = sg.SparseGP.from_prior(problem.gp.kernel, new.inputs, mean=problem.gp.mean)
    gp, _ = prior.absorb(new.inputs, new.targets, noise_variance=new.noise_variance, inducing="keep")
    gp = gp.forget(0.2)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    noise = (new.noise_variance / 0.2).diag()
    expected = exact_gp(problem.gp.kernel, problem.gp.mean, new.inputs, new.targets, noise, W)
    # Beside rounding, the jitter of the inducing points' kernel matrix stands between the two, as noise at each point.
    added = 12 * gp.process.jitter / noise.diagonal().min().item()
    assert_predicts(gp.predict(W), expected, offset=added * new.targets.abs().max().item())


@pytest.mark.parametrize("dtype", DTYPES)
def test_forgetting_by_one_changes_no_bit(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    for one in (1.0, 1):
        assert torch.equal(gp.forget(one).whitened_mean, gp.whitened_mean)
        assert torch.equal(gp.forget(one).process.whitened_root, gp.process.whitened_root)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0.9, 1.6])
def test_forgetting_everything_leaves_the_prior(rng, dtype, width):
    gp = random_sparse_gp(rng, dtype=dtype, width=width).gp
    # What is left is the factor times the site, which is large where the belief is sure.
    site = gp.whitened_covariance.double().inverse()
    factor = 1e-10 / float(site.abs().max() * gp.whitened_mean.abs().max().clamp_min(1.0))
    relaxed = gp.forget(factor)
    limits = approximation(1e-10 + rounding(dtype)["atol"], "model")
    assert_close(relaxed.whitened_covariance, torch.eye(6, dtype=dtype), **limits)
    assert_close(relaxed.whitened_mean, torch.zeros(6, dtype=dtype), **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0.9, 1.6])
def test_forgetting_twice_is_forgetting_by_the_product(rng, dtype, width):
    gp = random_sparse_gp(rng, dtype=dtype, width=width).gp
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    like = predict_dense(gp, W, is_derived=True)
    assert_same_prediction(gp.forget(0.7).forget(0.4), gp.forget(0.7 * 0.4), W, like=like)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_belief_narrower_than_the_prior_never_narrows(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype, width=0.99).gp
    W = torch.rand(50, 2, generator=rng, dtype=torch.float64).to(dtype)
    variance = gp.predict(W).variance
    slack = predict_dense(gp, W, is_derived=True).limits(dtype).variance
    for factor in (0.999, 0.9, 0.5, 0.1, 0.01):
        relaxed = gp.forget(factor).predict(W).variance
        assert (relaxed >= variance - slack).all()
        variance = relaxed


def test_a_belief_without_spread_has_nothing_to_forget(rng):
    problem = random_sparse_gp(rng)
    delta = sg.SparseGP(problem.gp.process.with_belief(problem.whitened_mean, torch.zeros_like(problem.whitened_root)))
    relaxed = delta.forget(0.5)
    assert torch.equal(relaxed.whitened_mean, delta.whitened_mean)
    assert torch.equal(relaxed.whitened_covariance, torch.zeros(6, 6, dtype=torch.float64))


def test_a_stream_with_forgetting_weighs_observations_by_their_age(rng):
    problem = random_sparse_gp(rng)
    gp = sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)
    at_once, new = gp, random_observations(rng, num_observations=20)
    for i in range(20):
        row = new.part(slice(i, i + 1))
        gp, _ = gp.forget(0.8).absorb(row.inputs, row.targets, noise_variance=row.noise_variance, inducing="keep")
    aged = new.noise_variance / 0.8 ** torch.arange(19, -1, -1, dtype=torch.float64)
    at_once, _ = at_once.absorb(new.inputs, new.targets, noise_variance=aged, inducing="keep")
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    assert_same_prediction(gp, at_once, W, like=predict_dense(at_once, W, is_derived=True))


@pytest.mark.parametrize("factor", [0.0, -0.5, 1.5, float("nan"), True])
def test_a_factor_that_is_no_share_is_refused(rng, factor):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(ValueRangeError, match="factor must be a number above 0 and at most 1, but is"):
        gp.forget(factor)
