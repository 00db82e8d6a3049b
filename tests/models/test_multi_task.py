"""Tasks with a column of their own, against BoTorch's exact model."""

from dataclasses import replace

import pytest
import torch
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
from botorch.models import MultiTaskGP
from botorch.models.cost import AffineFidelityCostModel
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import IndexKernel, MaternKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.models import OnlineMultiTaskGP
from streamgp.testing.tolerances import rounding

MIXING = torch.tensor([[1.0, 0.3], [0.9, -0.2]], dtype=torch.float64)


@pytest.fixture
def data(rng):
    """A column for the task in the middle; the dear task 0 was looked at twice."""
    X = torch.rand(10, 2, generator=rng, dtype=torch.float64)
    task = torch.tensor([0.0, 0.0] + [1.0] * 8, dtype=torch.float64)
    y = (3.0 * X).sin().sum(-1) + 0.2 * task
    return torch.stack([X[:, 0], task, X[:, 1]], dim=-1), y.unsqueeze(-1)


@pytest.fixture
def model(data):
    X, Y = data
    kernel = MaternKernel(2.5).double()
    kernel.lengthscale = 0.5
    gp = sg.MultiOutputGP.from_prior(kernel, X[:, [0, 2]], mixing=MIXING)
    # Without jitter, which BoTorch's models do not have.
    gp = sg.MultiOutputGP(sg.SparseGP(replace(gp.sparse_gp.process, jitter=0.0)))
    return OnlineMultiTaskGP(gp, 0.01, task_feature=1).absorb(X, Y, inducing="keep")


def test_where_all_inputs_are_inducing_points_it_equals_botorchs_multitask_gp(model, data, rng):
    X, Y = data
    exact = MultiTaskGP(
        X, Y, task_feature=1, likelihood=GaussianLikelihood(), mean_module=ZeroMean(), outcome_transform=None
    )
    data_kernel, index = (
        MaternKernel(2.5, active_dims=[0, 2]).double(),
        IndexKernel(2, rank=2, active_dims=[1]).double(),
    )
    data_kernel.lengthscale = 0.5
    index.initialize(covar_factor=MIXING, var=torch.full((2,), 1e-15, dtype=torch.float64))
    exact.covar_module = data_kernel * index
    exact = exact.double().eval()
    exact.likelihood.noise = torch.tensor([0.01], dtype=torch.float64)
    W = torch.rand(4, 3, generator=rng, dtype=torch.float64)
    W[:, 1] = torch.tensor([0.0, 1.0, 0.0, 1.0])
    ours, theirs = model.posterior(W), exact.posterior(W)
    within = rounding(torch.float64, condition=float(torch.linalg.cond(model.gp.sparse_gp.process.factor)) ** 2)
    assert within["atol"] < 1e-8
    assert_close(ours.mean, theirs.mean, **within)
    assert_close(ours.variance, theirs.variance, **within)
    V, new = torch.rand(2, 3, generator=rng, dtype=torch.float64), torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    V[:, 1] = torch.tensor([1.0, 0.0])
    conditioned = exact.condition_on_observations(V, new)
    assert_close(model.condition_on_observations(V, new).posterior(W).mean, conditioned.posterior(W).mean, **within)


def test_inputs_without_a_task_look_at_the_one_that_matters(model, rng):
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    with_task = torch.stack([X[:, 0], torch.zeros(3, dtype=torch.float64), X[:, 1]], dim=-1)
    assert_close(model.posterior(X).mean, model.posterior(with_task).mean)
    noisy = model.posterior(with_task, observation_noise=True)
    assert_close(noisy.variance, model.posterior(with_task).variance + 0.01)


def test_an_outcome_of_the_cheap_task_informs_the_dear_one(model, rng):
    x = torch.tensor([[2.0, 1.0, 2.0]], dtype=torch.float64)
    dear = torch.tensor([[2.0, 2.0]], dtype=torch.float64)
    after = model.condition_on_observations(x, torch.tensor([[3.0]], dtype=torch.float64))
    assert after.posterior(dear).variance < 0.5 * model.posterior(dear).variance
    assert after.posterior(dear).mean > 1.0 + model.posterior(dear).mean


def test_multi_fidelity_knowledge_gradient_runs_with_gradients(model, rng):
    cost = InverseCostWeightedUtility(AffineFidelityCostModel(fidelity_weights={1: -0.5}, fixed_cost=1.0))

    def project(X):
        target = torch.zeros_like(X[..., :1])
        return torch.cat([X[..., :1], target, X[..., 2:]], dim=-1)

    sampler = SobolQMCNormalSampler(torch.Size([4]), seed=0)
    function = qMultiFidelityKnowledgeGradient(
        model,
        num_fantasies=4,
        sampler=sampler,
        cost_aware_utility=cost,
        project=project,
        current_value=torch.zeros(1, dtype=torch.float64),
    )
    X = torch.rand(2, function.get_augmented_q_batch_size(1), 3, generator=rng, dtype=torch.float64)
    X[..., 1] = X[..., 1].round()
    X.requires_grad_(True)
    value = function(X)
    value.sum().backward()
    assert value.shape == (2,)
    assert torch.isfinite(X.grad).all()
    assert X.grad[..., [0, 2]].abs().sum() > 0


def test_a_fit_learns_from_rows_of_all_tasks(data):
    X, Y = data
    model = OnlineMultiTaskGP.fit(X, Y, task_feature=1, num_inducing=6, rank=1, max_iterations=2)
    assert model.num_tasks == 2
    assert model.posterior(X).mean.shape == (10, 1)


def test_a_saved_model_predicts_as_before(model, data, tmp_path):
    X, _ = data
    model.save(tmp_path / "model.sgp")
    loaded = sg.load(tmp_path / "model.sgp")
    assert torch.equal(loaded.posterior(X).mean, model.posterior(X).mean)
    assert torch.equal(
        loaded.posterior(X, observation_noise=True).variance, model.posterior(X, observation_noise=True).variance
    )


def test_bad_arguments_get_a_sentence(model, data):
    X, Y = data
    with pytest.raises(ShapeError, match="task"):
        model.posterior(X[:, :1])
    with pytest.raises(ValueRangeError, match="whole"):
        model.posterior(torch.full((1, 3), 0.5, dtype=torch.float64))
    with pytest.raises(OptionError, match="output_task"):
        OnlineMultiTaskGP(model.gp, 0.01, output_task=2)
    with pytest.raises(OptionError, match="task_feature"):
        OnlineMultiTaskGP(model.gp, 0.01, task_feature=3)
    with pytest.raises(UnsupportedError, match="size"):
        model.condition_on_observations(X, Y).absorb(X, Y)
    with pytest.raises(ShapeError, match=r"train_Y \(n, 1\)"):
        OnlineMultiTaskGP.fit(X, Y.squeeze(-1))
