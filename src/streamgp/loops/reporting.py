"""What a loop knows, in one line and as a small table."""

from typing import Any

from botorch.utils.multi_objective.pareto import is_non_dominated
from torch import Tensor

from streamgp.display import html_table, with_uncertainty
from streamgp.errors import StreamGPError
from streamgp.loops.best import Best, best_evaluated
from streamgp.loops.exact_surrogate import ExactSurrogate
from streamgp.loops.plots import is_within_limits
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current
from streamgp.loops.surrogate import SparseSurrogate

__all__ = ["describe", "summarize"]

# Names that a table lists.
_MOST_NAMES = 12


def summarize(state: LoopState, settings: LoopSettings) -> str:
    """How much was told, what is pending, and the best so far; nothing is fitted for it."""
    told = state.observations
    parts = [f"{told.num_told} {'comparisons' if settings.is_preference else 'outcomes'}"]
    num_failed = int((~told.is_success).sum())
    if num_failed:
        parts.append(f"{num_failed} failed")
    parts.append(f"{len(state.pending)} pending")
    best = None if isinstance(settings.space, PoolSpace) else _best(state, settings)
    return ", ".join(parts if best is None else [*parts, best])


def describe(title: str, state: LoopState, settings: LoopSettings) -> str:
    """The same for a notebook, with what is looked for, and outcomes as a line."""
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
    facts["rule"] = type(settings.rule).__name__
    facts["so far"] = summarize(state, settings)
    return html_table(title, facts, line=told.y[:, 0].tolist())


def _best(state: LoopState, settings: LoopSettings) -> str | None:
    """The best so far: with its uncertainty if the model knows all that was told, otherwise as observed."""
    told = state.observations
    y = told.y[told.is_success & is_within_limits(told.y, settings)]
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
    """Whether the model knows all that was told."""
    surrogate, data = state.surrogate, current(state, settings)
    if isinstance(surrogate, SparseSurrogate):
        return (surrogate.num_points, surrogate.num_pairs) == (len(data.points), len(data.pairs))
    return isinstance(surrogate, ExactSurrogate) and surrogate.num_fitted == int(data.is_informative.sum())
