"""Exact conditioning: the laws for a fresh sparse GP and for one that was conditioned before."""

import pytest
import torch
from gpytorch.kernels import MaternKernel
from tests.support.conditioning_laws import ConditioningLaws, assert_same_prediction, condition
from tests.support.problems import NoisyObservations, SparseProblem, random_observations, random_sparse_gp
from tests.support.reference import (
    assert_predicts,
    assert_within,
    condition_dense,
    condition_pseudo_data,
    exact_gp,
    predict_dense,
)
from torch.testing import assert_close

import streamgp as sg
from streamgp.conditioning.conditioned_gp import predict_jointly
from streamgp.testing.tolerances import approximation, tolerance


class TestSparseGP(ConditioningLaws):
    def num_held(self):
        return 0

    def make(self, problem: SparseProblem, held: NoisyObservations):
        return problem.gp


class TestConditionedGP(ConditioningLaws):
    def num_held(self):
        return 3

    def make(self, problem: SparseProblem, held: NoisyObservations):
        return condition(problem.gp, held)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("noise", [1e-14, 1e-13, 1e-12, 1e-9])
def test_a_chain_below_jitter_weighs_its_observations_equally(rng, noise, dtype):
    """Two observations of one value: what noise cannot be told from rounding is the same for both."""
    problem = random_sparse_gp(rng, dtype=dtype)
    x = torch.rand(1, 2, generator=rng, dtype=torch.float64).to(dtype)
    zero, one = torch.zeros(1, dtype=dtype), torch.ones(1, dtype=dtype)
    chained = problem.gp.condition(x, zero, noise_variance=noise).condition(x, one, noise_variance=noise)
    # The least jitter is 1e-12, or 1e-5 in single precision; rounding beside it.
    limits = approximation(64 * torch.finfo(dtype).eps / (1e-12 if dtype == torch.float64 else 1e-5), "jitter")
    assert_close(chained.predict(x).mean, 0.5 * one, **limits)
    # What is observed elsewhere in between does not make the earlier ones more precise than later ones.
    elsewhere = chained.condition(x + 30.0, one, noise_variance=1.0)
    for held in (chained, elsewhere):
        again = held.condition(x, one, noise_variance=noise)
        assert_close(again.predict(x).mean, 2.0 / 3.0 * one, **limits)
    assert (elsewhere.jitter >= chained.jitter).all()


def test_the_scale_of_sums_is_their_variance_where_inputs_are_the_same(rng):
    gp = random_sparse_gp(rng).gp
    X = torch.full((12, 2), 50.0, dtype=torch.float64)
    weights = torch.rand(12, generator=rng, dtype=torch.float64)
    predictive = predict_jointly(gp.process, sg.evidence.total(X, [0] * 4 + [1] * 4 + [2] * 4, weights))
    assert_close(predictive.scale, predictive.covariance.diagonal(), **tolerance(X.dtype, scale=10.0))


def test_fantasies_that_need_jitter_are_chained_with_their_own_axes(rng):
    gp = random_sparse_gp(rng).gp
    x = torch.rand(1, 2, generator=rng, dtype=torch.float64)
    y = torch.arange(6, dtype=torch.float64).reshape(3, 2, 1)
    chained = gp.condition(x, y[0, 0], noise_variance=1e-14).condition(x, y, noise_variance=1e-14)
    assert_close(chained.predict(x).mean, 0.5 * y, **approximation(0.02, "jitter"))


def test_the_sparse_posterior_equals_its_dense_definition(rng):
    for width in (0.5, 1.0, 1.5):
        problem = random_sparse_gp(rng, width=width)
        W = torch.rand(7, 2, generator=rng, dtype=torch.float64)
        assert_predicts(problem.gp.predict(W), predict_dense(problem.gp, W))


def test_conditioning_equals_the_exact_gp_on_pseudo_data_and_new_data(rng):
    problem = random_sparse_gp(rng, width=0.7)
    new = random_observations(rng, num_observations=4)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    prediction = condition(problem.gp, new).predict(W)
    expected = condition_pseudo_data(problem.gp, new.inputs, new.targets, new.noise_variance.diag(), W)
    assert_predicts(prediction, expected)


