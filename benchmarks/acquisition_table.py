"""BoTorch's acquisition functions that run with a variational GP of BoTorch, and with OnlineGP.

    python benchmarks/acquisition_table.py

Each is built with both models on the same data, evaluated with its gradient at random candidates, and optimized by
BoTorch's own `optimize_acqf` with tiny settings. A cell says whether that worked, or how it failed.
"""

import argparse
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import botorch.acquisition as acquisition
import torch
from botorch.acquisition import multi_objective
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.objective import ConstrainedMCObjective, ScalarizedPosteriorTransform
from botorch.acquisition.predictive_entropy_search import qPredictiveEntropySearch
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.generation import MaxPosteriorSampling
from botorch.models import SingleTaskVariationalGP
from botorch.models.model import Model, ModelList
from botorch.optim import optimize_acqf
from botorch.utils.multi_objective.box_decompositions import NondominatedPartitioning
from torch import Tensor

import streamgp as sg

NUM_DIMS = 2


@dataclass(frozen=True)
class Data:
    """Inputs in the unit square, outcomes of two outputs, and pending points."""

    X: Tensor
    Y: Tensor
    pending: Tensor
    candidates: Tensor

    @classmethod
    def random(cls, num_observations: int = 12, dtype: torch.dtype = torch.float64) -> "Data":
        generator = torch.Generator().manual_seed(3)
        X, pending, candidates = (
            torch.rand(n, NUM_DIMS, generator=generator, dtype=torch.float64).to(dtype)
            for n in (num_observations, 2, 30)
        )
        noise = 0.1 * torch.randn(num_observations, 2, generator=generator, dtype=torch.float64).to(dtype)
        Y = torch.stack([torch.sin(4 * X).sum(-1), torch.cos(3 * X).sum(-1)], dim=-1) + noise
        return cls(X, Y, pending, candidates)


@dataclass(frozen=True)
class Case:
    """Recipe of an acquisition function, built from a model and data.

    Attributes:
        build: Takes model and data.
        q: Number of candidates.
        num_outputs: Outputs of the model.
        is_list: Whether it asks for a `ModelList` of models with one output each.
    """

    build: Callable[[Any, Data], Any]
    q: int = 2
    num_outputs: int = 1
    is_list: bool = False


def constrained(data: Data) -> ConstrainedMCObjective:
    return ConstrainedMCObjective(lambda Y, X=None: Y[..., 0], [lambda Y: Y[..., 1] - 0.5])


def optimum(data: Data) -> tuple[Tensor, Tensor]:
    """Return places of sampled maxima, for entropy searches."""
    return data.X[:2], data.Y[:2, :1] + 1.0


