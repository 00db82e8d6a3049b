"""Pictures of a run."""

from typing import TYPE_CHECKING, Any

import torch
from botorch.utils.sampling import manual_seed
from torch import Tensor

from streamgp.acquisition import AbstractFunctionRule, KnowledgeGradient
from streamgp.display import new_axes
from streamgp.errors import ShapeError, UnsupportedError, ValueRangeError
from streamgp.loops.cube_space import Box
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState
from streamgp.loops.suggest import make_context
from streamgp.seeds import derived_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["check_drawable", "draw_acquisition", "draw_progress", "draw_region", "is_within_limits"]

# Points of the picture that are evaluated at a time.
_CHUNK = 256


def draw_progress(state: LoopState, settings: LoopSettings, axes: "Axes | None", *, output: int = 0) -> "Axes":
    """Draw outcomes, the best feasible one so far, and failures, in the order in which they were told."""
    if settings.is_preference:
        raise UnsupportedError("Comparisons have no outcomes to draw. Look at best() instead.")
    axes, told, objective = new_axes(axes), state.observations, settings.objectives[output]
    y, is_success = told.y[:, output], told.is_success
    is_success = is_success & ~y.isnan()
    is_feasible = is_success & is_within_limits(told.y, settings)
    number = torch.arange(1, len(y) + 1)
    axes.plot(number[is_feasible], y[is_feasible], ".", color="tab:blue", label="outcome")
    if settings.constraints:
        is_other = is_success & ~is_feasible
        axes.plot(number[is_other], y[is_other], ".", color="lightgray", label="not feasible")
    for k in number[~told.is_success]:
        axes.axvline(float(k), color="tab:red", alpha=0.3, linewidth=1)
    worst = -torch.inf if objective.maximize else torch.inf
    filled = torch.where(is_feasible, y, worst)
    best = (filled.cummax(0) if objective.maximize else filled.cummin(0)).values if len(y) else filled
    known = best.isfinite()
    axes.step(number[known], best[known], where="post", color="tab:orange", label="best so far")
    axes.set_xlabel("evaluation")
    axes.set_ylabel(objective.name)
    axes.legend()
    return axes


def draw_region(runs: Tensor, lengths: Tensor, axes: "Axes | None", *, least: float) -> "Axes":
    """Draw the length of a trust region against evaluations, with the length at which it is given up."""
    axes = new_axes(axes)
    axes.step(torch.arange(1, len(lengths) + 1), lengths, where="post", color="tab:blue")
    axes.axhline(least, color="gray", linestyle=":", label="given up below")
    for position in runs.diff().nonzero().flatten().tolist():
        axes.axvline(position + 1.5, color="tab:red", linewidth=0.8, alpha=0.6)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("evaluation")
    axes.set_ylabel("length of the trust region")
    axes.legend()
    return axes


def check_drawable(settings: LoopSettings, num_steps: int) -> None:
    """Refuse to draw an acquisition function that has no surface."""
    space, rule = settings.space, settings.rule.innermost
    if space.num_dims != 2 or not isinstance(space, Box):
        raise ShapeError(f"The acquisition is drawn over the two dimensions of a box, but there are {space.num_dims}.")
    if not isinstance(rule, AbstractFunctionRule | KnowledgeGradient):
        raise UnsupportedError(
            f"The rule {type(rule).__name__} has no value at a single point that could be drawn. Those that maximize a "
            "function have, such as NoisyExpectedImprovement and KnowledgeGradient."
        )
    if num_steps < 2:
        raise ValueRangeError(f"num_steps must be at least 2, but is {num_steps}.")


def draw_acquisition(state: LoopState, settings: LoopSettings, axes: "Axes | None", *, num_steps: int) -> "Axes":
    """Draw the acquisition function of a single point over two dimensions, with evaluated and pending points."""
    space: Any = settings.space
    rule: Any = settings.rule.innermost
    context, told = make_context(state, settings), state.observations
    axis = torch.linspace(0.0, 1.0, num_steps, dtype=torch.float64)
    seed = derived_seed(settings.seed, state.num_asks)
    with torch.no_grad(), manual_seed(seed):
        function = rule.function(context, seed=seed)
        parts: Any = torch.cartesian_prod(axis, axis).unsqueeze(-2).split(_CHUNK)
        values = torch.cat([function(part) for part in parts]).reshape(num_steps, num_steps)
    axes = new_axes(axes)
    first, second = space.show(torch.stack([axis, axis], dim=-1)).unbind(-1)
    picture = axes.contourf(first, second, values.mT, levels=20, cmap="viridis")
    axes.figure.colorbar(picture, ax=axes, label=type(rule).__name__)
    for points, style, label in (
        (told.points[told.is_success], "w.", "known"),
        (told.pairs.flatten(0, 1), "w.", "compared"),
        (told.failures, "rx", "failed"),
        (state.pending, "w^", "pending"),
    ):
        if len(points):
            axes.plot(*space.show(points).unbind(-1), style, label=label)
    axes.set_xlabel("dimension 0")
    axes.set_ylabel("dimension 1")
    return axes


def is_within_limits(y: Tensor, settings: LoopSettings) -> Tensor:
    """Mark evaluations that were observed to keep the constraints, as far as these were measured."""
    is_within = torch.ones(len(y), dtype=torch.bool)
    for j, constraint in enumerate(settings.constraints, start=len(settings.objectives)):
        is_within &= constraint.is_kept(y[:, j]) | y[:, j].isnan()
    return is_within
