"""Results of fits are conditioned in the user's units, as dense algebra does it there."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import regression_condition, rounding, sampling, tolerance
from streamgp.training import FittedGP

DENSE = tolerance(torch.float64)


@pytest.fixture
def data(rng):
    X = 40.0 + 300.0 * torch.rand(60, 2, generator=rng, dtype=torch.float64)
    noise = torch.randn(60, generator=rng, dtype=torch.float64)
    return X, 900.0 + 50.0 * torch.sin(X[:, 0] / 60.0) + 0.2 * X[:, 1] + 5.0 * noise


@pytest.fixture
def result(data):
    X, y = data
    return sg.fit(X[:40], y[:40], num_inducing=12, standardize=True, max_iterations=30)


def _dense(result, X, y, at, noise):
    """Gaussian conditioning of what the result says of both sets of inputs, in the user's units."""
    joint = result.predict(torch.cat([X, at]), covariance=True)
    n = len(X)
    observed = joint.covariance[:n, :n] + torch.diag(torch.as_tensor(noise, dtype=torch.float64).expand(n))
    gain = torch.linalg.solve(observed, joint.covariance[:n, n:]).mT
    return joint.mean[n:] + gain @ (y - joint.mean[:n]), joint.covariance[n:, n:] - gain @ joint.covariance[:n, n:]


def _units(result):
    return float(result.scaling.target_scale) ** 2


@pytest.mark.parametrize("given", ["nothing", "noise", "noises", "likelihood"])
def test_conditioning_is_that_of_the_users_units(result, data, given):
    (X, y), at = data, data[0][:5] + 3.0
    noise = torch.linspace(4.0, 40.0, 20, dtype=torch.float64) if given == "noises" else torch.tensor(16.0).double()
    passed = {
        "nothing": {},
        "noise": {"noise_variance": 16.0},
        "noises": {"noise_variance": noise},
        "likelihood": {"likelihood": sg.likelihoods.Gaussian(16.0)},
    }[given]
    if given == "nothing":
        noise = result.likelihood.gaussian_noise_variance * _units(result)
    mean, covariance = _dense(result, X[40:], y[40:], at, noise)
    after = result.condition(X[40:], y[40:], **passed)
    assert_close(after.predict(at).mean, mean, **DENSE)
    near = tolerance(torch.float64, scale=_units(result))
    assert_close(after.predict(at, covariance=True).covariance, covariance, **near)
    assert_close(after.predict(at).variance, covariance.diagonal(), **near)


def test_conditioning_in_single_precision_is_that_of_double(data):
    X, y = (each.float() for each in data)
    result = sg.fit(X[:40], y[:40], num_inducing=12, standardize=True, max_iterations=30)
    joint = result.predict(torch.cat([X[40:], X[:5]]), covariance=True)
    prior, mean = joint.covariance.double(), joint.mean.double()
    observed = prior[:20, :20] + 16.0 * torch.eye(20, dtype=torch.float64)
    expected = mean[20:] + prior[20:, :20] @ torch.linalg.solve(observed, y[40:].double() - mean[:20])
    after = result.condition(X[40:], y[40:], noise_variance=16.0).predict(X[:5]).mean
    assert after.dtype == torch.float32
    # Of rounding, the noise keeps all but its share of the prior's variance.
    condition = regression_condition(20, 16.0, prior_variance=float(prior.diagonal().max()))
    assert_close(after.double(), expected, **rounding(torch.float32, condition=condition))


def test_conditioning_twice_is_conditioning_once(result, data):
    X, y = data
    once = result.condition(X[40:], y[40:]).predict(X[:5])
    twice = result.condition(X[40:50], y[40:50]).condition(X[50:], y[50:]).predict(X[:5])
    assert_close(twice.mean, once.mean, **DENSE)
    assert_close(twice.variance, once.variance, **tolerance(torch.float64, scale=_units(result)))


def test_absorbing_keeps_size_and_units(result, data):
    X, y = data
    after, _ = result.absorb(X[40:], y[40:])
    scaling = result.scaling
    by_hand, _ = result.gp.absorb(scaling.inputs(X[40:]), scaling.targets(y[40:]), likelihood=result.likelihood)
    shift, scale = scaling.target_shift, scaling.target_scale
    assert after.gp.num_inducing == result.gp.num_inducing
    assert_close(after.predict(X).mean, shift + scale * by_hand.predict(scaling.inputs(X)).mean)
    assert after.info == result.info
    larger, _ = result.absorb(X[40:], y[40:], num_inducing=32)
    assert larger.gp.num_inducing == 32


def test_counts_are_conditioned_with_the_fitted_likelihood(data, rng):
    X, _ = data
    y = torch.poisson(torch.exp(2.0 * torch.sin(X[:, 0] / 60.0)), generator=rng)
    result = sg.fit(X[:40], y[:40], likelihood="poisson", standardize=True, num_inducing=12, max_iterations=20)
    inputs = result.scaling.inputs
    after, by_hand = result.condition(X[40:], y[40:]), result.gp.condition(inputs(X[40:]), y[40:], likelihood="poisson")
    assert_close(after.predict(X).mean, by_hand.predict(inputs(X)).mean)
    assert after.log_predictive_density(X[40:], y[40:]).mean() > result.log_predictive_density(X[40:], y[40:]).mean()


