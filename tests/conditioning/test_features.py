"""Beliefs about the weights of features: exact Bayesian linear regression, by the laws that all sparse GPs obey."""

import itertools
import pickle

import numpy as np
import pytest
import torch
from gpytorch.kernels import ConstantKernel, LinearKernel, PolynomialKernel, RBFKernel, RFFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from hypothesis import given
from hypothesis import strategies as st
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES, ConditioningLaws, condition
from tests.support.problems import FeatureProblem, NoisyObservations, random_feature_gp, random_observations
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, UnsupportedError
from streamgp.gp.spherical_linear import SphericalLinearKernel
from streamgp.testing.tolerances import approximation, belief_rounding, rounding, sampling


class TestFeatureGP(ConditioningLaws):
    def num_held(self):
        return 0

    def problem(self, rng, **options):
        return random_feature_gp(rng, **options)

    def make(self, problem: FeatureProblem, held: NoisyObservations):
        return problem.gp


@pytest.mark.thorough
class TestConditionedFeatureGP(ConditioningLaws):
    def num_held(self):
        return 3

    def problem(self, rng, **options):
        return random_feature_gp(rng, **options)

    def make(self, problem: FeatureProblem, held: NoisyObservations):
        return condition(problem.gp, held)


def absorb(gp, observations, **options):
    X, y, noise = observations.inputs, observations.targets, observations.noise_variance
    return gp.absorb(X, y, noise_variance=noise, **options)[0]


def draw(rng, *, num_observations=8, num_dims=2, batch_shape=(), dtype=torch.float64):
    gp = random_feature_gp(rng, batch_shape=batch_shape, dtype=dtype, num_dims=num_dims).gp
    new = random_observations(
        rng, num_observations=num_observations, num_dims=num_dims, batch_shape=batch_shape, dtype=dtype
    )
    W = torch.rand(*batch_shape, 4, num_dims, generator=rng, dtype=torch.float64).to(dtype)
    return gp, new, W


def assert_same_belief(first, second, *on_the_way):
    every = (first, second, *on_the_way)
    limits = belief_rounding(*every, scale=max(1.0, *(float(gp.whitened_mean.abs().max()) for gp in every)))
    assert_close(first.whitened_mean, second.whitened_mean, **limits)
    assert_close(first.whitened_covariance, second.whitened_covariance, **limits)


def regression(gp, observations):
    """Bayesian linear regression by the textbook: precision and mean of the weights."""
    arrays = (observations.inputs, observations.targets, observations.noise_variance)
    X, y, noise = (each.detach().double().numpy() for each in arrays)
    linear, constant = gp.kernel.kernels
    scale = (linear.outputscale * linear.base_kernel.variance.reshape(-1)).detach().double().numpy()
    offset = float(constant.constant)
    Phi = np.column_stack([X * np.sqrt(scale), np.full(len(X), np.sqrt(offset))])
    S = gp.whitened_covariance.double().numpy()
    precision = np.linalg.inv(S) + (Phi.T / noise) @ Phi
    pull = np.linalg.solve(S, gp.whitened_mean.double().numpy()) + (Phi.T / noise) @ (y - float(gp.mean.constant))
    return np.linalg.solve(precision, pull), np.linalg.inv(precision)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 20])
