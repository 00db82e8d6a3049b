"""A loop from inside: its model in the user's units, its rule, and the reasons of its suggestions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from streamgp.acquisition import AbstractRule, AbstractSpace
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.display import html_rows, html_table, with_uncertainty
from streamgp.errors import StreamGPError
from streamgp.gp.interactions import InteractionKernel
from streamgp.loops.best import Best, best_evaluated
from streamgp.loops.cube_space import Box
from streamgp.loops.exact_surrogate import ExactSurrogate
from streamgp.loops.parameter_space import ParameterSpace
from streamgp.loops.parameters import Real
from streamgp.loops.plots import is_within_limits
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current, is_initial
from streamgp.loops.surrogate import AbstractSurrogate, SparseSurrogate
from streamgp.loops.units import OutcomeUnits
from streamgp.training import FitResult

__all__ = ["Inspection", "OutcomeModel", "describe", "inspect_loop", "summarize"]

# Names that a table lists.
_MOST_NAMES = 12


def summarize(state: LoopState, settings: LoopSettings) -> str:
    """Summarize what was told, what is pending, and the best so far; nothing is fitted for it."""
    told = state.observations
    parts = [f"{told.num_told} {'comparisons' if settings.is_preference else 'outcomes'}"]
    num_failed = int((~told.is_success).sum())
    if num_failed:
        parts.append(f"{num_failed} failed")
    parts.append(f"{len(state.pending)} pending")
    best = None if isinstance(settings.space, PoolSpace) else _best(state, settings)
    return ", ".join(parts if best is None else [*parts, best])


def describe(title: str, state: LoopState, settings: LoopSettings) -> str:
    """Describe a loop for a notebook: what is looked for, what was told, and outcomes as a line."""
    space, told = settings.space, state.observations
    facts: dict[str, Any] = {}
    if isinstance(space, PoolSpace):
        facts["pool"] = f"{len(space.members)} members with {space.num_dims} inputs"
    else:
        names = list(space.column_names)
        more = [f"and {len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
        facts["parameters"] = ", ".join([*names[:_MOST_NAMES], *more])
        facts["objectives"] = ", ".join(
            f"{one.name} ({'maximize' if one.maximize else 'minimize'})" for one in settings.objectives
        )
    if settings.constraints:
        facts["constraints"] = ", ".join(settings.names[len(settings.objectives) :])
    facts["rule"] = type(settings.rule.innermost).__name__
    facts["so far"] = summarize(state, settings)
    return html_table(title, facts, line=told.y[:, 0].tolist())


def _best(state: LoopState, settings: LoopSettings) -> str | None:
    """The best so far: with its uncertainty if the model knows all that was told, otherwise as observed."""
    told, rule = state.observations, settings.rule
    is_shown = told.is_success & is_within_limits(told.y, settings)
    if isinstance(rule, KnowledgePerCost):
        is_shown = is_shown & rule.is_target(told.points)
    y = told.y[is_shown]
    y = y[~y[:, : len(settings.objectives)].isnan().any(-1)]
    if len(settings.objectives) > 1:
        if not len(y):
            return None
        signs = y.new_tensor([1.0 if one.maximize else -1.0 for one in settings.objectives])
        num_best = int(is_non_dominated(signs * y[:, : len(signs)]).sum())
        return f"{num_best} best trade-offs" if num_best > 1 else "1 best trade-off"
    if _is_current(state, settings):
        try:
            best: Best = best_evaluated(state, settings)
        except StreamGPError:  # what cannot be computed is not worth an error here
            return None
        return f"best {with_uncertainty(best.mean, best.std)}"
    return None if not len(y) else f"best observed {_extreme(y[:, 0], settings):.4g}"


def _extreme(y: Tensor, settings: LoopSettings) -> float:
    return float(y.max() if settings.objectives[0].maximize else y.min())


def _is_current(state: LoopState, settings: LoopSettings) -> bool:
    """Tell whether the model knows all that was told."""
    surrogate, data = state.surrogate, current(state, settings)
    if isinstance(surrogate, SparseSurrogate):
        return (surrogate.num_points, surrogate.num_pairs) == (len(data.points), len(data.pairs))
    return isinstance(surrogate, ExactSurrogate) and surrogate.num_fitted == int(data.is_informative.sum())


@final
@dataclass(frozen=True)
class OutcomeModel:
    """The model of one outcome, in the user's units.

    Attributes:
        name: Of the outcome; `"success"` for that of failures.
        kernel: The name of the kernel.
        lengthscales: Of each parameter. That of a logarithmic parameter is a factor, and one of discrete values or
            categories is a share of its range.
        effects: Of an interaction kernel, the shares of the variance due to single inputs, pairs and all, as far as
            these differ, and to ripples; otherwise empty.
        std: Standard deviation of the function a priori, in the units in which it is linear.
        noise: Standard deviation of an observation beside the function; None where outcomes are not real numbers.
        scale: `"standardized"`, `"logarithmic beyond ..."`, `"by ranks"`, or `"as told"`.
        evidence: Bound on the log likelihood, in the units of the model.
        num_inducing: Number of inducing points.
    """

    name: str
    kernel: str
    lengthscales: Mapping[str, float]
    effects: tuple[float, ...]
    std: float
    noise: float | None
    scale: str
    evidence: float
    num_inducing: int


@final
@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """A loop from inside.

    Attributes:
        outcomes: The model of each outcome, and of success if evaluations have failed; empty before the first fit.
        surrogate: The fitted model itself; None before the first fit.
        rule: What chooses points, with the policies that wrap it.
        why: A few words on each point of the last suggestion.
        asked: These points, in the user's units.
        is_initial: Whether the initial design goes on.
        num_told: Number of evaluations and comparisons.
        num_fitted: Number of them at the last fit; others were absorbed since.
        num_pending: Number of points that were asked for and not told yet.
        space: Where points are from.
        memory: What the rule remembers.
    """

    outcomes: tuple[OutcomeModel, ...]
    surrogate: AbstractSurrogate | None
    rule: AbstractRule
    why: tuple[str, ...]
    asked: Any
    is_initial: bool
    num_told: int
    num_fitted: int
    num_pending: int
    space: AbstractSpace
    memory: Any

    def __repr__(self) -> str:
        stage = "initial design" if self.is_initial else type(self.rule.innermost).__name__
        models = "; ".join(
            f"{one.name}: {one.kernel}, {one.scale}" + ("" if one.noise is None else f", noise {one.noise:.3g}")
            for one in self.outcomes
        )
        return f"Inspection({self.num_told} told, {self.num_pending} pending, {stage}; {models or 'no model yet'})"

    def _repr_html_(self) -> str:
        return html_rows("Inspection", [_row(one) for one in self.outcomes])


def _row(model: OutcomeModel) -> dict[str, Any]:
    return {
        "outcome": model.name,
        "kernel": model.kernel,
        "lengthscales": ", ".join(f"{name} {value:.3g}" for name, value in model.lengthscales.items()),
        "standard deviation": model.std,
        "noise": "" if model.noise is None else model.noise,
        "modeled": model.scale,
        "evidence": model.evidence,
    }


def inspect_loop(state: LoopState, settings: LoopSettings) -> Inspection:
    """Describe a state as it is; nothing is fitted for it."""
    surrogate = state.surrogate
    outcomes: tuple[OutcomeModel, ...] = ()
    if isinstance(surrogate, SparseSurrogate):
        names = (*settings.names, "success")
        units = (*surrogate.units, OutcomeUnits())
        outcomes = tuple(
            _describe(names[j], result, units[j], settings.space) for j, result in enumerate(surrogate.results)
        )
    return Inspection(
        outcomes=outcomes,
        surrogate=surrogate,
        rule=settings.rule,
        why=state.why,
        asked=None if state.asked is None else settings.space.show(state.asked),
        is_initial=is_initial(state, settings),
        num_told=state.observations.num_told,
        num_fitted=0 if surrogate is None else surrogate.num_fitted,
        num_pending=len(state.pending),
        space=settings.space,
        memory=state.memory,
    )


def _describe(name: str, result: FitResult, units: OutcomeUnits, space: AbstractSpace) -> OutcomeModel:
    kernel: Any = result.gp.process.prior.kernel
    base = getattr(kernel, "base_kernel", kernel)
    lengthscale = getattr(base, "lengthscale", None)
    noise, scale = result.likelihood.gaussian_noise_variance, abs(units.scale)
    variance = result.gp.process.prior.variance(result.gp.process.reference.reshape(-1, space.num_dims)[:1]).mean()
    is_sum = isinstance(kernel, InteractionKernel)
    return OutcomeModel(
        name=name,
        kernel=type(base).__name__,
        lengthscales={} if lengthscale is None else _lengthscales(lengthscale.detach().flatten(), space),
        effects=tuple(kernel.shares.detach().flatten().tolist()) if is_sum else (),
        std=scale * float(variance.sqrt()),
        noise=None if noise is None else scale * float(noise.max().sqrt()),
        scale=_in_words(units),
        evidence=float(result.info.bound),
        num_inducing=result.gp.num_inducing,
    )


def _lengthscales(values: Tensor, space: AbstractSpace) -> dict[str, float]:
    """Lengthscales of the columns of a model, in the user's units."""
    values = values.expand(space.num_dims) if len(values) == 1 else values
    if isinstance(space, Box):
        values = values * (space.upper - space.lower)
    if isinstance(space, PoolSpace):
        values = values * space.shift_and_scale[1]
    if not isinstance(space, ParameterSpace):
        names = space.column_names if len(space.column_names) == len(values) else range(len(values))
        return {str(name): float(value) for name, value in zip(names, values, strict=True)}
    found = {}
    for name, part in space.parts.items():
        one, value = space.parameters[name], float(values[part].amin())
        if isinstance(one, Real) and one.log:
            found[name] = math.exp(min(value * math.log(one.high / one.low), 700.0))
        else:
            found[name] = value * (one.high - one.low) if isinstance(one, Real) else value
    return found


def _in_words(units: OutcomeUnits) -> str:
    if units.ranks is not None:
        return "by ranks"
    knees = [f"{knee:.4g}" for knee in (units.lower_knee, units.upper_knee) if knee is not None]
    if knees:
        return f"logarithmic beyond {' and '.join(knees)}"
    return "as told" if units == OutcomeUnits() else "standardized"
