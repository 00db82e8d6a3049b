"""Finding the best of what is only compared: Laplace and sparse models, and several rules."""

import time
from dataclasses import dataclass
from itertools import combinations
from typing import Any, final

import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.acquisition.preference import qExpectedUtilityOfBestOption
from botorch.fit import fit_gpytorch_mll
from botorch.models.model import Model
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.priors import GammaPrior, SmoothedBoxPrior
from torch import Tensor

from paper.baselines.comparison_gradient import ComparisonKnowledgeGradient
from paper.problems import PreferenceCosine
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.likelihoods import Preference
from streamgp.optimizers import Optimizer

__all__ = ["STUDY", "PreferenceSettings"]

# Random points among which the best may be after a comparison, besides those that were compared before.
_NUM_RIVALS = 64


@final
@dataclass(frozen=True)
class PreferenceSettings:
    """Settings of the loop.

    Attributes:
        num_initial: Uniform points that all methods of a seed start with.
        num_comparisons: Pairs of them that are compared first.
        num_batches: Batches after these.
        batch_size: Points of a batch.
        num_inducing: Most inducing points of the sparse models.
        num_restarts: Starts of each search.
        raw_samples: Points among which those starts are chosen.
        max_iterations: Most iterations of L-BFGS in a search.
        num_fantasies: Fantasies of knowledge gradient.
        num_samples: Samples of the other rules.
    """

    num_initial: int
    num_comparisons: int
    num_batches: int
    batch_size: int
    num_inducing: int
    num_restarts: int
    raw_samples: int
    max_iterations: int
    num_fantasies: int
    num_samples: int


@final
@dataclass(frozen=True, eq=False)
class _Comparisons:
    """Points, and pairs of their indices, the winner first."""

    X: Tensor
    pairs: Tensor


def run(problem: str, method: str, seed: int, settings: PreferenceSettings) -> UnitOutcome:
    """Look for the best point by a method; each has a model and data of its own.

    Returns:
        After the first comparisons and each batch: `num_evaluations`, points that were compared; `best`, the largest
        utility among them; `recommended`, that of the point with the largest posterior mean. And `seconds` of the
        processor for each batch, fit and search together.
    """
    utility, generator = PreferenceCosine(), torch.Generator().manual_seed(seed)
    X = torch.rand(settings.num_initial, utility.dim, generator=generator, dtype=torch.float64)
    every = torch.combinations(torch.arange(len(X)))
    chosen = every[torch.randperm(len(every), generator=generator)[: settings.num_comparisons]]
    known = _Comparisons(X, _compare(utility, X, chosen, generator))
    counts, best, recommended, seconds = [], [], [], []
    torch.manual_seed(seed)  # for what BoTorch draws without asking
    for batch in range(settings.num_batches + 1):
        began = time.process_time()
        model = _fit(known, method, seed, settings)
        with torch.no_grad():
            posterior: Any = model.posterior(known.X)
            incumbent = int(posterior.mean.squeeze(-1).argmax())
        counts.append(len(known.X))
        best.append(rounded(float(utility(known.X).max())))
        recommended.append(rounded(float(utility(known.X[incumbent].unsqueeze(0)))))
        if batch == settings.num_batches:
            break
        new = _suggest(model, known, method, settings=settings, seed=1000 * seed + batch)
        seconds.append(rounded(time.process_time() - began))
        indices = range(len(known.X), len(known.X) + len(new))
        pairs = list(combinations(indices, 2)) if problem == "within" else [(each, incumbent) for each in indices]
        X = torch.cat([known.X, new])
        known = _Comparisons(X, torch.cat([known.pairs, _compare(utility, X, torch.tensor(pairs), generator)]))
    return {"num_evaluations": counts, "best": best, "recommended": recommended, "seconds": seconds}


def _compare(utility: PreferenceCosine, X: Tensor, pairs: Tensor, generator: torch.Generator) -> Tensor:
    """The pairs with the winner first."""
    first_wins = utility.compare(X[pairs[:, 0]], X[pairs[:, 1]], generator)
    return torch.where(first_wins.unsqueeze(-1), pairs, pairs.flip(-1))


