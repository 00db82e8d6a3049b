"""BoTorch's acquisition functions: values of the exact GP, true gradients, and a run through optimize_acqf."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from botorch.acquisition import qKnowledgeGradient, qNoisyExpectedImprovement
from botorch.generation import MaxPosteriorSampling
from botorch.models import ModelListGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from tests.support.model_laws import exact_pair
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Poisson
from streamgp.testing.tolerances import approximation, judgement

# The table's script has one list of acquisition functions and how each is built.
_PATH = Path(__file__).parents[2] / "benchmarks" / "acquisition_table.py"
_SPEC = importlib.util.spec_from_file_location("acquisition_table", _PATH)
table = importlib.util.module_from_spec(_SPEC)
sys.modules["acquisition_table"] = table
_SPEC.loader.exec_module(table)

pytestmark = pytest.mark.filterwarnings("ignore")  # of BoTorch, on its own numerics
BOUNDS = torch.stack([torch.zeros(2), torch.ones(2)]).double()
# Random functions are compared in distribution; this one asks for the training data of an exact GP.
OTHER = ("PathwiseThompsonSampling", "qPredictiveEntropySearch")
COMPARED = [name for name in table.CASES if name not in OTHER]
# The jitter of the inducing points, 1e-8, shows where a logarithm or a small noise magnifies it.
JITTER = {"rtol": 1e-4, "atol": 1e-5}


def pair(case, dtype=torch.float64):
    data = table.Data.random(dtype=dtype)
    Y = data.Y[:, : case.num_outputs]
    exact, online = exact_pair(data.X, Y)
    if case.is_list:
        exact = ModelListGP(*(exact_pair(data.X, Y[:, j : j + 1])[0] for j in range(2)))
        online = ModelListGP(*(online.subset_output([j]) for j in range(2)))
    return exact, online, data


@pytest.mark.parametrize("name", COMPARED)
def test_the_value_is_that_of_the_exact_gp(name):
    case = table.CASES[name]
    exact, online, data = pair(case)
    expected, _ = table.value_and_gradient(case, exact, data)
    value, _ = table.value_and_gradient(case, online, data)
    assert_close(value, expected, **JITTER)


@pytest.mark.parametrize("name", [name for name in table.CASES if name != "qPredictiveEntropySearch"])
def test_the_gradient_is_that_of_finite_differences(name):
    case = table.CASES[name]
    _, online, data = pair(case)
    torch.manual_seed(0)
    function = case.build(online, data)
    size = function.get_augmented_q_batch_size(case.q) if hasattr(function, "get_augmented_q_batch_size") else case.q
    X = torch.rand(1, size, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64).requires_grad_(True)
    (gradient,) = torch.autograd.grad(function(X).sum(), X)
    direction = torch.randn(X.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        slope = (function(X + 1e-6 * direction) - function(X - 1e-6 * direction)).sum() / 2e-6
    assert_close((gradient * direction).sum(), slope, **approximation(1e-5, "finite differences", scale=0.1))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in table.CASES if name != "qPredictiveEntropySearch"])
def test_it_runs_through_optimize_acqf(name):
    case = table.CASES[name]
    _, online, data = pair(case)
    candidates, value = table.optimize(case, online, data)
    assert torch.isfinite(candidates).all()
    assert torch.isfinite(value).all()
    assert ((candidates >= 0) & (candidates <= 1)).all()


@pytest.mark.parametrize("name", ["qKnowledgeGradient", "qLogNoisyExpectedImprovement", "qUpperConfidenceBound"])
def test_single_precision_works(name):
    case = table.CASES[name]
    _, online, data = pair(case, torch.float32)
    _, double, _ = pair(case)
    value, gradient = table.value_and_gradient(case, online, data)
    expected, _ = table.value_and_gradient(case, double, table.Data.random())
    assert value.dtype == gradient.dtype == torch.float32
    assert torch.isfinite(gradient).all()
    if name != "qLogNoisyExpectedImprovement":  # the logarithm of what is almost zero
        assert_close(value.double(), expected, **judgement(relative=0.05, absolute=0.05))
    candidates, _ = table.optimize(case, online, data)
    assert torch.isfinite(candidates).all()


@pytest.mark.parametrize("cache_root", [None, True, False])
def test_noisy_improvement_may_cache_its_root(cache_root):
    exact, online, data = pair(table.CASES["qNoisyExpectedImprovement"])
    X = torch.rand(3, 2, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = []
    for model in (exact, online):
        sampler = SobolQMCNormalSampler(torch.Size([32]), seed=0)
        function = qNoisyExpectedImprovement(model, data.X, sampler, cache_root=cache_root, prune_baseline=False)
        assert function._cache_root is (cache_root is not False)
        values.append(function(X))
    assert_close(values[1], values[0], **JITTER)


def test_max_posterior_sampling_draws_as_from_the_exact_gp():
    exact, online, data = pair(table.CASES["PosteriorMean"])
    torch.manual_seed(0)
    counts = []
    for model in (exact, online):
        drawn = MaxPosteriorSampling(model)(data.candidates, num_samples=2000)
        counts.append((drawn.unsqueeze(1) == data.candidates).all(-1).double().mean(0))
    # Five standard errors of a difference of two frequencies.
    spread = 5 * (2 * counts[0].clamp_min(1e-3) / 2000).sqrt()
    assert ((counts[0] - counts[1]).abs() < spread).all()
    distinct = MaxPosteriorSampling(online, replacement=False)(data.candidates, num_samples=3)
    assert len(torch.unique(distinct, dim=0)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("objective", [None, "constrained"])
def test_knowledge_gradient_of_counts_runs_through_optimize_acqf(objective):
    _, normal, data = pair(table.CASES["qKnowledgeGradient, ConstrainedMCObjective"])
    model = sg.OnlineGP(normal.gps, [Poisson(), normal.likelihoods[1]])
    if objective is None:
        model = model.subset_output([0])
    chosen = None if objective is None else table.constrained(data)
    function = qKnowledgeGradient(model, num_fantasies=4, objective=chosen)
    candidates, value = optimize_acqf(function, BOUNDS, q=2, num_restarts=2, raw_samples=4, options={"maxiter": 3})
    assert candidates.shape == (2, 2)
    assert torch.isfinite(value)
