"""Pictures of a run."""

from typing import TYPE_CHECKING

import torch
from botorch.utils.sampling import manual_seed
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import ShapeError, UnsupportedError, ValueRangeError
from streamgp.optimizers.acquisitions import improvement_function
from streamgp.optimizers.decision import Decision, refitted
from streamgp.optimizers.design import candidates_around, derived_seed
from streamgp.optimizers.lookahead import knowledge_gradient_on
from streamgp.optimizers.settings import Settings
from streamgp.optimizers.state import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_acquisition", "draw_progress"]

# Acquisition functions with a value at each single point; the others draw.
_SURFACES = ("qkg", "qnei", "qei", "qucb", "gibbon")
_NUM_RECOMMENDED = 256
# Points of the picture that are evaluated at a time.
_CHUNK = 256


def draw_progress(state: State, settings: Settings, axes: "Axes | None") -> "Axes":
    """Draw outcomes, the best feasible one so far, and failures, in the order in which they were told."""
    if settings.is_preference:
        raise UnsupportedError("Comparisons have no outcomes to draw. Look at best() instead.")
    axes = _new_axes(axes)
    y, is_success = state.y[:, 0], state.is_success
    is_feasible = is_success & _within(state, settings)
    number = torch.arange(1, len(y) + 1)
    axes.plot(number[is_feasible], y[is_feasible], ".", color="tab:blue", label="outcome")
    if settings.constraints:
        is_other = is_success & ~is_feasible
        axes.plot(number[is_other], y[is_other], ".", color="lightgray", label="not feasible")
    for k in number[~is_success]:
        axes.axvline(float(k), color="tab:red", alpha=0.3, linewidth=1)
    worst = -torch.inf if settings.maximize else torch.inf
    filled = torch.where(is_feasible, y, worst)
    best = (filled.cummax(0) if settings.maximize else filled.cummin(0)).values if len(y) else filled
    known = best.isfinite()
    axes.step(number[known], best[known], where="post", color="tab:orange", label="best so far")
    axes.set_xlabel("evaluation")
    axes.set_ylabel("objective")
    axes.legend()
    return axes


def draw_acquisition(state: State, settings: Settings, axes: "Axes | None", *, num_steps: int) -> "Axes":
    """Draw the acquisition function of a single point over two dimensions, with evaluated and pending points."""
    box = settings.box
    if box.num_dims != 2:
        raise ShapeError(f"The acquisition is drawn over two dimensions, but there are {box.num_dims}.")
    if settings.acquisition not in _SURFACES:
        raise UnsupportedError(
            f"The acquisition {settings.acquisition!r} has no value at a single point that could be drawn. "
            f"Those that have are {', '.join(map(repr, _SURFACES))}."
        )
    if num_steps < 2:
        raise ValueRangeError(f"num_steps must be at least 2, but is {num_steps}.")
    decision, data = Decision.make(refitted(state, settings), settings), state.data
    axis = torch.linspace(0.0, 1.0, num_steps, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    seed = derived_seed(settings.seed, state.num_asks)
    values = _surface(decision, settings, grid, seed=seed).reshape(num_steps, num_steps)
    axes = _new_axes(axes)
    first, second = box.to_user(torch.stack([axis, axis], dim=-1)).unbind(-1)
    picture = axes.contourf(first, second, values.mT, levels=20, cmap="viridis")
    axes.figure.colorbar(picture, ax=axes, label=settings.acquisition)
    for points, style, label in (
        (data.baseline, "w.", "known"),
        (data.failures, "rx", "failed"),
        (state.pending, "w^", "pending"),
    ):
        if len(points):
            axes.plot(*box.to_user(points).unbind(-1), style, label=label)
    axes.set_xlabel("dimension 0")
    axes.set_ylabel("dimension 1")
    return axes


@torch.no_grad()
def _surface(decision: Decision, settings: Settings, grid: Float[Tensor, "n d"], *, seed: int) -> Float[Tensor, " n"]:
    """Values at single points; knowledge gradient with recommendations from a finite set."""
    search, parts = settings.search, grid.unsqueeze(-2).split(_CHUNK)
    if settings.acquisition == "qkg" and not decision.is_comparison:
        generator = torch.Generator().manual_seed(seed)
        W = candidates_around(decision.centres(), _NUM_RECOMMENDED, generator=generator)
        values = [
            knowledge_gradient_on(decision, part, W, num_fantasies=search.num_fantasies, seed=seed)[0] for part in parts
        ]
        return torch.cat(values)
    with manual_seed(seed):
        function = improvement_function(settings.acquisition, decision, search, seed)
        return torch.cat([function(part) for part in parts])


def _within(state: State, settings: Settings) -> Tensor:
    """Which evaluations were observed to keep the constraints."""
    is_within = torch.ones(len(state.y), dtype=torch.bool)
    for j, constraint in enumerate(settings.constraints, start=1):
        if constraint.upper is not None:
            is_within &= state.y[:, j] <= constraint.upper
        if constraint.lower is not None:
            is_within &= state.y[:, j] >= constraint.lower
    return is_within


def _new_axes(axes: "Axes | None") -> "Axes":
    import matplotlib.pyplot as plt  # slow to load, and few runs are drawn

    if axes is None:
        _, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    return axes