def test_units_of_training_make_no_difference_without_scaling(data):
    X, y = (data[0] - 40.0) / 300.0, (data[1] - 950.0) / 50.0
    result = sg.fit(X[:40], y[:40], num_inducing=12, max_iterations=20)
    after = result.condition(X[40:], y[40:])
    assert_close(
        after.predict(X).mean, result.gp.condition(X[40:], y[40:], likelihood=result.likelihood).predict(X).mean
    )


def test_samples_have_the_moments_of_predictions(result, data, rng):
    X = data[0][:3]
    samples, prediction = result.sample(X, 20_000, generator=rng), result.predict(X)
    standardized = (samples - prediction.mean) / prediction.std
    assert_close(standardized.mean(0), torch.zeros(3).double(), **sampling(20_000**-0.5))
    assert_close(standardized.var(0), torch.ones(3).double(), **sampling((2.0 / 20_000) ** 0.5))


def test_arrays_and_whole_numbers_go_in(result, data):
    X, y = data
    whole = y[40:].round()
    expected = result.condition(X[40:], whole).predict(X).mean
    for targets in (whole.long(), whole.numpy(), whole.long().tolist()):
        assert_close(result.condition(X[40:].numpy(), targets).predict(X).mean, expected)
    assert isinstance(result.condition(X[40:], whole).predict(X.numpy()).mean, np.ndarray)
    assert isinstance(result.sample(X.numpy()), np.ndarray)
    density = result.log_predictive_density(X[40:], whole)
    assert_close(result.log_predictive_density(X[40:], whole.long()), density)


def test_a_conditioned_model_is_saved(result, data, tmp_path):
    X, y = data
    after = result.condition(X[40:], y[40:])
    assert repr(after).startswith("FittedGP(ConditionedGP(num_observations=20, ")
    after.save(tmp_path / "model.sgp")
    again = sg.load(tmp_path / "model.sgp")
    assert isinstance(again, FittedGP)
    assert torch.equal(again.predict(X).mean, after.predict(X).mean)


def test_rows_with_numbers_of_their_own_are_asked_for(data, rng):
    X, y = data
    variances = 20.0 + 10.0 * torch.rand(40, generator=rng, dtype=torch.float64)
    noise = sg.likelihoods.Gaussian(variances, is_learned=False)
    result = sg.fit(X[:40], y[:40], likelihood=noise, standardize=True, num_inducing=12, max_iterations=10)
    with pytest.raises(OptionError, match=r"numbers of its own for each row.*noise_variance="):
        result.condition(X[40:], y[40:])
    mean, _ = _dense(result, X[40:], y[40:], X[:5], 25.0)
    assert_close(result.condition(X[40:], y[40:], noise_variance=25.0).predict(X[:5]).mean, mean, **DENSE)


def test_bad_observations_are_named(result, data):
    X, y = data
    with pytest.raises(ShapeError, match="X must have 2 columns"):
        result.condition(X[:, :1], y)
    with pytest.raises(ShapeError, match="y must have shape"):
        result.condition(X, y[:5])
    with pytest.raises(ValueRangeError, match="must be finite numbers, but 1 of 60"):
        result.condition(X, torch.where(torch.arange(60) == 3, float("nan"), y))
    with pytest.raises(OptionError, match="Both noise_variance and likelihood"):
        result.condition(X, y, noise_variance=1.0, likelihood="gaussian")
    with pytest.raises(UnsupportedError, match="cannot be scaled"):
        result.condition(X, y.round(), likelihood="poisson")


def test_densities_are_those_of_targets_as_they_are_conditioned_on(result, data):
    X, y = data
    latent, variances = result.predict(X), torch.linspace(4.0, 40.0, 60, dtype=torch.float64)
    expected = torch.distributions.Normal(latent.mean, (latent.variance + variances).sqrt()).log_prob(y)
    for given in ({"noise_variance": variances}, {"likelihood": sg.likelihoods.Gaussian(variances)}):
        assert_close(result.log_predictive_density(X, y, **given), expected, **DENSE)
    fitted = result.log_predictive_density(X, y)
    assert_close(result.log_predictive_density(X, y, likelihood=result.likelihood), fitted)
    with pytest.raises(OptionError, match="Both noise_variance and likelihood"):
        result.log_predictive_density(X, y, noise_variance=1.0, likelihood="gaussian")
    with pytest.raises(UnsupportedError, match="Pass its diagonal"):
        result.log_predictive_density(X, y, noise_variance=torch.diag(variances))


