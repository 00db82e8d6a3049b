"""Correlated outputs in BoTorch: posteriors, fantasies, and acquisition functions with gradients."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.multi_objective.hypervolume_knowledge_gradient import qHypervolumeKnowledgeGradient
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.objective import ConstrainedMCObjective, LinearMCObjective, ScalarizedPosteriorTransform
from botorch.models import KroneckerMultiTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import MaternKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError
from streamgp.models.multi_output import OnlineMultiOutputGP
from streamgp.testing.tolerances import approximation, rounding

MIXING = torch.tensor([[1.0, 0.3], [-0.6, 0.8]], dtype=torch.float64)


@pytest.fixture
def data(rng):
    X = torch.rand(12, 2, generator=rng, dtype=torch.float64)
    common = (3.0 * X).sin().sum(-1)
    return X, torch.stack([common, -common + X[:, 0]], dim=-1)


@pytest.fixture
def model(data):
    X, Y = data
    kernel = MaternKernel(2.5).double()
    kernel.lengthscale = 0.5
    gp = sg.MultiOutputGP.from_prior(kernel, X, mixing=MIXING)
    # Without jitter, which BoTorch's models do not have.
    gp = sg.MultiOutputGP(sg.SparseGP(replace(gp.sparse_gp.process, jitter=0.0)))
    gp, _ = gp.absorb(X, Y, noise_variance=0.01, inducing="keep")
    return sg.OnlineGP(gp, sg.likelihoods.Gaussian(0.01))


def test_online_gp_makes_it_of_a_gp_of_several_outputs(model, data):
    X, Y = data
    assert isinstance(model, OnlineMultiOutputGP)
    assert_close(model.posterior(X).mean, OnlineMultiOutputGP(model.gp, 0.01).posterior(X).mean)
    conditioned = sg.OnlineGP(model.gp.condition(X[:2], Y[:2], noise_variance=0.01), model.likelihoods)
    assert_close(conditioned.posterior(X).mean, model.condition_on_observations(X[:2], Y[:2]).posterior(X).mean)
    Y[3:, 1] = torch.nan
    fitted = sg.OnlineGP.fit(X, Y, outputs="icm", rank=1, num_inducing=5, max_iterations=2)
    assert isinstance(fitted, OnlineMultiOutputGP)
    with pytest.raises(OptionError, match="outcome_transform"):
        sg.OnlineGP(model.gp, model.likelihoods, outcome_transform=Standardize(2), scale="response")
    with pytest.raises(OptionError, match="takes no train_Yvar"):
        sg.OnlineGP.fit(X, Y, outputs="icm", train_Yvar=Y)


def test_a_model_of_some_outputs_learns_of_them_alone(model, data, rng):
    X, Y = data
    V = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    subset = model.subset_output([-1])
    assert subset.num_outputs == 1
    assert_close(subset.posterior(X).mean, model.posterior(X).mean[..., 1:])
    seen = torch.tensor([[torch.nan, 1.0]] * 3, dtype=torch.float64)
    expected = model.condition_on_observations(V, seen).posterior(X)
    after = subset.condition_on_observations(V, seen[:, 1:])
    assert_close(after.posterior(X).variance, expected.variance[..., 1:])
    assert_close(after.gp.predict(X).mean, expected.mean)
    swapped = model.subset_output([1, 0])
    assert_close(
        swapped.condition_on_observations(X[:2], Y[:2].flip(-1)).posterior(V).mean,
        model.condition_on_observations(X[:2], Y[:2]).posterior(V).mean.flip(-1),
    )
    fantasies = subset.fantasize(V, SobolQMCNormalSampler(torch.Size([2]), seed=0))
    assert fantasies.posterior(X).mean.shape == (2, 12, 1)
    with pytest.raises(ShapeError, match="outputs"):
        subset.condition_on_observations(V, seen)


def test_a_saved_model_predicts_as_before(model, data, tmp_path):
    X, Y = data
    for each in (model, model.condition_on_observations(X[:1], Y[:1]).subset_output([1])):
        each.save(tmp_path / "model.sgp")
        loaded = sg.load(tmp_path / "model.sgp")
        assert torch.equal(loaded.posterior(X).mean, each.posterior(X).mean)
        assert loaded.outputs == each.outputs


def test_the_posterior_is_joint_over_inputs_and_outputs(model, rng):
    X = torch.rand(3, 4, 2, generator=rng, dtype=torch.float64)
    posterior = model.posterior(X)
    prediction = model.gp.predict(X)
    assert_close(posterior.mean, prediction.mean)
    assert_close(posterior.distribution.covariance_matrix, prediction.covariance)
    assert_close(model.posterior(X, output_indices=[1]).mean, prediction.mean[..., 1:])
    noisy = model.posterior(X, observation_noise=True)
    assert_close(noisy.variance, prediction.variance + 0.01)


def test_where_all_inputs_are_inducing_points_it_equals_botorchs_multitask_gp(model, data, rng):
    X, Y = data
    exact = KroneckerMultiTaskGP(X, Y, rank=2)
    with torch.no_grad():
        # The same kernel: a Matérn kernel of the inputs times the covariance of the outputs.
        exact.covar_module.data_covar_module = MaternKernel(2.5).double()
        exact.covar_module.data_covar_module.lengthscale = 0.5
        exact.covar_module.task_covar_module.covar_factor.copy_(MIXING)
        exact.covar_module.task_covar_module.initialize(var=torch.full((2,), 1e-15, dtype=torch.float64))
        for mean in exact.mean_module.base_means:
            mean.initialize(constant=0.0)
        # GPyTorch adds noise of all outputs and of each.
        half = torch.tensor([0.005], dtype=torch.float64)
        exact.likelihood.initialize(noise=half, task_noises=half.expand(2))
    exact.eval()
    W = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    ours, theirs = model.posterior(W), exact.posterior(W)
    within = rounding(torch.float64, condition=float(torch.linalg.cond(model.gp.sparse_gp.process.factor)) ** 2)
    assert within["atol"] < 1e-8
    assert_close(ours.mean, theirs.mean, **within)
    assert_close(ours.variance, theirs.variance, **within)


def test_fantasies_are_conditioned_on_what_was_drawn(model, rng):
    X, W = (torch.rand(5, n, 2, generator=rng, dtype=torch.float64) for n in (2, 1))
    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=1)
    fantasies = model.fantasize(X, sampler)
    drawn = sampler(model.posterior(X, observation_noise=True))
    assert fantasies.batch_shape == (4, 5)
    expected = model.condition_on_observations(X, drawn).posterior(W).mean
    assert_close(fantasies.posterior(W).mean, expected)
    partial = model.fantasize(X, sampler, evaluation_mask=torch.tensor([[True, False], [True, True]]))
    assert partial.gp.conditioned_gp.num_observations == 3


def acquisitions(model, X):
    linear = torch.tensor([1.0, 0.5], dtype=torch.float64)
    point = torch.tensor([-2.0, -2.0], dtype=torch.float64)
    sampler = SobolQMCNormalSampler(torch.Size([8]), seed=0)
    return {
        "qLogNEI with a linear objective": qLogNoisyExpectedImprovement(
            model, X, sampler=sampler, objective=LinearMCObjective(linear), prune_baseline=False, cache_root=False
        ),
        "qLogNEI with a constraint": qLogNoisyExpectedImprovement(
            model,
            X,
            sampler=sampler,
            objective=LinearMCObjective(torch.tensor([1.0, 0.0], dtype=torch.float64)),
            constraints=[lambda Y: Y[..., 1] - 1.0],
            prune_baseline=False,
            cache_root=False,
        ),
        "qLogNEI with a constraint, pruned": qLogNoisyExpectedImprovement(
            model,
            X,
            sampler=sampler,
            objective=LinearMCObjective(linear),
            constraints=[lambda Y: Y[..., 1] - 1.0],
            prune_baseline=True,
            cache_root=False,
        ),
        "qKG with a linear objective": qKnowledgeGradient(
            model, num_fantasies=4, objective=LinearMCObjective(linear), inner_sampler=sampler
        ),
        "qKG with a constraint": qKnowledgeGradient(
            model,
            num_fantasies=4,
            objective=ConstrainedMCObjective(lambda Y, X=None: Y[..., 0], [lambda Y: Y[..., 1] - 1.0]),
            inner_sampler=sampler,
        ),
        "qKG": qKnowledgeGradient(model, num_fantasies=4, posterior_transform=ScalarizedPosteriorTransform(linear)),
        "qHVKG": qHypervolumeKnowledgeGradient(model, point, num_fantasies=2, num_pareto=2),
        "qLogNEHVI": qLogNoisyExpectedHypervolumeImprovement(
            model, point.tolist(), X, sampler=sampler, prune_baseline=False, cache_root=False
        ),
        "qLogNEHVI with a constraint, pruned": qLogNoisyExpectedHypervolumeImprovement(
            model,
            point.tolist(),
            X,
            sampler=sampler,
            constraints=[lambda Y: Y[..., 1] - 1.0],
            prune_baseline=True,
            cache_root=False,
        ),
    }


NAMES = [
    "qLogNEI with a linear objective",
    "qLogNEI with a constraint",
    "qLogNEI with a constraint, pruned",
    "qKG",
    "qKG with a linear objective",
    "qKG with a constraint",
    "qHVKG",
    "qLogNEHVI",
    "qLogNEHVI with a constraint, pruned",
]


@pytest.mark.parametrize("name", NAMES)
def test_acquisition_functions_run_with_gradients(model, data, rng, name):
    function = acquisitions(model, data[0])[name]
    q = function.get_augmented_q_batch_size(2) if "KG" in name else 2
    X = torch.rand(3, q, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    value = function(X)
    value.sum().backward()
    assert value.shape == (3,)
    assert torch.isfinite(value).all()
    assert torch.isfinite(X.grad).all()
    assert X.grad.abs().sum() > 0


def test_outputs_may_have_likelihoods_of_their_own(data, model, rng):
    X, Y = data
    kinds = [sg.likelihoods.Gaussian(0.01), sg.likelihoods.Poisson()]
    mixed = OnlineMultiOutputGP(model.gp, likelihood=kinds)
    seen = torch.stack([Y[:3, 0], torch.tensor([2.0, 0.0, 5.0], dtype=torch.float64)], dim=-1)
    expected = model.gp.condition(X[:3], seen, likelihood=kinds).predict(X).mean
    assert_close(mixed.condition_on_observations(X[:3], seen).posterior(X).mean, expected)
    assert_close(
        mixed.absorb(X[:3], seen, inducing="keep").posterior(X).mean, expected, **approximation(1e-8, "iteration")
    )
    W = torch.rand(2, 1, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    fantasies = mixed.fantasize(W, SobolQMCNormalSampler(torch.Size([3]), seed=0))
    mean = fantasies.posterior(X).mean
    assert mean.shape == (3, 2, 12, 2)
    assert torch.autograd.grad(mean.sum(), W)[0].abs().sum() > 0


def test_a_fit_is_a_model(data):
    X, Y = data
    model = OnlineMultiOutputGP.fit(X, Y, outputs="icm", rank=1, num_inducing=6, max_iterations=2)
    assert model.is_gaussian
    # Singular: both outputs are one function.
    samples = model.posterior(X[:3]).rsample(torch.Size([2]))
    assert samples.shape == (2, 3, 2)
    assert torch.isfinite(samples).all()


def test_bad_arguments_get_a_sentence(model):
    with pytest.raises(OptionError, match="noise_variance"):
        OnlineMultiOutputGP(model.gp)
    with pytest.raises(OptionError, match="one for each of the 2, but there are 1"):
        OnlineMultiOutputGP(model.gp, likelihood=[sg.likelihoods.Poisson()])
    with pytest.raises(OptionError, match="output"):
        OnlineMultiOutputGP(model.gp, likelihood=["poisson", None])
    with pytest.raises(ArgumentTypeError, match="MultiOutputGP"):
        OnlineMultiOutputGP(model.gp.sparse_gp, 0.1)
    with pytest.raises(ShapeError, match="noise_variance"):
        OnlineMultiOutputGP(model.gp, [0.1, 0.1, 0.1])
