import gpytorch
import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.likelihoods import (
    Bernoulli,
    Beta,
    Binomial,
    Exponential,
    Gamma,
    Gaussian,
    HeteroskedasticGaussian,
    NegativeBinomial,
    Poisson,
    Preference,
    Softmax,
    StudentT,
    Volatility,
    from_gpytorch,
)

ONE_LATENT = [
    Bernoulli(),
    Beta(),
    Binomial(3),
    Exponential(),
    Gamma(),
    Gaussian(),
    NegativeBinomial(),
    Poisson(),
    Preference(),
    StudentT(),
    Volatility(),
    from_gpytorch(gpytorch.likelihoods.LaplaceLikelihood()),
]
SEVERAL_LATENTS = [HeteroskedasticGaussian(), Softmax(2)]


def moments(likelihood, dtype):
    mean = torch.linspace(-1.0, 1.0, 3 * likelihood.num_latents, dtype=dtype).reshape(-1, 3)
    mean = mean if likelihood.num_latents > 1 else mean.squeeze(0)
    return mean, 0.1 + mean.square()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("likelihood", [*ONE_LATENT, *SEVERAL_LATENTS], ids=lambda each: type(each).__name__)
def test_questions_in_arrays_are_answered_in_arrays_with_the_same_numbers(likelihood, dtype):
    mean, variance = moments(likelihood, dtype)
    observed = torch.full((3,), 1.0 if likelihood.outcome_kind != "real" else 0.5, dtype=dtype)
    asked = {"log_predictive_density": (observed,)}
    if isinstance(likelihood, Softmax):
        asked["predictive_probabilities"] = ()
    else:
        asked |= {"predictive_mean": (), "predictive_variance": ()}
    if likelihood.num_latents == 1:
        asked["predictive_quantiles"] = ([0.1, 0.9],)
    for name, others in asked.items():
        method = getattr(likelihood, name)
        arrays = [each.numpy() if isinstance(each, torch.Tensor) else each for each in (mean, variance, *others)]
        answer, expected = method(*arrays), method(mean, variance, *others)
        assert isinstance(answer, np.ndarray)
        assert isinstance(expected, torch.Tensor)
        np.testing.assert_array_equal(answer, expected.numpy())


@pytest.mark.parametrize("likelihood", ONE_LATENT, ids=lambda each: type(each).__name__)
def test_responses_and_draws_have_the_form_of_the_latent_values(likelihood):
    f = moments(likelihood, torch.float64)[0]
    draws = [likelihood.sample(each, generator=torch.Generator().manual_seed(0)) for each in (f, f.numpy())]
    for ours, expected in ((draws[1], draws[0]), (likelihood.response(f.numpy()), likelihood.response(f))):
        assert isinstance(ours, np.ndarray)
        np.testing.assert_array_equal(ours, expected.numpy())


def test_what_is_predicted_at_arrays_can_be_asked_for_outcomes():
    X = np.linspace(0.0, 1.0, 5)[:, None]
    gp, _ = sg.SparseGP.from_prior(RBFKernel(), X).absorb(X, np.arange(5), likelihood="poisson")
    prediction = gp.predict(X)
    rate = Poisson().predictive_mean(prediction.mean, prediction.variance)
    interval = Poisson().predictive_quantiles(prediction.mean, prediction.variance, (0.05, 0.95))
    assert (rate.shape, interval.shape) == ((5,), (5, 2))
    assert (interval[:, 0] <= rate).all()
    assert (rate <= interval[:, 1]).all()
