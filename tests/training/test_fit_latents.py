"""Fits of observations that look at several latent functions."""

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from tests.support.conditioning_laws import DTYPES
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ArgumentTypeError, ShapeError, UnsupportedError
from streamgp.likelihoods import HeteroskedasticGaussian, Softmax
from streamgp.testing.tolerances import judgement, tolerance
from streamgp.training import Minibatches


def noisy_waves(rng, n=250, *, scale=1.0, shift=0.0):
    X = torch.rand(n, 1, generator=rng, dtype=torch.float64)
    f, deviation = (6 * X[:, 0]).sin(), 0.05 + 0.6 * X[:, 0]
    y = f + deviation * torch.randn(n, generator=rng, dtype=torch.float64)
    return X, shift + scale * y, shift + scale * f, scale * deviation


def three_classes(rng, n=120):
    X = torch.rand(n, 2, generator=rng, dtype=torch.float64)
    scores = torch.stack([6 * X[:, 0] - 3, 6 * X[:, 1] - 3, torch.zeros(n, dtype=torch.float64)])
    return X, Softmax(3).sample(scores, generator=rng), scores.softmax(0)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (30.0, 500.0)])
def test_a_function_and_its_changing_noise_are_learned_in_any_units(rng, scale, shift):
    X, y, f, deviation = noisy_waves(rng, scale=scale, shift=shift)
    result = sg.fit(X, y, likelihood="heteroskedastic", num_inducing=8)
    function, log_variance = result.predict(X).mean
    assert_close(function, f, **judgement(absolute=0.35 * scale))
    assert (0.5 * log_variance - deviation.log()).abs().mean() < 0.15
    assert result.info.is_converged
    constant = sg.fit(X, y, num_inducing=8)
    T, t, _, _ = noisy_waves(rng, 500, scale=scale, shift=shift)
    gain = result.log_predictive_density(T, t) - constant.log_predictive_density(T, t)
    assert gain.shape == (500,)
    assert gain.mean() > 0.15


@pytest.mark.slow
def test_probabilities_of_classes_are_learned(rng):
    X, y, p = three_classes(rng, 300)
    result = sg.fit(X, y, likelihood=Softmax(3), num_inducing=6)
    prediction = result.predict(X)
    found = result.likelihood.predictive_probabilities(prediction.mean, prediction.variance)
    assert (found - p).abs().mean() < 0.05
    assert result.log_predictive_density(X, y).shape == (300,)
    scaled = sg.fit(100 * X, y, likelihood=Softmax(3), num_inducing=6, standardize="inputs")
    density = scaled.log_predictive_density(100 * X, y)
    assert_close(density.mean(), result.log_predictive_density(X, y).mean(), **judgement(absolute=0.02))


def test_constants_of_classes_that_never_occur_stay_finite(rng):
    X, y, _ = three_classes(rng, 60)
    result = sg.fit(X, torch.where(y == 2, 0.0, y), likelihood=Softmax(3), num_inducing=8)
    assert result.gp.mean.constant.abs().max() < 20.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_belief_is_that_of_absorbing_all_observations(rng, dtype):
    X, y, _, _ = (each.to(dtype) for each in noisy_waves(rng, 60))
    result = sg.fit(X, y, likelihood=HeteroskedasticGaussian(), num_inducing=10)
    gp = result.gp
    assert gp.inducing_points.dtype == dtype
    before = sg.SparseGP.from_prior(gp.kernel, gp.inducing_points, mean=gp.mean)
    after, _ = before.absorb(X, y, likelihood=result.likelihood, inducing="keep")
    assert_close(
        gp.predict(X).mean, after.predict(X).mean, **judgement(absolute=1e-3 if dtype == torch.float64 else 0.1)
    )


def test_a_fit_goes_on_from_an_earlier_one_and_from_a_file(rng, tmp_path):
    X, y, _, _ = noisy_waves(rng, 50)
    first = sg.fit(X, y, likelihood="heteroskedastic", num_inducing=5)
    again = sg.fit(X, y, start=first, num_inducing=6)
    assert again.info.num_inducing == 6
    assert again.info.bound + again.info.log_prior >= first.info.bound + first.info.log_prior - 0.1
    first.save(tmp_path / "fit.sgp")
    loaded = sg.load(tmp_path / "fit.sgp")
    assert_close(loaded.predict(X).mean, first.predict(X).mean, **tolerance(torch.float64))