def _fit(known: _Comparisons, method: str, seed: int, settings: PreferenceSettings) -> Model:
    if method.startswith("laplace"):
        pairwise = PairwiseGP(known.X, known.pairs)
        fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(pairwise.likelihood, pairwise))
        return pairwise
    optimizer = Optimizer(
        PreferenceCosine().bounds,
        likelihood=Preference(_noise_scale()),
        kernel=_paper_kernel(known.X.shape[-1]) if method.startswith("paper") else None,
        num_inducing=settings.num_inducing,
        seed=seed,
    )
    optimizer.tell_comparison(known.X[known.pairs[:, 0]], known.X[known.pairs[:, 1]])
    return optimizer.model()


def _paper_kernel(num_dims: int) -> Kernel:
    """The kernel of the paper's code, with its priors."""
    base = MaternKernel(nu=2.5, ard_num_dims=num_dims, lengthscale_prior=GammaPrior(1.2, 0.5))
    return ScaleKernel(base, outputscale_prior=SmoothedBoxPrior(1.0, 4.0)).double()


def _suggest(model: Model, known: _Comparisons, method: str, *, settings: PreferenceSettings, seed: int) -> Tensor:
    q, d = settings.batch_size, known.X.shape[-1]
    generator = torch.Generator().manual_seed(seed)
    if method == "random":
        return torch.rand(q, d, generator=generator, dtype=known.X.dtype)
    rule = method.partition("-")[2]
    sampler = SobolQMCNormalSampler(torch.Size([settings.num_samples]), seed=seed)
    if rule == "exact-kg":
        rivals = torch.cat([known.X, torch.rand(_NUM_RIVALS, d, generator=generator, dtype=known.X.dtype)])
        gain = ComparisonKnowledgeGradient(model, rivals, _noise_scale())
        pair = _maximize(gain, 2, settings, d)
        # Further points one by one, each for its comparison with the better one of the pair.
        with torch.no_grad():
            posterior: Any = model.posterior(pair)
            first = pair[int(posterior.mean.squeeze(-1).argmax())].unsqueeze(0)
        more = [_maximize(_AgainstFixed(gain, first), 1, settings, d) for _ in range(q - 2)]
        return torch.cat([pair, *more])
    if rule == "qkg":
        return _maximize(qKnowledgeGradient(model, num_fantasies=settings.num_fantasies), q, settings, d)
    if rule == "qeubo":
        return _maximize(qExpectedUtilityOfBestOption(model, sampler=sampler), q, settings, d)
    return _maximize(qLogNoisyExpectedImprovement(model, known.X, sampler=sampler), q, settings, d)


class _AgainstFixed(torch.nn.Module):
    """A function of pairs as one of their first points."""

    def __init__(self, function: ComparisonKnowledgeGradient, fixed: Tensor) -> None:
        super().__init__()
        self._function = function
        self._fixed = fixed

    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at points `(*b, 1, d)`."""
        value: Tensor = self._function(torch.cat([X, self._fixed.expand_as(X)], dim=-2))
        return value


def _maximize(function: Any, q: int, settings: PreferenceSettings, num_dims: int) -> Tensor:
    bounds = torch.stack([torch.zeros(num_dims), torch.ones(num_dims)]).double()
    found, _ = optimize_acqf(
        function,
        bounds,
        q=q,
        num_restarts=settings.num_restarts,
        raw_samples=settings.raw_samples,
        options={"maxiter": settings.max_iterations, "batch_limit": 5},
    )
    return found.detach()


def _noise_scale() -> float:
    return float(PreferenceCosine().noise_variance ** 0.5)


STUDY = Study(
    name="preferences",
    problems={
        "within": "new points are compared with each other, as in the paper's code",
        "incumbent": "new points are compared with the best so far",
    },
    methods={
        "laplace-qnei": "PairwiseGP, qNEI",
        "laplace-qeubo": "PairwiseGP, qEUBO",
        "svgp-qnei": "SVGP, qNEI",
        "svgp-qkg": "SVGP, qKG",
        "svgp-qeubo": "SVGP, qEUBO",
        "svgp-exact-kg": "SVGP, one-step exact KG",
        "paper-qnei": "SVGP with the paper's priors, qNEI",
        "paper-qkg": "SVGP with the paper's priors, qKG",
        "random": "random",
    },
    settings=PreferenceSettings,
    run=run,
)
