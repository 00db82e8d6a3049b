"""Suggestions by the name of an acquisition function."""

from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy
from botorch.acquisition.monte_carlo import qSimpleRegret, qUpperConfidenceBound
from botorch.acquisition.objective import GenericMCObjective
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import lookahead_thompson_sampling
from streamgp.optimizers.decision import Decision
from streamgp.optimizers.design import candidates_around, derived_seed
from streamgp.optimizers.lookahead import propose_lookahead
from streamgp.optimizers.maximize import maximize
from streamgp.optimizers.settings import Search

__all__ = ["improvement_function", "propose"]

# Of the upper confidence bound: the mean plus two standard deviations.
_BETA = 4.0
_NUM_MAX_VALUES = 16
_NUM_STEPS = 2


def propose(name: str, decision: Decision, q: int, *, search: Search, seed: int) -> Float[Tensor, "q d"]:
    """Choose points by an acquisition function.

    Args:
        name: Of the acquisition function.
        decision: What it is made from.
        q: Number of points.
        search: How much work to do.
        seed: Of everything random.
    """
    with manual_seed(derived_seed(seed, 200)):  # for what BoTorch draws without asking
        return _PROPOSERS[name](decision, q, search, seed)


def improvement_function(name: str, decision: Decision, search: Search, seed: int) -> Any:
    """A function of sets of points that BoTorch maximises as it is.

    For comparisons `"qkg"` is the expected utility of the best of the points, the best known one among them: what a
    comparison without noise is worth by knowledge gradient.

    References:
        Astudillo, Lin, Bakshy, Frazier (2023), qEUBO: a decision-theoretic acquisition function for preferential
        Bayesian optimization.
    """
    model, goal, pending = decision.model, decision.goal, decision.pending_or_none
    if name == "gibbon":
        generator = torch.Generator().manual_seed(derived_seed(seed, 1))
        candidates = candidates_around(decision.centres(), search.num_candidates, generator=generator)
        return qLowerBoundMaxValueEntropy(
            model, candidates, num_mv_samples=_NUM_MAX_VALUES, maximize=goal.weight > 0, X_pending=pending
        )
    sampler = SobolQMCNormalSampler(torch.Size([search.num_samples]), seed=derived_seed(seed, 0))
    objective = GenericMCObjective(goal.objective)
    if name == "qkg":
        rivals = torch.cat([decision.pending, decision.centres()[:1]])
        return qSimpleRegret(model, sampler=sampler, objective=objective, X_pending=rivals)
    if name == "qucb":
        return qUpperConfidenceBound(model, _BETA, sampler=sampler, objective=objective, X_pending=pending)
    common: dict[str, Any] = {
        "sampler": sampler,
        "objective": objective,
        "constraints": goal.constraints,
        "X_pending": pending,
    }
    if name == "qnei":
        return qLogNoisyExpectedImprovement(model, decision.baseline, **common)
    return qLogExpectedImprovement(model, decision.best_known(), **common)


def _propose_improvement(name: str) -> Callable[[Decision, int, Search, int], Tensor]:
    def proposed(decision: Decision, q: int, search: Search, seed: int) -> Tensor:
        function = improvement_function(name, decision, search, seed)
        return maximize(function, q, search, num_dims=decision.num_dims, seed=derived_seed(seed, 2))

    return proposed


def _propose_thompson(decision: Decision, q: int, search: Search, seed: int) -> Tensor:
    """The most wanted candidate of each of q functions drawn jointly, none twice."""
    generator = torch.Generator().manual_seed(derived_seed(seed, 3))
    C = candidates_around(decision.centres(), search.num_candidates, generator=generator)
    with torch.no_grad():
        samples = decision.model.posterior(C).rsample(torch.Size([q]))
    chosen: list[int] = []
    for sample in samples:
        score, violation = decision.goal.objective(sample), decision.goal.violation(sample)
        score[chosen], violation[chosen] = -torch.inf, torch.inf
        # Where no candidate is feasible, the one that comes nearest.
        is_good = violation == 0
        chosen.append(int(score.masked_fill(~is_good, -torch.inf).argmax() if is_good.any() else violation.argmin()))
    return C[chosen]


def _propose_lts(decision: Decision, q: int, search: Search, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(derived_seed(seed, 4))
    centres = decision.centres()
    return lookahead_thompson_sampling(
        decision.model,
        lambda num: candidates_around(centres, num, generator=generator),
        q=q,
        num_candidates=search.num_candidates,
        generator=generator,
    )


def _propose_knowledge_gradient(decision: Decision, q: int, search: Search, seed: int) -> Tensor:
    if not decision.is_comparison:
        return propose_lookahead(decision, q, search, num_steps=1, seed=seed)
    return _propose_improvement("qkg")(decision, q, search, seed)


_PROPOSERS: dict[str, Callable[[Decision, int, Search, int], Tensor]] = {
    "qkg": _propose_knowledge_gradient,
    "multi_step": lambda decision, q, search, seed: propose_lookahead(
        decision, q, search, num_steps=_NUM_STEPS, seed=seed
    ),
    "qnei": _propose_improvement("qnei"),
    "qei": _propose_improvement("qei"),
    "qucb": _propose_improvement("qucb"),
    "gibbon": _propose_improvement("gibbon"),
    "thompson": _propose_thompson,
    "lts": _propose_lts,
}