def test_arrays_give_arrays(rng):
    X, y, _, _ = (each.numpy() for each in noisy_waves(rng, 40))
    result = sg.fit(X, y, likelihood="heteroskedastic", num_inducing=8)
    assert isinstance(result.predict(X).mean, np.ndarray)
    assert result.predict(X).mean.shape == (2, 40)
    assert isinstance(result.log_predictive_density(X, y), np.ndarray)


@pytest.mark.parametrize("inducing", ["kmeans", "pivoted"])
def test_points_are_chosen_among_the_inputs(rng, inducing):
    X, y, _ = three_classes(rng, 40)
    options = {"num_inducing": 8, "inducing": inducing, "learn_inducing": False, "max_iterations": 5}
    result = sg.fit(X, y, likelihood=Softmax(3), **options)
    assert result.gp.inducing_points.shape == (3, 8, 2)
    assert bool((result.gp.inducing_points == result.gp.inducing_points[0]).all())


def test_kernels_must_have_an_axis_for_the_latent_functions(rng):
    X, y, _ = three_classes(rng, 30)
    with pytest.raises(UnsupportedError, match=r"looks at 3 latent functions.*batch_shape=torch.Size\(\[3\]\)"):
        sg.fit(X, y, likelihood=Softmax(3), kernel=ScaleKernel(RBFKernel()))
    with pytest.raises(UnsupportedError, match=r"kernel='rbf'.*looks at 3"):
        sg.fit(X, y, likelihood=Softmax(3), kernel="rbf")
    shape = torch.Size([3])
    kernel = ScaleKernel(RBFKernel(batch_shape=shape), batch_shape=shape)
    assert sg.fit(
        X, y, likelihood=Softmax(3), kernel=kernel, num_inducing=6, max_iterations=3
    ).gp.process.batch_shape == (3,)


@pytest.mark.parametrize(
    "options", [{"minibatches": Minibatches()}, {"objective": "pll"}, {"beta": 0.5}, {"map": map}], ids=str
)
def test_what_needs_one_latent_function_is_refused(rng, options):
    X, y, _ = three_classes(rng, 30)
    data = ([(X, y)], None) if "map" in options else (X, y)
    with pytest.raises(UnsupportedError):
        sg.fit(*data, likelihood=Softmax(3), num_inducing=5, **options)


def test_models_of_one_latent_function_for_each_output_refuse_several(rng):
    X, y, _ = three_classes(rng, 30)
    with pytest.raises(UnsupportedError, match="looks at 3 latent functions"):
        sg.OnlineGP.fit(X, y.unsqueeze(-1), likelihood=Softmax(3))
    with pytest.raises(UnsupportedError, match="one latent function"):
        sg.fit(X, y.unsqueeze(-1), outputs="lmc", likelihood=Softmax(3))
    with pytest.raises(ArgumentTypeError, match="one latent function"):
        sg.StreamingGPRegressor(likelihood=HeteroskedasticGaussian()).fit(X.numpy(), y.numpy())


def test_functions_with_points_of_their_own_are_no_start_but_their_kernel_is(rng):
    X, y, _ = three_classes(rng)
    options = {"num_inducing": 8, "max_iterations": 3}
    absorbed, _ = sg.fit(X[:80], y[:80], likelihood=Softmax(3), **options).absorb(X[80:], y[80:])
    with pytest.raises(ShapeError, match=r"points of their own.*pass kernel=result.gp.kernel and mean=result.gp.mean"):
        sg.fit(X, y, start=absorbed, **options)
    start = {"kernel": absorbed.gp.kernel, "mean": absorbed.gp.mean}
    assert sg.fit(X, y, likelihood=absorbed.likelihood, **start, **options).gp.process.batch_shape == (3,)


def test_fantasies_of_several_functions_get_the_axis_that_the_error_names(rng):
    X, y, _ = three_classes(rng, 40)
    result = sg.fit(X, y, likelihood=Softmax(3), num_inducing=8, max_iterations=3)
    fantasies = y[:5].expand(4, 5)
    with pytest.raises(ShapeError, match=r"add an axis for the model's behind them with y.unsqueeze\(-2\)"):
        result.condition(X[:5], fantasies)
    assert result.condition(X[:5], fantasies.unsqueeze(-2)).predict(X).mean.shape == (4, 3, 40)
    inputs = X[:5].expand(4, 5, 2)
    with pytest.raises(ShapeError, match=r"X.unsqueeze\(-3\)"):
        result.condition(inputs, fantasies)
    assert result.condition(inputs.unsqueeze(-3), fantasies.unsqueeze(-2)).predict(X).mean.shape == (4, 3, 40)
