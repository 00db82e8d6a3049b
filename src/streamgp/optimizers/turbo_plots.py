"""Pictures of a TuRBO run."""

from typing import TYPE_CHECKING

import torch

from streamgp.optimizers.turbo_settings import TurboSettings
from streamgp.optimizers.turbo_state import TurboState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_lengths", "draw_progress"]


def draw_lengths(state: TurboState, settings: TurboSettings, axes: "Axes | None") -> "Axes":
    """Draw the length of the trust region against evaluations, with the length at which it is given up."""
    axes = _new_axes(axes)
    number = torch.arange(1, len(state.lengths) + 1)
    axes.step(number, state.lengths, where="post", color="tab:blue")
    axes.axhline(settings.rules.min_length, color="gray", linestyle=":", label="given up below")
    _draw_runs(state, axes)
    axes.set_yscale("log", base=2)
    axes.set_xlabel("evaluation")
    axes.set_ylabel("length of the trust region")
    axes.legend()
    return axes


def draw_progress(state: TurboState, settings: TurboSettings, axes: "Axes | None") -> "Axes":
    """Draw outcomes, and the best of all so far, against evaluations."""
    axes = _new_axes(axes)
    number, is_good = torch.arange(1, len(state.y) + 1), ~state.y.isnan()
    axes.plot(number[is_good], state.y[is_good], ".", color="tab:blue", markersize=3, label="outcome")
    y = state.y[is_good]
    if len(y):
        best = (y.cummax(0) if settings.maximize else y.cummin(0)).values
        axes.step(number[is_good], best, where="post", color="tab:orange", label="best so far")
    _draw_runs(state, axes)
    axes.set_xlabel("evaluation")
    axes.set_ylabel("objective")
    axes.legend()
    return axes


def _draw_runs(state: TurboState, axes: "Axes") -> None:
    """A line where each further run began."""
    for position in state.run.diff().nonzero().flatten().tolist():
        axes.axvline(position + 1.5, color="tab:red", linewidth=0.8, alpha=0.6)


def _new_axes(axes: "Axes | None") -> "Axes":
    import matplotlib.pyplot as plt  # slow to load, and few runs are drawn

    if axes is None:
        _, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    return axes
