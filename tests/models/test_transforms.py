"""Transforms are applied exactly once, frozen, and undone in the posteriors of conditioned models."""

import pytest
import torch
from botorch.models.transforms import ChainedInputTransform, ChainedOutcomeTransform, Log, Normalize, Standardize
from botorch.models.transforms.input import InputPerturbation, InputStandardize, Warp
from botorch.models.transforms.outcome import Bilog
from botorch.posteriors import TransformedPosterior
from botorch.sampling import SobolQMCNormalSampler
from tests.support.model_laws import uniform
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ValueRangeError
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.models import LatentPosterior
from streamgp.testing.tolerances import tolerance

TIGHT = tolerance(torch.float64)
BOUNDS = torch.tensor([[-3.0, 10.0], [5.0, 30.0]], dtype=torch.float64)


def in_bounds(rng, *shape):
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * uniform(rng, *shape, 2)


def fitted(transform, Y):
    transform(Y)
    return transform


INPUTS = {
    "normalize by bounds": lambda X: Normalize(2, bounds=BOUNDS),
    "normalize by range": lambda X: fitted(Normalize(2), X),
    "standardize": lambda X: fitted(InputStandardize(2), X),
    "a chain": lambda X: ChainedInputTransform(
        first=Normalize(2, bounds=BOUNDS), second=Warp(2, indices=[0, 1], bounds=torch.tensor([[0.0] * 2, [1.0] * 2]))
    ),
}
LINEAR = {
    "standardize": lambda Y: fitted(Standardize(1), Y),
    "a chain": lambda Y: fitted(ChainedOutcomeTransform(first=Standardize(1), second=Standardize(1)), Y),
}


@pytest.mark.parametrize("into", INPUTS)
@pytest.mark.parametrize("out", LINEAR)
def test_linear_transforms_are_applied_once_and_undone(rng, into, out):
    gp = random_sparse_gp(rng).gp
    X, Y, W = in_bounds(rng, 6), 40.0 + 7.0 * uniform(rng, 6, 1), in_bounds(rng, 4)
    into, out = INPUTS[into](X), LINEAR[out](Y)
    model = sg.OnlineGP(gp, Gaussian(0.1), input_transform=into, outcome_transform=out)
    into, out = into.double().eval(), out.double().eval()
    by_hand = gp.condition(into(X), out(Y)[0].squeeze(-1), noise_variance=0.1).predict(into(W))
    expected, variance = out.untransform(by_hand.mean.unsqueeze(-1), by_hand.variance.unsqueeze(-1))
    once = model.condition_on_observations(X, Y).posterior(W)
    assert isinstance(once, LatentPosterior)
    assert_close(once.mean, expected.detach(), **TIGHT)
    assert_close(once.variance, variance.detach(), **TIGHT)
    twice = model.condition_on_observations(X[:3], Y[:3]).condition_on_observations(X[3:], Y[3:]).posterior(W)
    assert_close(twice.mean, expected.detach(), **TIGHT)
    absorbed = gp.absorb(into(X).detach(), out(Y)[0].squeeze(-1), noise_variance=0.1, inducing="keep")[0]
    mean, _ = out.untransform(absorbed.predict(into(W)).mean.unsqueeze(-1))
    assert_close(model.absorb(X, Y, inducing="keep").posterior(W).mean, mean.detach(), **TIGHT)


def test_fantasies_behind_transforms_equal_fantasies_by_hand(rng):
    gp = random_sparse_gp(rng).gp
    X, Y, W = in_bounds(rng, 2), 40.0 + 7.0 * uniform(rng, 6, 1), in_bounds(rng, 4)
    into, out = Normalize(2, bounds=BOUNDS), fitted(Standardize(1), Y)
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    plain = sg.OnlineGP(gp, Gaussian(0.1)).fantasize(into(X), sampler).posterior(into(W)).mean
    model = sg.OnlineGP(gp, Gaussian(0.1), input_transform=into, outcome_transform=out)
    assert_close(model.fantasize(X, sampler).posterior(W).mean, out.eval().untransform(plain)[0], **TIGHT)