def test_from_the_prior_conditioning_is_exact_gp_regression(rng):
    problem = random_sparse_gp(rng)
    gp = problem.gp
    prior = type(gp).from_prior(gp.kernel, problem.inducing_points, mean=gp.mean)
    new = random_observations(rng, num_observations=6)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    expected = exact_gp(gp.kernel, gp.mean, new.inputs, new.targets, new.noise_variance.diag(), W)
    prediction = condition(prior, new).predict(W)
    assert_predicts(prediction, expected)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_second_derivatives_equal_finite_differences(rng, nu):
    problem = random_sparse_gp(rng, base=lambda **options: MaternKernel(nu, **options))
    new = random_observations(rng, num_observations=2)

    def mean(X):
        return problem.gp.condition(X, new.targets, noise_variance=0.1).predict(X + 0.1).mean.sum()

    assert torch.autograd.gradgradcheck(mean, [new.inputs.clone().requires_grad_(True)])


HARD = {
    "duplicated inputs": {"duplicate": True},
    "noise 1e-8": {"noise": 1e-8},
    "no noise": {"noise": 0.0},
    "duplicated inputs without noise": {"noise": 0.0, "duplicate": True},
    "targets of scale 1e6": {"target_scale": 1e6},
    "lengthscale 1e-3": {"lengthscale": 1e-3},
    "lengthscale 1e3": {"lengthscale": 1e3},
    "belief wider than the prior": {"width": 1.3},
    "on inducing points": {"is_on_inducing": True},
    "p = 500": {"num_inducing": 500},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", HARD)
def test_hard_cases_stay_finite_and_close_to_the_dense_reference(rng, dtype, case):
    options = {"noise": 0.1, "target_scale": 1.0, "num_inducing": 8, "width": 0.9} | HARD[case]
    problem = random_sparse_gp(rng, dtype=dtype, num_inducing=options["num_inducing"], width=options["width"])
    if "lengthscale" in options:
        scaled = torch.full_like(problem.lengthscale, options["lengthscale"])
        problem = SparseProblem(**(vars(problem) | {"lengthscale": scaled}))
    gp = problem.gp
    new = random_observations(rng, num_observations=8, dtype=dtype)
    X, y = new.inputs, options["target_scale"] * new.targets
    if "is_on_inducing" in options:
        X = problem.inducing_points[:8].clone()
    if "duplicate" in options:
        X = X[:4].repeat(2, 1)
        y = y[:4].repeat(2)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    conditioned = gp.condition(X, y, noise_variance=options["noise"])
    prediction = conditioned.predict(W)
    assert torch.isfinite(prediction.mean).all()
    assert (prediction.variance >= 0).all()
    assert torch.isfinite(prediction.covariance).all()
    if dtype == torch.float64 and not (options["noise"] == 0.0 and "duplicate" in options):
        noise = (options["noise"] + conditioned.jitter) * torch.eye(8, dtype=dtype)
        assert_predicts(prediction, condition_dense(gp, X, y, noise, W))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fifty_conditionings_in_a_chain_equal_one(rng, dtype):
    problem = random_sparse_gp(rng, dtype=dtype)
    new = random_observations(rng, num_observations=50, dtype=dtype)
    gp = problem.gp
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    for i in range(50):
        gp = condition(gp, new.part(slice(i, i + 1)))
    assert gp.num_observations == 50
    like = condition_dense(problem.gp, new.inputs, new.targets, new.noise_variance.diag(), W)
    assert_same_prediction(gp, condition(problem.gp, new), W, like=like)


def test_batches_that_broadcast_give_the_product_of_their_axes(rng):
    problem = random_sparse_gp(rng, batch_shape=(3,))
    new = random_observations(rng, num_observations=2, batch_shape=(4, 1))
    W = torch.rand(2, 4, 3, 5, 2, generator=rng, dtype=torch.float64)
    y = torch.randn(2, 4, 1, 2, generator=rng, dtype=torch.float64)
    prediction = problem.gp.condition(new.inputs, y, noise_variance=0.1).predict(W, covariance=True)
    assert prediction.mean.shape == (2, 4, 3, 5)
    for s, i, j in ((0, 0, 0), (1, 3, 2)):
        noise = 0.1 * torch.eye(2, dtype=torch.float64)
        expected = condition_dense(problem.member((j,)).gp, new.inputs[i, 0], y[s, i, 0], noise, W[s, i, j])
        limits = expected.limits(torch.float64)
        assert_within((prediction.mean[s, i, j] - expected.mean).abs(), limits.mean, "mean")
        assert_within((prediction.covariance[s, i, j] - expected.covariance).abs(), limits.covariance, "covariance")


@pytest.mark.parametrize(
    ("dtype", "noise", "error"),
    [(torch.float64, 0.0, 1e-3), (torch.float64, 1e-17, 1e-3), (torch.float32, 0.0, 0.05), (torch.float32, 1e-8, 0.05)],
)
def test_contradictions_without_noise_are_averaged_and_the_jitter_is_reported(rng, dtype, noise, error):
    for _ in range(20):
        gp = random_sparse_gp(rng, dtype=dtype).gp
        x = torch.rand(1, 2, generator=rng, dtype=torch.float64).to(dtype)
        conditioned = gp.condition(x.repeat(2, 1), torch.tensor([0.0, 1.0], dtype=dtype), noise_variance=noise)
        assert conditioned.jitter > 0
        assert abs(float(conditioned.predict(x).mean) - 0.5) < error
        first = gp.condition(x, torch.zeros(1, dtype=dtype), noise_variance=noise)
        chained = first.condition(x, torch.ones(1, dtype=dtype), noise_variance=noise)
        assert -error <= float(chained.predict(x).mean) <= 1 + error


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_consistent_repetition_without_noise_changes_nothing(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    new = random_observations(rng, num_observations=2, dtype=dtype)
    once = gp.condition(new.inputs, new.targets, noise_variance=0.0)
    twice = gp.condition(new.inputs.repeat(2, 1), new.targets.repeat(2), noise_variance=0.0)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    tolerances = {"rtol": 1e-2, "atol": 1e-2} if dtype == torch.float32 else {"rtol": 1e-3, "atol": 1e-3}
    assert_close(twice.predict(W).mean, once.predict(W).mean, **tolerances)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_variances_are_never_negative_in_either_form(rng, dtype):
    for _ in range(30):
        gp = random_sparse_gp(rng, dtype=dtype).gp
        X = torch.rand(6, 2, generator=rng, dtype=torch.float64).to(dtype)
        known = gp.condition(X, X[:, 0], noise_variance=1e-10)
        assert (known.predict(X).covariance.diagonal() >= 0).all()
        assert (known.predict(X).variance >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_known_exactly_can_be_sampled(rng, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.rand(4, 2, generator=rng, dtype=torch.float64).to(dtype)
    known = gp.condition(X, X[:, 0], noise_variance=0.0)
    samples = known.sample(X, 5, generator=rng)
    assert_close(samples, X[:, 0].expand(5, 4), **approximation(0.02 if dtype == torch.float32 else 1e-4, "jitter"))


@pytest.mark.parametrize(("dtype", "far"), [(torch.float32, 1e20), (torch.float64, 1e300)])
def test_far_inputs_are_predicted_by_the_prior(rng, dtype, far):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = torch.tensor([[0.2, 0.3], [far, far]], dtype=dtype)
    conditioned = gp.condition(X, torch.zeros(2, dtype=dtype), noise_variance=0.1)
    for each in (gp, gp.condition(X[:1], torch.zeros(1, dtype=dtype), noise_variance=0.1)):
        prediction = each.predict(X)
        assert_close(prediction.mean[1], gp.mean.constant)
        assert_close(prediction.variance[1], gp.kernel.outputscale)
    assert torch.isfinite(conditioned.predict(X).mean).all()