def test_absorbing_equals_bayesian_linear_regression(rng, dtype, n):
    gp, new, _ = draw(rng, num_observations=n, dtype=dtype)
    after = absorb(gp, new)
    mean, covariance = regression(gp, new)
    limits = belief_rounding(gp, after, scale=max(1.0, float(np.abs(mean).max())))
    assert_close(after.whitened_mean.double(), torch.from_numpy(mean), **limits)
    assert_close(after.whitened_covariance.double(), torch.from_numpy(covariance), **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@given(seed=st.integers(0, 2**31), cuts=st.lists(st.integers(0, 8), max_size=4))
def test_a_stream_in_any_parts_equals_the_batch(batch_shape, dtype, seed, cuts):
    gp, new, _ = draw(torch.Generator().manual_seed(seed), batch_shape=batch_shape, dtype=dtype)
    stream = gp
    for start, end in itertools.pairwise([0, *sorted(cuts), 8]):
        stream = absorb(stream, new.part(slice(start, end)))
    assert_same_belief(stream, absorb(gp, new), gp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_single_rows_in_any_order_equal_the_batch(rng, batch_shape, dtype):
    gp, new, _ = draw(rng, batch_shape=batch_shape, dtype=dtype)
    stream = gp
    for i in torch.randperm(8, generator=rng).tolist():
        stream = absorb(stream, new.part(slice(i, i + 1)))
    assert_same_belief(stream, absorb(gp, new), gp)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_absorbing_predicts_as_conditioning_does(rng, batch_shape, dtype):
    gp, new, W = draw(rng, batch_shape=batch_shape, dtype=dtype)
    absorbed, conditioned = absorb(gp, new), condition(gp, new)
    limits = belief_rounding(gp, absorbed, scale=4.0)
    for name in ("mean", "variance", "covariance"):
        assert_close(getattr(absorbed.predict(W), name), getattr(conditioned.predict(W), name), **limits)


def test_nothing_is_lost_and_nothing_moves(rng):
    gp, new, _ = draw(rng)
    after, info = gp.absorb(new.inputs, new.targets, noise_variance=new.noise_variance)
    assert after.num_inducing == gp.num_inducing == 3
    assert after.inducing_points.shape == (0, 2)
    assert info.num_swapped == 0
    assert float(info.lost_trace) == 0.0
    assert float(info.jitter) == 0.0
    assert float(info.residual_trace) < rounding(torch.float64, scale=8 * 30.0)["atol"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_merging_equals_absorbing_the_union(rng, batch_shape, dtype):
    gp, new, _ = draw(rng, batch_shape=batch_shape, dtype=dtype)
    prior = sg.SparseGP.from_features(gp.kernel, new.inputs, mean=gp.mean)
    parts = [absorb(prior, new.part(part)) for part in (slice(0, 3), slice(3, 4), slice(4, 8))]
    assert_same_belief(sg.merge(parts), absorb(prior, new), *parts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_unlearning_what_was_absorbed_is_the_identity(rng, batch_shape, dtype):
    gp, new, _ = draw(rng, batch_shape=batch_shape, dtype=dtype)
    after = absorb(gp, new)
    back, _ = after.unlearn(new.inputs, new.targets, noise_variance=new.noise_variance)
    assert_same_belief(back, gp, after)


@pytest.mark.parametrize("dtype", DTYPES)
def test_leaving_one_out_equals_absorbing_the_others(rng, dtype):
    gp, new, _ = draw(rng, dtype=dtype)
    after = absorb(gp, new)
    found = after.leave_one_out(new.inputs, new.targets, noise_variance=new.noise_variance)
    for i in range(8):
        others = absorb(gp, new.part(torch.tensor([j for j in range(8) if j != i])))
        expected = others.predict(new.inputs[i : i + 1])
        limits = belief_rounding(gp, after, others, scale=4.0)
        assert_close(found.mean[i : i + 1], expected.mean, **limits)
        assert_close(found.variance[i : i + 1], expected.variance, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
def test_forgetting_divides_the_noise_variance_of_all_past_observations(rng, dtype):
    gp, new, _ = draw(rng, dtype=dtype)
    prior = sg.SparseGP.from_features(gp.kernel, new.inputs, mean=gp.mean)
    forgotten = absorb(prior, new).forget(0.25)
    expected = absorb(prior, NoisyObservations(new.inputs, new.targets, 4.0 * new.noise_variance))
    assert_same_belief(forgotten, expected, prior, absorb(prior, new))


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli"])
def test_sites_are_those_that_points_without_loss_find(rng, likelihood):
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    y = (X[:, 0] > 0.5).double()
    kernel = (LinearKernel() + ConstantKernel()).double()
    features = sg.SparseGP.from_features(kernel, X)
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    points = sg.SparseGP.from_prior(kernel, corners)
    after, info = features.absorb(X, y, likelihood=likelihood)
    expected, _ = points.absorb(X, y, likelihood=likelihood, inducing="keep")
    assert_close(after.predict(X).mean, expected.predict(X).mean, **approximation(1e-5, "jitter"))
    assert_close(after.predict(X).variance, expected.predict(X).variance, **approximation(1e-5, "jitter"))
    sites = info.site_info.sites
    back, _ = after.unlearn(X, sites.targets, noise_variance=sites.variance)
    assert_same_belief(back, features, after)


KERNELS = {
    "linear": LinearKernel,
    "polynomial": lambda: ScaleKernel(PolynomialKernel(2)),
    "spherical-linear": lambda: ScaleKernel(SphericalLinearKernel(2)),
    "Fourier": lambda: RFFKernel(5, num_dims=2),
    "sum and product": lambda: ScaleKernel(LinearKernel() * PolynomialKernel(2) + ConstantKernel()),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_of_finite_rank_equals_the_exact_gp(rng, name, dtype):
    X, W = (torch.rand(n, 2, generator=rng, dtype=torch.float64) for n in (9, 5))
    y = torch.randn(9, generator=rng, dtype=torch.float64)
    kernel = KERNELS[name]().double()
    gp = sg.SparseGP.from_features(kernel, X.to(dtype))
    for part in (slice(0, 4), slice(4, 9)):
        gp, _ = gp.absorb(X[part].to(dtype), y[part].to(dtype), noise_variance=0.1)
    with torch.no_grad():
        K = kernel(torch.cat([W, X])).to_dense()
    A = K[5:, 5:] + 0.1 * torch.eye(9, dtype=torch.float64)
    gain = torch.linalg.solve(A, K[5:, :5]).mT
    prediction = gp.predict(W.to(dtype))
    limits = belief_rounding(gp, scale=float(K.abs().max()))
    assert_close(prediction.mean.double(), gain @ y, **limits)
    assert_close(prediction.covariance.double(), K[:5, :5] - gain @ K[5:, :5], **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_files_and_pickles_predict_identically(rng, tmp_path, name, dtype):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64).to(dtype)
    gp, _ = sg.SparseGP.from_features(KERNELS[name](), X).absorb(X, X[:, 0], noise_variance=0.1)
    gp.save(tmp_path / "gp.zip")
    conditioned = gp.condition(X, X[:, 1], noise_variance=0.1)
    conditioned.save(tmp_path / "conditioned.zip")
    for twin in (sg.load(tmp_path / "gp.zip"), pickle.loads(pickle.dumps(gp))):
        assert torch.equal(twin.predict(X).mean, gp.predict(X).mean)
        assert torch.equal(twin.predict(X).covariance, gp.predict(X).covariance)
    assert torch.equal(sg.load(tmp_path / "conditioned.zip").predict(X).mean, conditioned.predict(X).mean)


@pytest.mark.parametrize("batch_shape", [(), (2,)])
def test_sampled_functions_are_linear_and_have_the_moments_of_the_belief(rng, batch_shape):
    gp, new, W = draw(rng, batch_shape=batch_shape)
    gp = absorb(gp, new)
    paths = gp.sample_paths(4000, generator=rng)
    values, prediction = paths(W), gp.predict(W)
    middle = paths(0.5 * (W[..., :1, :] + W[..., 1:2, :]))
    assert_close(middle, 0.5 * (values[..., :1] + values[..., 1:2]), **rounding(W.dtype, scale=4.0))
    error = float(prediction.variance.max() / 4000) ** 0.5
    assert_close(values.mean(0), prediction.mean, **sampling(error))
    centered = (values - prediction.mean).movedim(0, -1)
    spread = float(prediction.variance.max()) * (2.0 / 4000) ** 0.5
    assert_close(centered @ centered.mT / 4000, prediction.covariance, **sampling(spread))


def test_a_changed_variance_or_offset_is_carried_exactly(rng):
    _, new, _ = draw(rng)
    before, after = (ScaleKernel(PolynomialKernel(2)).double() for _ in range(2))
    after.outputscale, after.base_kernel.offset = 2.5, 0.3
    gp = absorb(sg.SparseGP.from_features(before, new.inputs), new)
    nothing = new.part(slice(0, 0))
    carried = absorb(gp, nothing, kernel=after)
    expected = absorb(sg.SparseGP.from_features(after, new.inputs), new)
    limits = belief_rounding(carried, expected, gp)
    assert_close(carried.predict(new.inputs).mean, expected.predict(new.inputs).mean, **limits)
    assert_close(carried.predict(new.inputs).variance, expected.predict(new.inputs).variance, **limits)


def test_a_changed_mean_that_features_can_make_is_carried_exactly(rng):
    gp, new, W = draw(rng)
    prior = sg.SparseGP.from_features(gp.kernel, W, mean=gp.mean)
    mean = ConstantMean().double().initialize(constant=7.0)
    carried = absorb(absorb(prior, new), new.part(slice(0, 0)), mean=mean)
    expected = absorb(sg.SparseGP.from_features(gp.kernel, W, mean=mean), new)
    assert_same_belief(carried, expected)


def test_functions_that_the_features_cannot_make_are_refused(rng):
    _, new, W = draw(rng)
    nothing = new.part(slice(0, 0))
    linear = absorb(sg.SparseGP.from_features(LinearKernel(), W), new)
    mean = ConstantMean().double().initialize(constant=7.0)
    with pytest.raises(UnsupportedError, match="that these features cannot make"):
        absorb(linear, nothing, mean=mean)
    sphere = SphericalLinearKernel(2).double()
    gp = absorb(sg.SparseGP.from_features(sphere, W), new)
    other = SphericalLinearKernel(2).double()
    other.lengthscale = 3.0 * torch.tensor([[1.0, 2.0]])
    with pytest.raises(UnsupportedError, match="as after a change of lengthscales"):
        absorb(gp, nothing, kernel=other)


def test_a_belief_about_weights_can_be_carried_to_points_and_exported(rng):
    gp, new, W = draw(rng)
    gp = absorb(gp, new)
    with pytest.raises(UnsupportedError, match="about the weights of features"):
        gp.to_gpytorch()
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    moved, _ = gp.absorb(new.inputs[:0], new.targets[:0], noise_variance=1.0, inducing=points)
    assert moved.inducing_points.shape == (3, 2)
    limits = belief_rounding(gp, moved, scale=4.0)
    assert_close(moved.predict(W).mean, gp.predict(W).mean, **limits)
    assert_close(moved.predict(W).covariance, gp.predict(W).covariance, **limits)
    model = moved.to_gpytorch()
    with torch.no_grad():
        assert_close(model(W).mean, gp.predict(W).mean, **approximation(1e-6, "jitter"))


def test_what_needs_points_is_refused_with_a_sentence(rng):
    gp, new, W = draw(rng)
    with pytest.raises(UnsupportedError, match="pseudo-data are observations at inducing points"):
        gp.pseudo_data()
    with pytest.raises(OptionError, match="num_inducing=5 was asked for, but the belief is about the weights of 3"):
        gp.absorb(new.inputs, new.targets, noise_variance=0.1, num_inducing=5)
    with pytest.raises(UnsupportedError, match="the kernel must have finitely many features"):
        sg.SparseGP.from_features(RBFKernel(), W)
    with pytest.raises(UnsupportedError, match="RFFKernel with num_dims"):
        sg.SparseGP.from_features(RFFKernel(5), W)
    with pytest.raises(ShapeError, match=r"X must have shape"):
        sg.SparseGP.from_features(LinearKernel(), W[0])
    points = sg.SparseGP.from_prior(gp.kernel, W, mean=gp.mean)
    prior = sg.SparseGP.from_features(gp.kernel, W, mean=gp.mean)
    with pytest.raises(OptionError, match="others about the weights of features"):
        sg.merge([points, prior])


def test_it_says_what_it_is(rng):
    gp, _, _ = draw(rng, num_dims=1)
    assert repr(gp) == "SparseGP(num_features=2, num_dims=1, batch_shape=(), dtype=float64)"
    assert "features" in gp._repr_html_()
    assert gp.plot(lower=0.0, upper=2.0).get_xlim()[1] > 1.9


def test_outputs_that_mix_linear_functions_equal_the_dense_regression(rng):
    X = torch.rand(7, 2, generator=rng, dtype=torch.float64)
    Y = torch.randn(7, 3, generator=rng, dtype=torch.float64)
    Y[2, 1] = Y[4, :2] = float("nan")
    mixing = torch.randn(3, 2, generator=rng, dtype=torch.float64)
    kernels = [LinearKernel().double(), PolynomialKernel(2).double()]
    gp = sg.MultiOutputGP.from_features(kernels, X, mixing=mixing)
    after, _ = gp.absorb(X[:3], Y[:3], noise_variance=0.2)
    after, _ = after.absorb(X[3:], Y[3:], noise_variance=0.2)
    with torch.no_grad():
        blocks = [kernel(X).to_dense() for kernel in kernels]
    K = sum(torch.kron(block, torch.outer(a, a)) for block, a in zip(blocks, mixing.mT, strict=True))
    seen = ~Y.isnan().reshape(-1)
    A = K[seen][:, seen] + 0.2 * torch.eye(int(seen.sum()), dtype=torch.float64)
    expected = K[:, seen] @ torch.linalg.solve(A, Y.reshape(-1)[seen])
    limits = belief_rounding(after.sparse_gp, scale=float(K.abs().max()))
    assert_close(after.predict(X).mean.reshape(-1), expected, **limits)
    covariance = K - K[:, seen] @ torch.linalg.solve(A, K[seen])
    assert_close(after.predict(X, covariance=True).covariance, covariance, **limits)
    back, _ = after.unlearn(X, Y, noise_variance=0.2)
    assert_same_belief(back.sparse_gp, gp.sparse_gp, after.sparse_gp)