@pytest.mark.parametrize("transform", [Log, Bilog])
def test_other_outcome_transforms_are_undone_too(rng, transform):
    gp = random_sparse_gp(rng).gp
    X, Y = uniform(rng, 3, 2), 0.5 + uniform(rng, 3, 1)
    model = sg.OnlineGP(gp, Gaussian(0.1), outcome_transform=transform())
    after = model.condition_on_observations(X, Y)
    posterior = after.posterior(X)
    assert isinstance(posterior, TransformedPosterior)
    by_hand = sg.OnlineGP(gp, Gaussian(0.1)).condition_on_observations(X, transform()(Y)[0])
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    assert_close(sampler(posterior), transform().untransform(sampler(by_hand.posterior(X)))[0], **TIGHT)
    fantasies = model.fantasize(X, sampler)
    assert sampler(fantasies.posterior(X)).shape == (4, 4, 3, 1)


def test_the_log_transform_of_one_output_can_be_asked_for_alone(rng):
    gps = [random_sparse_gp(rng).gp for _ in range(2)]
    model = sg.OnlineGP(gps, Gaussian(0.1), outcome_transform=Log())
    X = uniform(rng, 3, 2)
    assert_close(model.posterior(X, output_indices=[1]).mean, model.posterior(X).mean[:, 1:], **TIGHT)
    assert_close(model.subset_output([1]).posterior(X).mean, model.posterior(X).mean[:, 1:], **TIGHT)


def test_perturbed_inputs_are_predicted_but_not_fantasized(rng):
    perturbation = InputPerturbation(torch.tensor([[0.0, 0.0], [0.1, 0.0]], dtype=torch.float64))
    model = sg.OnlineGP(random_sparse_gp(rng).gp, Gaussian(0.1), input_transform=perturbation)
    X = uniform(rng, 3, 2)
    assert model.posterior(X).mean.shape == (6, 1)
    fantasies = model.fantasize(X, SobolQMCNormalSampler(torch.Size([4])))
    assert fantasies.gps[0].num_observations == 3


def test_later_fits_of_a_transform_do_not_reach_the_model(rng):
    Y = uniform(rng, 6, 1)
    out = fitted(Standardize(1), Y)
    into = fitted(Normalize(2), uniform(rng, 6, 2))
    model = sg.OnlineGP(random_sparse_gp(rng).gp, Gaussian(0.1), input_transform=into, outcome_transform=out)
    X = uniform(rng, 3, 2)
    before = model.posterior(X).mean
    out.train()(100.0 * Y)
    into.train()(100.0 * X)
    model.train()
    model.condition_on_observations(100.0 * X, 100.0 * Y[:3])
    assert torch.equal(model.posterior(X).mean, before)
    assert not model.input_transform.learn_coefficients
    assert not any(part.training for part in model.modules())


def test_transforms_that_were_never_fitted_are_refused(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(ValueRangeError, match="train_Y"):
        sg.OnlineGP(gp, Gaussian(), outcome_transform=ChainedOutcomeTransform(log=Log(), scale=Standardize(1)))
    with pytest.raises(ValueRangeError, match="coefficients"):
        sg.OnlineGP(gp, Gaussian(), input_transform=Normalize(2))
    sg.OnlineGP(gp, Gaussian(), input_transform=Normalize(2).eval())


def test_things_that_are_no_transforms_are_refused(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(TypeError, match="input_transform"):
        sg.OnlineGP(gp, Gaussian(), input_transform=torch.nn.Identity())
    with pytest.raises(TypeError, match="outcome_transform"):
        sg.OnlineGP(gp, Gaussian(), outcome_transform=torch.nn.Identity())


def test_counts_must_not_be_transformed(rng):
    gps = [random_sparse_gp(rng).gp for _ in range(2)]
    Y = uniform(rng, 5, 2)
    with pytest.raises(OptionError, match="Poisson"):
        sg.OnlineGP(gps, [Poisson(), Gaussian()], outcome_transform=fitted(Standardize(2), Y))
    model = sg.OnlineGP(gps, [Poisson(), Gaussian()], outcome_transform=fitted(Standardize(2, outputs=[1]), Y))
    X = uniform(rng, 3, 2)
    assert_close(model.posterior(X).mean[:, 0], gps[0].predict(X).mean, **TIGHT)
    assert_close(model.posterior(X).mean[:, 1], Y[:, 1].mean() + Y[:, 1].std() * gps[1].predict(X).mean, **TIGHT)
