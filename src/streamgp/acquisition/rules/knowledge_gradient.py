"""Knowledge gradient, of one step or several, and where its search starts."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
from botorch.exceptions.warnings import BotorchWarning
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.abstract_rule import AbstractRule
from streamgp.acquisition.context import Context
from streamgp.acquisition.discrete_knowledge_gradient import DiscreteKnowledgeGradient
from streamgp.acquisition.feasible_objective import FeasibleMean
from streamgp.acquisition.rules.improvement import ExpectedUtilityOfBest
from streamgp.acquisition.space import Search
from streamgp.errors import UnsupportedError
from streamgp.seeds import derived_seed, seeded
from streamgp.storage import register
from streamgp.threads import limit_threads

__all__ = ["KnowledgeGradient", "MultiStep", "knowledge_gradient_on", "lookahead"]

# Points at which fantasies are maximized before the search moves them: good ones of today, and others.
_NUM_GOOD, _NUM_WIDE, _NUM_DRAWN = 64, 128, 2000
# Points at which the later steps of a look-ahead start.
_NUM_LATER_STARTS = 16
# Values of fantasies that are held at a time, so that they stay in a processor's cache.
_NUM_VALUES = 2**19
# Further points that may be recommended in a space that is not continuous, beside the known ones.
_NUM_RECOMMENDED = 128


@register
@final
@dataclass(frozen=True)
class KnowledgeGradient(AbstractRule):
    """The expected best mean after the evaluation, wherever that may be.

    Of comparisons, what a comparison without noise would be worth: `ExpectedUtilityOfBest`.

    Attributes:
        num_fantasies: Outcomes that are imagined of each set of points.
    """

    num_fantasies: int = 64
    knows_constraints: ClassVar[bool] = True

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Maximize over points and over what would be recommended after each fantasy, all at once."""
        if context.is_comparison:
            return ExpectedUtilityOfBest().propose(context, q, seed=seed)
        with manual_seed(derived_seed(seed, 200)):
            if not context.space.is_continuous:
                function, centers = self.function(context, seed=seed), context.centers()
                return context.space.maximize(function, q, context.search, seed=seed, centers=centers)
            return _propose_lookahead(context, q, [self.num_fantasies], seed=seed)

    def function(self, context: Context, *, seed: int) -> Any:
        """Knowledge gradient of inputs `(*b, q, d)`, where one of a finite set of points is recommended."""
        if context.is_comparison:
            return ExpectedUtilityOfBest().function(context, seed=seed)
        drawn = context.space.inputs(context.candidates(_NUM_RECOMMENDED, seeded(seed, 302)))
        W = torch.cat([context.baseline, drawn])
        if context.objective.limits or not _is_gaussian(context.model):
            return _SampledKnowledgeGradient(context, W, self.num_fantasies, seed)
        return DiscreteKnowledgeGradient(context, W)