def test_densities_of_targets_that_do_not_fit_are_refused(result, data):
    X, y = data
    for bad in (y.unsqueeze(-1), y[:5], y[:1]):
        with pytest.raises(ShapeError, match=r"y must have shape \(60,\)"):
            result.log_predictive_density(X, bad)
    with pytest.raises(ValueRangeError, match="1 of 60 are not"):
        result.log_predictive_density(X, torch.where(torch.arange(60) == 3, float("nan"), y))
    classes = sg.fit(X, (y > 900).double(), likelihood="bernoulli", standardize=True, num_inducing=8, max_iterations=5)
    with pytest.raises(ValueRangeError, match="must be 0 or 1"):
        classes.log_predictive_density(X, 0.5 * (y > 900))
    trials = sg.likelihoods.Binomial(torch.full((60,), 4.0).double())
    shares = sg.fit(X, y.round() % 4, likelihood=trials, standardize=True, num_inducing=8, max_iterations=5)
    with pytest.raises(OptionError, match="numbers of its own for each row"):
        shares.log_predictive_density(X[:3], y[:3].round() % 4)
    of_these = shares.likelihood.with_row_data(torch.tensor([4.0, 5.0, 6.0]).double())
    assert shares.log_predictive_density(X[:3], y[:3].round() % 4, likelihood=of_these).shape == (3,)


@pytest.mark.parametrize("standardize", [False, "inputs"])
def test_densities_of_comparisons_are_those_of_differences(data, rng, standardize):
    X = (data[0] - 40.0) / 300.0
    pairs = torch.stack([X, X[torch.randperm(60, generator=rng)]], dim=-2)
    y = (pairs[:, 0, 0] > pairs[:, 1, 0]).double()
    options = {"num_inducing": 8, "max_iterations": 5, "standardize": standardize}
    result = sg.fit(pairs[:50], y[:50], likelihood="preference", **options)
    fantasies = torch.stack([y[50:], 1.0 - y[50:]])
    for model in (result, result.condition(pairs[50:], fantasies)):
        joint = model.predict(pairs[:7].flatten(0, 1), covariance=True)
        signs = torch.kron(torch.eye(7), torch.tensor([[1.0, -1.0]])).double()
        mean, covariance = joint.mean @ signs.mT, signs @ joint.covariance @ signs.mT
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        expected = result.likelihood.log_predictive_density(mean, variance.expand_as(mean), y[:7].expand_as(mean))
        assert_close(model.log_predictive_density(pairs[:7], y[:7]), expected, **DENSE)
    with pytest.raises(ShapeError, match="one pair of inputs for each comparison"):
        result.log_predictive_density(X, y)


def test_the_fitted_likelihood_may_be_named(result, data):
    X, y = data
    expected = result.condition(X[40:], y[40:]).predict(X).mean
    assert_close(result.condition(X[40:], y[40:], likelihood=result.likelihood).predict(X).mean, expected)


def test_noise_is_named_in_the_users_units(result, data):
    with pytest.raises(ValueRangeError, match="smallest value is -7"):
        result.condition(*data, noise_variance=torch.full((60,), -7.0).double())


def test_counts_are_not_moved_with_targets_that_were_only_shifted(data):
    X, _ = data
    result = sg.fit(X, torch.full((60,), 5.0).double(), standardize=True, num_inducing=8, max_iterations=5)
    assert float(result.scaling.target_scale) == 1.0
    with pytest.raises(UnsupportedError, match="cannot be scaled"):
        result.condition(X, torch.full((60,), 7.0).double(), likelihood="poisson")


def test_true_and_false_are_classes_whatever_the_units(data):
    X, y = data
    labels = (y > y.mean()).numpy()
    for standardize in (None, True):
        options = {"num_inducing": 8, "max_iterations": 5, "standardize": standardize}
        result = sg.fit(X, labels, likelihood="bernoulli", **options)
        expected = result.condition(X, torch.from_numpy(labels).double()).predict(X).mean
        assert_close(result.condition(X, labels).predict(X).mean, expected)
        density = result.log_predictive_density(X, labels)
        assert_close(torch.from_numpy(density), result.log_predictive_density(X, torch.from_numpy(labels).double()))


@pytest.mark.parametrize("shape", [(1, 60), (2, 60), (60, 1)])
def test_constants_of_a_likelihood_have_the_axes_of_targets(data, shape):
    X, y = (data[0] - 40.0) / 300.0, (data[1] > 900).double()
    likelihood = sg.likelihoods.Poisson(exposure=torch.ones(shape).double())
    sentence = r"exposure must have shape \(60,\), one number for each observation"
    with pytest.raises(ShapeError, match=sentence):
        sg.fit(X, y, likelihood=likelihood, num_inducing=8, max_iterations=3)
    gp = sg.fit(X, y, likelihood="poisson", num_inducing=8, max_iterations=3).gp
    with pytest.raises(ShapeError, match=sentence):
        gp.condition(X, y, likelihood=likelihood)
    with pytest.raises(ShapeError, match=sentence):
        gp.absorb(X, y, likelihood=likelihood)
    if 2 not in shape:
        flat = sg.likelihoods.Poisson(exposure=likelihood.exposure.reshape(-1))
        assert gp.condition(X, y, likelihood=flat).predict(X).mean.shape == (60,)
