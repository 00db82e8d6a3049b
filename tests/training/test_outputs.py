"""Fits of several outputs: the bound against dense algebra, and what they learn."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli, Gaussian, Poisson
from streamgp.testing.tolerances import approximation, evidence_jitter, prediction_jitter, tolerance, within
from streamgp.training import Minibatches
from streamgp.training.output_model import OutputModel
from streamgp.training.outputs import OutputUnits, _problem, _prototype, fill_gaps, read_likelihoods

NAN = float("nan")
NEAR = tolerance(torch.float64)


def data(rng, n=30):
    X = torch.linspace(0.0, 4.0, n, dtype=torch.float64).unsqueeze(-1)
    common = (2.0 * X.squeeze(-1)).sin()
    Y = torch.stack([common, 3.0 - 2.0 * common, 0.5 * common], dim=-1)
    return X, Y + 0.05 * torch.randn(n, 3, generator=rng, dtype=torch.float64)


def test_the_bound_is_the_log_marginal_likelihood_where_all_inputs_are_inducing_points(rng):
    X, Y = data(rng, n=12)
    Y[3, 1] = NAN
    result = sg.fit(X, Y, outputs="lmc", rank=2, num_inducing=12, max_iterations=15)
    gp = result.gp
    y = Y.reshape(-1).numpy()
    seen = ~np.isnan(y)
    parts = [kernel(X).to_dense().detach().numpy() for kernel in gp.sparse_gp.kernel.kernels]
    a = gp.mixing.numpy()
    K = sum(np.einsum("o,p,ij->iojp", a[:, j], a[:, j], part) for j, part in enumerate(parts)).reshape(36, 36)
    K = K + np.diag(np.tile(result.noise_variance.numpy(), 12))
    residual = (y - np.tile(gp.sparse_gp.mean.constants.numpy(), 12))[seen]
    K = K[np.ix_(seen, seen)]
    expected = -0.5 * (
        residual @ np.linalg.solve(K, residual) + np.linalg.slogdet(K)[1] + seen.sum() * math.log(2 * math.pi)
    )
    # A latent function's jitter, as the outputs see it.
    jitter = gp.sparse_gp.process.jitter * float((a**2).sum())
    near = evidence_jitter(torch.from_numpy(K), torch.from_numpy(residual), jitter)
    assert result.info.bound == pytest.approx(expected, **within(near))
    prediction = gp.condition(X[:0], Y[:0], noise_variance=0.1).predict(X).mean.reshape(-1).numpy()
    A = K @ np.eye(len(K)) - np.diag(np.tile(result.noise_variance.numpy(), 12)[seen])
    exact = np.tile(gp.sparse_gp.mean.constants.numpy(), 12)[seen] + A @ np.linalg.solve(K, residual)
    near = prediction_jitter(torch.from_numpy(K), torch.from_numpy(residual), jitter)
    np.testing.assert_allclose(prediction[seen], exact, **near)


@pytest.mark.slow
@pytest.mark.parametrize("outputs", ["icm", "lmc"])
def test_correlated_outputs_fill_each_others_gaps(rng, outputs):
    X, Y = data(rng)
    gap = slice(10, 20)
    training = Y.clone()
    training[gap, 1] = NAN
    together = sg.fit(X, training, outputs=outputs, rank=1, num_inducing=20, max_iterations=60)
    apart = sg.fit(X, training, outputs="independent", num_inducing=20, max_iterations=60)
    errors = [float((result.gp.predict(X).mean - Y)[gap, 1].square().mean().sqrt()) for result in (together, apart)]
    assert errors[0] < 0.15 < errors[1]
    assert together.info.bound > apart.info.bound
    noise = together.noise_variance.sqrt()
    assert (noise > 0.02).all()
    assert (noise < 0.15).all()


def test_single_precision_and_files(rng, tmp_path):
    X, Y = data(rng, n=8)
    result = sg.fit(X.float(), Y.float(), outputs="icm", rank=1, kernel=RBFKernel(), num_inducing=5, max_iterations=3)
    mean = result.predict(X.float()).mean
    assert mean.dtype == torch.float32
    arrays = sg.fit(X.float().numpy(), Y.float().numpy(), outputs="icm", rank=1, num_inducing=5, max_iterations=1)
    assert arrays.predict(X.float().numpy(), output=0).mean.dtype == np.float32
    result.save(tmp_path / "fit.sgp")
    assert torch.equal(sg.load(tmp_path / "fit.sgp").gp.predict(X.float()).mean, mean)
    again, _ = result.gp.absorb(X.float(), Y.float(), likelihood=result.likelihood)
    assert torch.isfinite(again.predict(X.float()).mean).all()


def mixed(rng, n=30):
    """A yield, a count and a pass or fail that move together."""
    X = torch.linspace(0.0, 4.0, n, dtype=torch.float64).unsqueeze(-1)
    common = (2.0 * X.squeeze(-1)).sin()
    noise = 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)
    count = torch.poisson((1.0 + common).exp(), generator=rng)
    return X, common, torch.stack([10.0 + 5.0 * common + noise, count, (common > 0).double()], dim=-1)


LIKELIHOODS = [None, "poisson", Bernoulli()]


def test_at_optimal_sites_the_bound_of_gaussian_outcomes_is_the_collapsed_one(rng):
    X, Y = data(rng, n=10)
    given = read_likelihoods(None, Y)
    units, prototype = OutputUnits.of(Y, given), _prototype(None, X)
    problem = _problem(X, units.scaled(Y), prototype, 6)
    likelihoods = units.scaled_likelihoods(given)
    model = OutputModel(prototype, problem, outputs="lmc", num_latents=5, likelihoods=likelihoods)
    x = model.start(units.standard(Y), units.mean).requires_grad_(True)
    values = [model.bound(x), model.bound(x, model.sites(x, tolerance=1e-9))]
    gradients = [torch.autograd.grad(value, x)[0] for value in values]
    assert_close(values[1], values[0], **approximation(1e-9, "iteration"))
    near = approximation(1e-9, "iteration", scale=float(gradients[0].abs().max()))
    assert_close(gradients[1], gradients[0], **near)


def test_the_prior_is_that_of_lengthscales_weights_and_noise(rng):
    X, Y = data(rng, n=8)
    result = sg.fit(X, Y, outputs="icm", rank=1, num_inducing=4, max_iterations=2)
    scale = Y.std(0, correction=0)
    (kernel,) = result.gp.sparse_gp.kernel.kernels
    parts = [
        (kernel.lengthscale.detach() / X.std(0, correction=0)).log(),
        result.gp.mixing.squeeze(-1) / scale,
        (result.noise_variance / scale.square()).log(),
    ]
    expected = sum(
        torch.distributions.Normal(mean, deviation).log_prob(part).sum()
        for part, (mean, deviation) in zip(parts, [(0.5, 1.5), (0.0, 1.0), (-4.0, 1.0)], strict=True)
    )
    assert result.info.log_prior == pytest.approx(float(expected), **within(approximation(1e-8, "model")))


def test_a_fit_is_conditioned_with_its_likelihoods(rng):
    X, Y = data(rng)
    result = sg.fit(X[:20], Y[:20], outputs="icm", rank=1, num_inducing=8, max_iterations=5)
    noise = result.noise_variance
    by_hand = result.gp.condition(X[20:], Y[20:], noise_variance=noise)
    assert_close(result.condition(X[20:], Y[20:]).predict(X).mean, by_hand.predict(X).mean, **NEAR)
    doubled = result.condition(X[20:], Y[20:], noise_variance=2.0 * noise).predict(X)
    assert (doubled.variance > by_hand.predict(X).variance - 1e-12).all()
    after, _ = result.absorb(X[20:], Y[20:])
    absorbed, _ = result.gp.absorb(X[20:], Y[20:], noise_variance=noise)
    assert_close(after.predict(X).mean, absorbed.predict(X).mean, **NEAR)
    assert after.info == result.info


def test_a_fit_is_sampled_as_its_gp(rng):
    X = torch.rand(30, 1, generator=rng, dtype=torch.float64)
    result = sg.fit(X, torch.cat([X, -X], -1), outputs="icm", num_inducing=5, max_iterations=2)
    draw = {"num_samples": 3, "output": [1, 0]}
    samples = [each.sample(X, generator=torch.Generator().manual_seed(0), **draw) for each in (result, result.gp)]
    assert samples[0].shape == (3, 30, 2)
    assert torch.equal(*samples)


def test_outputs_that_are_never_observed_together_are_found_to_be_correlated(rng):
    X, Y = data(rng)
    assert torch.equal(
        fill_gaps(X[:4], torch.tensor([[1.0], [NAN], [NAN], [4.0]])), torch.tensor([[1.0], [1.0], [4.0], [4.0]])
    )
    alternating = Y[:, :2].clone()
    alternating[::2, 0] = NAN
    alternating[1::2, 1] = NAN
    result = sg.fit(X, alternating, outputs="icm", rank=2, num_inducing=15, max_iterations=30)
    covariance = result.gp.mixing @ result.gp.mixing.mT
    assert covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]).sqrt() < -0.9


def test_outputs_of_different_kinds_are_fitted_together(rng):
    X, common, Y = mixed(rng)
    Y[10:20, 2] = NAN
    together = sg.fit(X, Y, outputs="icm", rank=1, likelihood=LIKELIHOODS, num_inducing=8, max_iterations=20)
    apart = sg.fit(X, Y, outputs="independent", likelihood=LIKELIHOODS, num_inducing=8, max_iterations=20)
    assert together.info.bound > apart.info.bound
    assert [type(each).__name__ for each in together.likelihoods] == ["Gaussian", "Poisson", "Bernoulli"]
    prediction = together.gp.predict(X)
    assert (prediction.mean[:, 0] - 10.0 - 5.0 * common).abs().max() < 1.0
    assert ((prediction.mean[:, 2] > 0) == (common > 0)).double().mean() > 0.85
    conditioned = together.gp.condition(X[:1], Y[:1], likelihood=together.likelihood)
    assert torch.isfinite(conditioned.predict(X).mean).all()
    with pytest.raises(UnsupportedError, match="Output 1 has a Poisson likelihood, which has no noise variance"):
        _ = together.noise_variance


BAD = {
    "outputs": ({"outputs": "all"}, OptionError, "outputs must be one of 'icm', 'lmc', 'independent'"),
    "rank": ({"outputs": "independent", "rank": 1}, OptionError, "one latent function each, 3; leave out rank"),
    "kernel": (
        {"outputs": "lmc", "kernel": LinearKernel()},
        ArgumentTypeError,
        "must be an RBFKernel, MaternKernel or RQ",
    ),
    "ard": ({"outputs": "lmc", "kernel": MaternKernel(ard_num_dims=3)}, ShapeError, "has 3 lengthscales"),
    "likelihood": (
        {"outputs": "lmc", "likelihood": [Poisson()]},
        OptionError,
        "one for each of the 3, but there are 1",
    ),
    "support": ({"outputs": "lmc", "likelihood": "poisson"}, ValueRangeError, "counts"),
    "start": ({"outputs": "lmc", "minibatches": Minibatches()}, UnsupportedError, "in one piece"),
    "rows": ({"outputs": "icm", "likelihood": Gaussian(torch.ones(8))}, UnsupportedError, "output 0 has a Gaussian"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options_get_a_sentence(rng, case):
    options, error, sentence = BAD[case]
    with pytest.raises(error, match=sentence):
        sg.fit(*data(rng, n=8), **options)


def test_bad_data_gets_a_sentence(rng):
    X, Y = data(rng, n=8)
    with pytest.raises(ShapeError, match=r"X must have shape \(n, d\) and Y \(n, o\)"):
        sg.fit(X, Y[:, 0], outputs="lmc")
    with pytest.raises(ValueRangeError, match="output 1 was observed 0 times"):
        sg.fit(X, torch.where(torch.tensor([True, False, True]), Y, NAN), outputs="lmc")


@pytest.mark.parametrize(
    "option",
    [{"num_starts": 2}, {"objective": "pll"}, {"priors": "paper"}, {"map": map}, {"inducing": "features"}],
)
def test_options_that_would_not_count_are_refused(rng, option):
    X, Y = data(rng, n=8)
    with pytest.raises(UnsupportedError, match="Several outputs are fitted without"):
        sg.fit(X, Y, outputs="icm", **option)


def test_a_fit_of_outputs_says_what_it_is(rng):
    X, Y = data(rng, n=12)
    result = sg.fit(X, Y, outputs="icm", rank=1, num_inducing=6, max_iterations=5)
    assert repr(result).startswith(
        f"MultiOutputFit(3 outputs, {result.info.num_inducing} inducing points, Gaussian, bound "
    )
    shown = result._repr_html_()
    assert "<svg" in shown
    assert "stopped" in shown