@register
@final
@dataclass(frozen=True)
class MultiStep(AbstractRule):
    """Knowledge gradient of two evaluations, one after the other.

    Attributes:
        num_fantasies: Outcomes that are imagined of the first evaluation.
        num_later: Outcomes of the second one, for each of the first.
    """

    num_fantasies: int = 16
    num_later: int = 4
    knows_constraints: ClassVar[bool] = True

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Maximize over the points of all steps and what would be recommended at the end."""
        if not context.space.is_continuous:
            raise UnsupportedError(
                "MultiStep searches by gradients, but the space has discrete parameters. Use KnowledgeGradient."
            )
        with manual_seed(derived_seed(seed, 200)):
            return _propose_lookahead(context, q, [self.num_fantasies, self.num_later], seed=seed)


@final
class _SampledKnowledgeGradient(AcquisitionFunction):
    """Knowledge gradient on a finite set by fantasies, for outcomes that are not Gaussian or have limits."""

    def __init__(self, context: Context, W: Float[Tensor, "w d"], num_fantasies: int, seed: int) -> None:
        super().__init__(model=context.model)
        self.context, self.W, self.num_fantasies, self.seed = context, W, num_fantasies, seed
        self.set_X_pending(context.pending_or_none)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # noqa: N802 # as BoTorch calls it
        pending: Any = X_pending
        self.X_pending = pending

    def forward(self, X: Tensor) -> Tensor:
        pending = self.context.pending[:0] if self.X_pending is None else self.X_pending
        context = replace(self.context, pending=pending)
        return knowledge_gradient_on(context, X, self.W, num_fantasies=self.num_fantasies, seed=self.seed)[0]


def _is_gaussian(model: Any) -> bool:
    return all(one is not None and one.gaussian_noise_variance is not None for one in model.likelihoods)


def lookahead(context: Context, counts: list[int], *, seed: int) -> qMultiStepLookahead:
    """The expected value of the best point after steps to come; for one step that is knowledge gradient.

    Its terminal value, `FeasibleMean`, is exact, so that fantasies are all that is sampled.

    Args:
        context: What it is made from.
        counts: How many fantasies in each step.
        seed: Of the fantasies.
    """
    num_steps, objective = len(counts), context.objective
    return qMultiStepLookahead(
        context.model,
        batch_sizes=[1] * num_steps,
        samplers=[
            SobolQMCNormalSampler(torch.Size([count]), seed=derived_seed(seed, step))
            for step, count in enumerate(counts)
        ],
        valfunc_cls=[None] * num_steps + [FeasibleMean],
        valfunc_argfacs=[None] * num_steps + [lambda model, X: {"objective": objective}],
        X_pending=context.pending_or_none,
    )


def _propose_lookahead(context: Context, q: int, counts: list[int], *, seed: int) -> Float[Tensor, "q d"]:
    function = lookahead(context, counts, seed=seed)
    starts = _starts(context, q, counts, seed=seed)
    with limit_threads(), manual_seed(seed):
        return _maximize_jointly(function, q, context.search, starts)


def _maximize_jointly(function: Any, q: int, search: Search, starts: Float[Tensor, "r a d"]) -> Float[Tensor, "q d"]:
    """Maximize over the unit cube from given starts of all points at once."""
    bounds = torch.stack([torch.zeros(starts.shape[-1]), torch.ones(starts.shape[-1])]).to(starts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        points, _ = optimize_acqf(
            function,
            bounds,
            q=q,
            num_restarts=search.num_restarts,
            raw_samples=None,
            batch_initial_conditions=starts,
            retry_on_optimization_warning=False,
            options={"maxiter": search.max_iterations, "batch_limit": search.num_restarts},
        )
    return points.detach().clamp(0.0, 1.0)


def knowledge_gradient_on(
    context: Context, X: Float[Tensor, "*b q d"], W: Float[Tensor, "w d"], *, num_fantasies: int, seed: int
) -> tuple[Float[Tensor, "*b"], Float[Tensor, "f *b d"]]:
    """Knowledge gradient where what is recommended is one of given points, or one of the points evaluated.

    Args:
        context: What it is made from.
        X: Inputs to evaluate.
        W: Inputs to recommend.
        num_fantasies: Number of fantasies.
        seed: Of the fantasies.

    Returns:
        The expected value of the recommendation, and the recommended point of each fantasy.
    """
    sampler = SobolQMCNormalSampler(torch.Size([num_fantasies]), seed=derived_seed(seed, 0))
    fantasies = _fantasies(context, X, sampler)
    # Apart, as what is known of W before the evaluation is the same for all X.
    values = [context.objective.value(fantasies.posterior(points)) for points in (W, X)]
    best = torch.cat(values, dim=-1).max(-1)
    index, choices = best.indices, torch.cat([W.expand(*X.shape[:-2], *W.shape), X], dim=-2)
    chosen = choices.expand(num_fantasies, *choices.shape).gather(
        -2, index[..., None, None].expand(*index.shape, 1, choices.shape[-1])
    )
    return best.values.mean(0), chosen.squeeze(-2)


def _knowledge_gradient_in_parts(
    context: Context, X: Float[Tensor, "b q d"], W: Float[Tensor, "w d"], *, num_fantasies: int, seed: int
) -> tuple[Float[Tensor, " b"], Float[Tensor, "f b d"]]:
    """Evaluate many sets of points, a part of them at a time: three times faster than all at once."""
    parts = X.split(max(1, _NUM_VALUES // (num_fantasies * len(W))))
    found = [knowledge_gradient_on(context, part, W, num_fantasies=num_fantasies, seed=seed) for part in parts]
    return torch.cat([value for value, _ in found]), torch.cat([points for _, points in found], dim=1)


def _fantasies(context: Context, X: Float[Tensor, "*b q d"], sampler: SobolQMCNormalSampler) -> Any:
    pending = context.pending.expand(*X.shape[:-2], *context.pending.shape)
    model: Any = context.model  # any that fantasizes
    return model.fantasize(torch.cat([X, pending], dim=-2), sampler)


@torch.no_grad()
def _starts(context: Context, q: int, counts: list[int], *, seed: int) -> Float[Tensor, "r a d"]:
    """Points of largest knowledge gradient on a finite set, with what each fantasy would recommend of it.

    In a look-ahead over several steps, later points start at others of large knowledge gradient, and what is
    recommended at the end at what the first fantasy would recommend: worth as much as a single step, or more.
    """
    d, search, space = context.space.num_dims, context.search, context.space
    generator = seeded(seed, 100)
    drawn = context.candidates(_NUM_DRAWN, generator)
    good = drawn[context.objective.value(context.model.posterior(drawn)).topk(_NUM_GOOD).indices]
    wide = space.design(_NUM_WIDE, num_initial=_NUM_WIDE, num_before=0, seed=derived_seed(seed, 101))
    W = torch.cat([good, wide])
    order = torch.randperm(len(drawn), generator=generator)[: q * (len(drawn) // q)]
    raw = drawn[order].reshape(-1, q, d)[: search.raw_samples]
    value, recommended = _knowledge_gradient_in_parts(context, raw, W, num_fantasies=counts[0], seed=seed)
    ranked = value.argsort(descending=True)
    chosen, later = ranked[: search.num_restarts], raw[ranked[:_NUM_LATER_STARTS]].flatten(0, 1)
    last = recommended[:, chosen].transpose(0, 1)
    parts, size = [raw[chosen]], 1
    for count in counts[:-1]:
        size *= count
        parts.append(later[torch.randint(len(later), (len(chosen), size), generator=generator)])
    return torch.cat([*parts, last.repeat(1, size * counts[-1] // counts[0], 1)], dim=-2)