REFERENCE = [0.0, 0.0]
CASES: dict[str, Case] = {
    "PosteriorMean": Case(lambda m, d: acquisition.PosteriorMean(m), q=1),
    "ExpectedImprovement": Case(lambda m, d: acquisition.ExpectedImprovement(m, best_f=0.5), q=1),
    "LogExpectedImprovement": Case(lambda m, d: acquisition.LogExpectedImprovement(m, best_f=0.5), q=1),
    "UpperConfidenceBound": Case(lambda m, d: acquisition.UpperConfidenceBound(m, beta=2.0), q=1),
    "ProbabilityOfImprovement": Case(lambda m, d: acquisition.ProbabilityOfImprovement(m, best_f=0.5), q=1),
    "LogConstrainedExpectedImprovement": Case(
        lambda m, d: LogConstrainedExpectedImprovement(m, best_f=0.5, objective_index=0, constraints={1: (None, 0.5)}),
        q=1,
        num_outputs=2,
    ),
    "qSimpleRegret": Case(lambda m, d: acquisition.qSimpleRegret(m)),
    "qExpectedImprovement": Case(lambda m, d: acquisition.qExpectedImprovement(m, best_f=0.5, X_pending=d.pending)),
    "qLogExpectedImprovement": Case(lambda m, d: acquisition.qLogExpectedImprovement(m, best_f=0.5)),
    "qProbabilityOfImprovement": Case(lambda m, d: acquisition.qProbabilityOfImprovement(m, best_f=0.5)),
    "qUpperConfidenceBound": Case(lambda m, d: acquisition.qUpperConfidenceBound(m, beta=2.0, X_pending=d.pending)),
    "qLowerConfidenceBound": Case(lambda m, d: acquisition.qLowerConfidenceBound(m, beta=2.0)),
    "qNoisyExpectedImprovement": Case(
        lambda m, d: acquisition.qNoisyExpectedImprovement(m, X_baseline=d.X, prune_baseline=False, X_pending=d.pending)
    ),
    "qLogNoisyExpectedImprovement": Case(
        lambda m, d: acquisition.qLogNoisyExpectedImprovement(m, X_baseline=d.X, prune_baseline=False)
    ),
    "qNEI, pruned, root not cached": Case(
        lambda m, d: acquisition.qNoisyExpectedImprovement(m, X_baseline=d.X, prune_baseline=True, cache_root=False)
    ),
    "qNoisyExpectedImprovement, ConstrainedMCObjective": Case(
        lambda m, d: acquisition.qNoisyExpectedImprovement(
            m, X_baseline=d.X, objective=constrained(d), prune_baseline=False
        ),
        num_outputs=2,
    ),
    "qKnowledgeGradient": Case(lambda m, d: acquisition.qKnowledgeGradient(m, num_fantasies=4)),
    "qKnowledgeGradient, pending": Case(
        lambda m, d: acquisition.qKnowledgeGradient(m, num_fantasies=4, X_pending=d.pending)
    ),
    "qKnowledgeGradient, minimizing": Case(
        lambda m, d: acquisition.qKnowledgeGradient(
            m, num_fantasies=4, posterior_transform=ScalarizedPosteriorTransform(torch.tensor([-1.0]).to(d.X))
        )
    ),
    "qKnowledgeGradient, ConstrainedMCObjective": Case(
        lambda m, d: acquisition.qKnowledgeGradient(m, num_fantasies=4, objective=constrained(d)), num_outputs=2
    ),
    "qMultiStepLookahead, 2 steps": Case(
        lambda m, d: acquisition.qMultiStepLookahead(m, batch_sizes=[1], num_fantasies=[3])
    ),
    "qMultiStepLookahead, 3 steps": Case(
        lambda m, d: acquisition.qMultiStepLookahead(m, batch_sizes=[1, 1], num_fantasies=[3, 2])
    ),
    "qMaxValueEntropy": Case(
        lambda m, d: acquisition.qMaxValueEntropy(m, d.candidates, train_inputs=d.X, num_fantasies=4), q=1
    ),
    "qMaxValueEntropy, pending": Case(
        lambda m, d: acquisition.qMaxValueEntropy(
            m, d.candidates, train_inputs=d.X, num_fantasies=4, X_pending=d.pending
        ),
        q=1,
    ),
    "qLowerBoundMaxValueEntropy": Case(
        lambda m, d: acquisition.qLowerBoundMaxValueEntropy(m, d.candidates, train_inputs=d.X), q=1
    ),
    "qLowerBoundMaxValueEntropy, pending": Case(
        lambda m, d: acquisition.qLowerBoundMaxValueEntropy(m, d.candidates, train_inputs=d.X, X_pending=d.pending), q=1
    ),
    "qJointEntropySearch": Case(lambda m, d: qJointEntropySearch(m, *optimum(d), condition_noiseless=False)),
    "qPredictiveEntropySearch": Case(lambda m, d: qPredictiveEntropySearch(m, optimum(d)[0])),
    "qNegIntegratedPosteriorVariance": Case(
        lambda m, d: acquisition.qNegIntegratedPosteriorVariance(m, mc_points=d.candidates, X_pending=d.pending)
    ),
    "PairwiseMCPosteriorVariance": Case(
        lambda m, d: acquisition.PairwiseMCPosteriorVariance(m, acquisition.LinearMCObjective(torch.ones(1).to(d.X)))
    ),
    "qExpectedHypervolumeImprovement": Case(
        lambda m, d: multi_objective.qExpectedHypervolumeImprovement(
            m, ref_point=REFERENCE, partitioning=NondominatedPartitioning(torch.zeros(2).to(d.X), Y=d.Y)
        ),
        num_outputs=2,
    ),
    "qLogNoisyExpectedHypervolumeImprovement": Case(
        lambda m, d: multi_objective.qLogNoisyExpectedHypervolumeImprovement(
            m, ref_point=REFERENCE, X_baseline=d.X, prune_baseline=False
        ),
        num_outputs=2,
    ),
    "qHypervolumeKnowledgeGradient": Case(
        lambda m, d: multi_objective.qHypervolumeKnowledgeGradient(
            m, ref_point=torch.zeros(2).to(d.X), num_fantasies=2, num_pareto=2
        ),
        q=1,
        num_outputs=2,
        is_list=True,
    ),
    "PathwiseThompsonSampling": Case(lambda m, d: PathwiseThompsonSampling(m)),
}


