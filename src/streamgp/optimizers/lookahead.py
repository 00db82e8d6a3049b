"""Knowledge gradient, of one step or several, and where its search starts."""

import torch
from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
from botorch.sampling.normal import SobolQMCNormalSampler
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.models import OnlineGP
from streamgp.optimizers.decision import Decision
from streamgp.optimizers.design import candidates_around, derived_seed, sobol_points
from streamgp.optimizers.goal import FeasibleMean
from streamgp.optimizers.maximize import maximize
from streamgp.optimizers.settings import Search

__all__ = ["knowledge_gradient_on", "lookahead", "propose_lookahead"]

# Points at which fantasies are maximised before the search moves them: good ones of today, and others.
_NUM_GOOD, _NUM_WIDE, _NUM_DRAWN = 64, 128, 2000
# Points at which the later steps of a look-ahead start.
_NUM_LATER_STARTS = 16
# Fantasies of the further steps of a look-ahead over several, each for every one before.
_NUM_LATER = 4


def lookahead(decision: Decision, search: Search, *, num_steps: int, seed: int) -> qMultiStepLookahead:
    """The expected value of the best point after steps to come; for one step that is knowledge gradient.

    Its terminal value, `FeasibleMean`, is exact, so that fantasies are all that is sampled.

    Args:
        decision: What it is made from.
        search: How many fantasies.
        num_steps: Number of steps.
        seed: Of the fantasies.
    """
    counts = _num_fantasies(search, num_steps)
    goal = decision.goal
    return qMultiStepLookahead(
        decision.model,
        batch_sizes=[1] * num_steps,
        samplers=[
            SobolQMCNormalSampler(torch.Size([count]), seed=derived_seed(seed, step))
            for step, count in enumerate(counts)
        ],
        valfunc_cls=[None] * num_steps + [FeasibleMean],
        valfunc_argfacs=[None] * num_steps + [lambda model, X: {"goal": goal}],
        X_pending=decision.pending_or_none,
    )


def propose_lookahead(decision: Decision, q: int, search: Search, *, num_steps: int, seed: int) -> Float[Tensor, "q d"]:
    """Maximise a look-ahead over points and over what would be recommended after each fantasy, all at once."""
    function = lookahead(decision, search, num_steps=num_steps, seed=seed)
    starts = _starts(decision, q, search, num_steps=num_steps, seed=seed)
    return maximize(function, q, search, num_dims=decision.num_dims, seed=seed, starts=starts)


@torch.no_grad()
def knowledge_gradient_on(
    decision: Decision, X: Float[Tensor, "b q d"], W: Float[Tensor, "w d"], *, num_fantasies: int, seed: int
) -> tuple[Float[Tensor, " b"], Float[Tensor, "f b d"]]:
    """Knowledge gradient where what is recommended is one of given points, or one of the points evaluated.

    Args:
        decision: What it is made from.
        X: Points to evaluate.
        W: Points to recommend.
        num_fantasies: Number of fantasies.
        seed: Of the fantasies.

    Returns:
        The expected value of the recommendation, and the recommended point of each fantasy.
    """
    sampler = SobolQMCNormalSampler(torch.Size([num_fantasies]), seed=derived_seed(seed, 0))
    fantasies = _fantasies(decision, X, sampler)
    choices = torch.cat([W.expand(len(X), *W.shape), X], dim=-2)
    best = decision.goal.value(fantasies.posterior(choices)).max(-1)
    index: Int[Tensor, "f b"] = best.indices
    return best.values.mean(0), choices[torch.arange(len(X)), index]


def _fantasies(decision: Decision, X: Float[Tensor, "b q d"], sampler: SobolQMCNormalSampler) -> OnlineGP:
    pending = decision.pending.expand(len(X), *decision.pending.shape)
    return decision.model.fantasize(torch.cat([X, pending], dim=-2), sampler)


@torch.no_grad()
def _starts(decision: Decision, q: int, search: Search, *, num_steps: int, seed: int) -> Float[Tensor, "r a d"]:
    """Points of largest knowledge gradient on a finite set, with what each fantasy would recommend of it.

    In a look-ahead over several steps, later points start at others of large knowledge gradient, and what is
    recommended at the end at what the first fantasy would recommend: worth as much as a single step, or more.
    """
    d = decision.num_dims
    generator = torch.Generator().manual_seed(derived_seed(seed, 100))
    drawn = candidates_around(decision.centres(), _NUM_DRAWN, generator=generator)
    good = drawn[decision.goal.value(decision.model.posterior(drawn)).topk(_NUM_GOOD).indices]
    W = torch.cat([good, sobol_points(_NUM_WIDE, d, seed=derived_seed(seed, 101))])
    order = torch.randperm(len(drawn), generator=generator)[: q * (len(drawn) // q)]
    raw = drawn[order].reshape(-1, q, d)[: search.raw_samples]
    counts = _num_fantasies(search, num_steps)
    value, recommended = knowledge_gradient_on(decision, raw, W, num_fantasies=counts[0], seed=seed)
    ranked = value.argsort(descending=True)
    chosen, later = ranked[: search.num_restarts], raw[ranked[:_NUM_LATER_STARTS]].flatten(0, 1)
    last = recommended[:, chosen].transpose(0, 1)
    parts, size = [raw[chosen]], 1
    for count in counts[:-1]:
        size *= count
        parts.append(later[torch.randint(len(later), (len(chosen), size), generator=generator)])
    return torch.cat([*parts, last.repeat(1, size * counts[-1] // counts[0], 1)], dim=-2)


def _num_fantasies(search: Search, num_steps: int) -> list[int]:
    first = search.num_fantasies if num_steps == 1 else max(search.num_fantasies // 4, 1)
    return [first] + [_NUM_LATER] * (num_steps - 1)
