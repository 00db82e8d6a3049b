"""Fits of kernels with finitely many features, about whose weights the belief is."""

import pytest
import torch
from gpytorch.kernels import ConstantKernel, LinearKernel, PolynomialKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, UnsupportedError
from streamgp.testing.tolerances import approximation, rounding
from streamgp.training.arguments import Minibatches


def rows(rng, n=60):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    y = 1.0 + X[:, 0] - 2.0 * X[:, 1] + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)
    return X, y


def log_evidence(result, X, y):
    """The exact log marginal likelihood of a fitted GP, by a factor of the whole covariance."""
    with torch.no_grad():
        K = result.gp.kernel(X).to_dense() + result.likelihood.noise_variance * torch.eye(len(X), dtype=X.dtype)
        normal = torch.distributions.MultivariateNormal(result.gp.mean(X), K)
        return float(normal.log_prob(y)), float(torch.linalg.cond(K))


@pytest.mark.parametrize(
    "kernel", [LinearKernel() + ConstantKernel(), PolynomialKernel(2)], ids=["linear", "quadratic"]
)
def test_the_bound_is_the_exact_evidence(rng, kernel):
    X, y = rows(rng)
    result = sg.fit(X, y, kernel=kernel, inducing="features")
    expected, condition = log_evidence(result, X, y)
    assert_close(result.info.bound, expected, **rounding(X.dtype, condition=condition))
    assert result.info.num_inducing == result.gp.num_inducing
    assert result.gp.inducing_points.shape == (0, 2)
    assert result.info.trace_slack < 1e-9
    assert float((result.predict(X).mean - y).square().mean()) ** 0.5 < 0.12


def test_no_number_of_points_fits_better(rng):
    X, y = rows(rng)
    features = sg.fit(X, y, kernel=PolynomialKernel(2), inducing="features")
    points = sg.fit(X, y, kernel=PolynomialKernel(2), num_inducing=20)
    assert points.info.bound + points.info.log_prior <= features.info.bound + features.info.log_prior + 1e-2


def test_named_and_standardized_fits_go_without_points_too(rng):
    X, y = rows(rng)
    result = sg.fit(50.0 + 9.0 * X, 100.0 * y, kernel="spherical_linear", inducing="features", standardize=True)
    assert result.gp.num_inducing == 4
    assert float((result.predict(50.0 + 9.0 * X).mean - 100.0 * y).square().mean()) ** 0.5 < 15.0


def test_a_start_without_points_stays_without(rng):
    X, y = rows(rng)
    first = sg.fit(X, y, kernel=LinearKernel() + ConstantKernel(), inducing="features")
    again = sg.fit(X, y, start=first)
    assert again.gp.inducing_points.shape == (0, 2)
    assert again.info.bound >= first.info.bound - 1e-3


def test_the_fitted_gp_streams_on_exactly(rng):
    X, y = rows(rng)
    result = sg.fit(X, y, kernel=LinearKernel() + ConstantKernel(), inducing="features")
    noise = result.likelihood.noise_variance
    stream = sg.SparseGP.from_features(result.gp.kernel, X, mean=result.gp.mean)
    for i in range(0, 60, 7):
        stream, _ = stream.absorb(X[i : i + 7], y[i : i + 7], noise_variance=noise)
    condition = float(torch.linalg.cond(result.gp.whitened_covariance))
    limits = rounding(X.dtype, condition=condition, scale=float(result.gp.whitened_mean.abs().max()))
    assert_close(stream.whitened_mean, result.gp.whitened_mean, **limits)
    assert_close(stream.whitened_covariance, result.gp.whitened_covariance, **limits)


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [None, "poisson"])
def test_shards_fit_as_all_rows_do(rng, likelihood):
    X, y = rows(rng, 30)
    y = y if likelihood is None else torch.poisson(y.abs(), generator=rng)
    options = {"kernel": LinearKernel() + ConstantKernel(), "inducing": "features", "likelihood": likelihood}
    shards = [(X[:7], y[:7]), (X[7:20], y[7:20]), (X[20:], y[20:])]
    apart, whole = sg.fit(shards, map=map, **options), sg.fit([(X, y)], map=map, **options)
    assert_close(apart.info.bound, whole.info.bound, **approximation(1e-8, "iteration"))
    once = sg.fit(X, y, **options)
    assert abs(once.info.bound - whole.info.bound) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", [None, "bernoulli"])
def test_minibatches_reach_the_fit_at_once(rng, likelihood):
    X, y = rows(rng, 300)
    y = y if likelihood is None else (y > 0.5).double()
    options = {"kernel": LinearKernel() + ConstantKernel(), "inducing": "features", "likelihood": likelihood}
    parts = sg.fit(X, y, minibatches=Minibatches(batch_size=100, num_epochs=20), **options)
    once = sg.fit(X, y, **options)
    assert parts.gp.inducing_points.shape == (0, 2)
    assert_close(parts.predict(X).mean, once.predict(X).mean, **approximation(0.1, "iteration"))


def test_what_does_not_go_together_is_refused(rng):
    X, y = rows(rng)
    with pytest.raises(UnsupportedError, match="the kernel must have finitely many features"):
        sg.fit(X, y, inducing="features")
    with pytest.raises(OptionError, match="inducing must be one of 'pivoted', 'kmeans', 'distributed_kmeans'"):
        sg.fit(X, y, inducing="weights")
    belief = sg.fit(X, y, kernel=LinearKernel(), inducing="features").gp
    with pytest.raises(UnsupportedError, match="carried is a belief about the weights of features"):
        sg.fit(X, y, carried=belief)