def value_and_gradient(case: Case, model: Model, data: Data, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Build and evaluate at three random sets of candidates; all randomness is seeded."""
    torch.manual_seed(seed)
    function = case.build(model, data)
    size = function.get_augmented_q_batch_size(case.q) if hasattr(function, "get_augmented_q_batch_size") else case.q
    X = torch.rand(3, size, NUM_DIMS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    X = X.to(data.X).requires_grad_(True)
    value = function(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    return value.detach(), gradient


def optimize(case: Case, model: Model, data: Data, seed: int = 0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    bounds = torch.stack([torch.zeros(NUM_DIMS), torch.ones(NUM_DIMS)]).to(data.X)
    function = case.build(model, data)
    # Of the functions with an augmented batch, optimize_acqf knows all but this one.
    is_tree = isinstance(function, acquisition.qMultiStepLookahead)
    q = function.get_augmented_q_batch_size(case.q) if is_tree else case.q
    return optimize_acqf(function, bounds=bounds, q=q, num_restarts=2, raw_samples=4, options={"maxiter": 3})


def attempt(case: Case, model: Model, data: Data) -> str:
    """Return what happened: nothing bad, or the first words of the error."""
    try:
        value, gradient = value_and_gradient(case, model, data)
        if not (torch.isfinite(value).all() and torch.isfinite(gradient).all()):
            return "not finite"
        candidates, _ = optimize(case, model, data)
        return "yes" if torch.isfinite(candidates).all() else "not finite"
    except Exception as error:
        return f"no: {type(error).__name__}"


def attempt_sampling(model: Model, data: Data) -> str:
    try:
        drawn = MaxPosteriorSampling(model, replacement=False)(data.candidates, num_samples=3)
        return "yes" if torch.isfinite(drawn).all() else "not finite"
    except Exception as error:
        return f"no: {type(error).__name__}"


@functools.cache
def models(num_outputs: int, is_list: bool) -> dict[str, Model]:
    data = Data.random()
    if is_list:
        parts = [_models(data, data.Y[:, j : j + 1]) for j in range(num_outputs)]
        return {name: ModelList(*(part[name] for part in parts)) for name in parts[0]}
    return _models(data, data.Y[:, :num_outputs])


def _models(data: Data, Y: Tensor) -> dict[str, Model]:
    o = Y.shape[-1]
    variational = SingleTaskVariationalGP(data.X, Y, num_outputs=o, inducing_points=data.X[:8]).eval()
    online = sg.OnlineGP.fit(data.X, Y, num_inducing=8, max_iterations=20)
    return {"SingleTaskVariationalGP": variational, "OnlineGP": online}


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    data = Data.random()
    print("| acquisition function | " + " | ".join(models(1, False)) + " |\n| --- | --- | --- |")
    for name, case in CASES.items():
        print(
            f"| {name} | "
            + " | ".join(attempt(case, m, data) for m in models(case.num_outputs, case.is_list).values())
            + " |"
        )
    print("| MaxPosteriorSampling | " + " | ".join(attempt_sampling(m, data) for m in models(1, False).values()) + " |")


if __name__ == "__main__":
    main()
