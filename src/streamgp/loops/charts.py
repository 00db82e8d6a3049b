"""Pictures of what a loop has learned: two parameters at a time, all of them side by side, and how well it predicts."""

import math
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.display import new_axes
from streamgp.errors import OptionError, UnsupportedError
from streamgp.loops.best import best_evaluated
from streamgp.loops.effects import find_parameter, parameter_values, points_along
from streamgp.loops.outlook import Outlook
from streamgp.loops.plots import draw_progress, is_within_limits
from streamgp.loops.pool_space import PoolSpace
from streamgp.loops.prediction import predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current
from streamgp.loops.suggest import make_context
from streamgp.loops.surrogate import SparseSurrogate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_contour", "draw_history", "draw_parallel", "draw_predicted"]

# Values along each axis of a map, where there is no shorter list of them.
_NUM_VALUES = 41
# Lines of the best evaluations are drawn over all others.
_SHARE_BEST = 0.1
# Told values are drawn this far from each other where a list has one place for many.
_JITTER = 0.12


def draw_contour(
    state: LoopState,
    settings: LoopSettings,
    parameters: tuple[Any, Any],
    axes: "Axes | None",
    *,
    at: Any,
    output: int,
    is_feasibility: bool,
) -> "Axes":
    """Draw the expected outcome over two parameters, with all evaluations; others are as at one point.

    Args:
        state: With a model.
        settings: Of the loop.
        parameters: Names, or numbers of dimensions.
        axes: Where to draw; a new figure by default.
        at: The values of all other parameters, as a point of the user; the best evaluated one if None.
        output: Which outcome.
        is_feasibility: Whether the probability to keep all constraints, and not to fail, is drawn instead.
    """
    space = settings.space
    if isinstance(space, PoolSpace):
        raise UnsupportedError("A map needs parameters that can be set, but members of a pool cannot.")
    (first, columns), (second, rows) = (find_parameter(space, one) for one in parameters)
    if first == second:
        raise OptionError(f"A map needs two parameters, but both are {first!r}.")
    center = _center(state, settings, at)
    across, up = (points_along(space, center, part, num_values=_NUM_VALUES) for part in (columns, rows))
    points = center.expand(len(up), len(across), -1).clone()
    points[..., columns] = across[:, columns]
    points[..., rows] = up[:, rows].unsqueeze(1)
    inputs = space.inputs(points.reshape(-1, points.shape[-1]))
    if is_feasibility:
        posterior: Any = make_context(state, settings).model.posterior(inputs)
        values = make_context(state, settings).objective.feasibility(posterior).prod(-1).detach()
        label = "probability to keep all limits"
    else:
        values = predict_objective(state, settings, inputs, output=output).mean
        label = f"expected {settings.names[output]}"
    values = values.masked_fill(~space.is_allowed(inputs), math.nan).reshape(len(up), len(across))
    axes = new_axes(axes, size=(5.6, 4.2))
    _shade(axes, settings, (first, across), (second, up), values, label=label, is_share=is_feasibility)
    _scatter(axes, state, settings, (first, across), (second, up))
    axes.set_xlabel(first, parse_math=False)
    axes.set_ylabel(second, parse_math=False)
    return axes


def draw_parallel(state: LoopState, settings: LoopSettings, axes: "Axes | None", *, output: int) -> "Axes":
    """Draw each evaluation as a line through its parameters and its outcome; the best ones in color.

    Args:
        state: What was told.
        settings: Of the loop.
        axes: Where to draw; a new figure by default.
        output: Which outcome.
    """
    space, told = settings.space, current(state, settings)
    told = told.rows(told.is_measured[:, output])
    if isinstance(space, PoolSpace) or not len(told.y):
        raise UnsupportedError("Parallel coordinates need parameters that can be set, and an outcome at least.")
    names, y = list(space.column_names), told.y[:, output]
    shown = [parameter_values(space, told.points, name) for name in names]
    places, ticks = zip(
        *(_places(settings, name, values) for name, values in zip(names, shown, strict=True)), strict=True
    )
    low, high = float(y.min()), float(y.max())
    last = (y - low) / ((high - low) or 1.0)
    lines = torch.stack([*places, last], dim=-1)
    is_up = output >= len(settings.objectives) or settings.objectives[output].maximize
    order = y.argsort(descending=not is_up)
    num_best = max(1, math.ceil(_SHARE_BEST * len(y)))
    axes = new_axes(axes, size=(max(5.0, 1.3 * len(names) + 2.0), 3.8))
    x = list(range(len(names) + 1))
    for i in order[:-num_best].tolist():
        axes.plot(x, lines[i], color="#B8B8B8", linewidth=0.8, alpha=0.7)
    for number, i in enumerate(order[-num_best:].tolist()):
        axes.plot(x, lines[i], color="tab:orange", linewidth=1.6, label="best tenth" if number == 0 else None)
    for k, (values, texts) in enumerate([*ticks, ([0.0, 1.0], [f"{low:.4g}", f"{high:.4g}"])]):
        axes.axvline(k, color="black", linewidth=0.8)
        for value, text in zip(values, texts, strict=True):
            axes.annotate(text, (k, value), xytext=(3, 0), textcoords="offset points", fontsize=8, va="center")
    axes.set_xticks(x, [*names, settings.names[output]])
    axes.set_xlim(-0.1, len(names) + 0.45)
    axes.set_yticks([])
    axes.spines[["left", "right", "top", "bottom"]].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    return axes


def draw_history(state: LoopState, settings: LoopSettings, axes: "Axes | None", *, outlook: Outlook) -> "Axes":
    """Draw outcomes, the best so far, and a band in which the best possible outcome is expected.

    Args:
        state: With a model.
        settings: Of the loop.
        axes: Where to draw; a new figure by default.
        outlook: What is left to gain.
    """
    axes = draw_progress(state, settings, axes)
    sign = 1.0 if settings.objectives[0].maximize else -1.0
    least, most = (outlook.best + sign * float(outlook.gains.quantile(level)) for level in (0.05, 0.95))
    axes.axhspan(
        min(least, most), max(least, most), color="tab:green", alpha=0.2, linewidth=0, label="best possible, 90 %"
    )
    axes.axhline(outlook.best + sign * outlook.left, color="tab:green", linestyle="--", linewidth=1)
    axes.legend()
    return axes


def draw_predicted(state: LoopState, settings: LoopSettings, axes: "Axes | None", *, output: int) -> "Axes":
    """Draw each outcome against what the model expects of it without it, with an interval of probability 0.95.

    Args:
        state: With a model.
        settings: Of the loop.
        axes: Where to draw; a new figure by default.
        output: Which outcome.
    """
    told, mean, lower, upper = predicted_and_told(state, settings, output=output)
    axes = new_axes(axes, size=(4.4, 4.2))
    is_held = (told >= lower) & (told <= upper)
    bars = torch.stack([mean - lower, upper - mean]).clamp_min(0.0)
    for mask, color, label in ((is_held, "tab:blue", "within its interval"), (~is_held, "tab:red", "outside")):
        if bool(mask.any()):
            axes.errorbar(
                told[mask],
                mean[mask],
                yerr=bars[:, mask].numpy(),
                fmt="o",
                color=color,
                markersize=4,
                linewidth=0.8,
                alpha=0.8,
                label=label,
            )
    ends = [float(told.min()), float(told.max())]
    axes.plot(ends, ends, color="black", linewidth=0.8, linestyle="--")
    room = 0.3 * ((ends[1] - ends[0]) or 1.0)
    axes.set_ylim(ends[0] - room, ends[1] + room)
    axes.set_xlabel(f"{settings.names[output]}, as told", parse_math=False)
    axes.set_ylabel("as predicted from all others", parse_math=False)
    axes.set_title(f"{int(is_held.sum())} of {len(told)} within 95 % intervals", fontsize=10)
    axes.legend()
    return axes


@torch.no_grad()
def predicted_and_told(
    state: LoopState, settings: LoopSettings, *, output: int, level: float = 0.95
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Outcomes as told, and as the model predicts each from all others, with an interval of an observation.

    Args:
        state: With a model.
        settings: Of the loop.
        output: Which outcome.
        level: Probability of the intervals.
    """
    surrogate, data = state.surrogate, current(state, settings)
    if not isinstance(surrogate, SparseSurrogate) or not settings.outcomes[output].likelihood.is_gaussian:
        raise UnsupportedError(
            "Outcomes are predicted from all others where they are real numbers with Gaussian noise. Compare others "
            "with predict()."
        )
    known = data.rows(data.is_measured[:, output])
    if known.has_bounds(output):
        assert known.sides is not None
        known = known.rows(known.sides[:, output] == 0)
    result, units, y = surrogate.results[output], surrogate.units[output], known.y[:, output]
    noise = result.likelihood.gaussian_noise_variance
    assert noise is not None
    inputs, z = settings.space.inputs(known.points), units.inside(y)
    prior = result.gp.process.prior
    variance = noise.expand(len(z)) if noise.dim() == 0 or len(noise) == 1 else noise[: len(z)]
    # Of an exact GP with these hyperparameters: errors and variances are those of the rows of the inverse covariance.
    inverse = torch.linalg.inv(prior.covariance(inputs, inputs) + torch.diag(variance.clamp_min(1e-9)))
    spread = 1.0 / inverse.diagonal()
    mean = z - (inverse @ (z - prior.mean(inputs))) * spread
    reach = float(torch.special.ndtri(torch.tensor(0.5 + 0.5 * level, dtype=torch.float64))) * spread.sqrt()
    ends = torch.stack([units.outside(mean - reach), units.outside(mean + reach)])
    return y, units.outside(mean), ends.amin(0), ends.amax(0)


def _center(state: LoopState, settings: LoopSettings, at: Any) -> Float[Tensor, " d"]:
    """A point of the loop: that of the user, or the best evaluated one."""
    if at is None:
        at = best_evaluated(state, settings).X if len(settings.objectives) == 1 else None
    if at is None:
        known = current(state, settings)
        return known.points[known.is_informative][-1]
    return settings.space.read(at, "at")[0]


def _axis(settings: LoopSettings, name: str, points: Tensor, others: Tensor) -> tuple[list[float], list[float], Any]:
    """Places of a parameter's values on an axis, those of other points, and ticks where values are texts."""
    values, told = (parameter_values(settings.space, one, name) for one in (points, others))
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        return [float(one) for one in values], [float(one) for one in told], None
    texts = [str(one) for one in values]
    places = {text: float(i) for i, text in enumerate(texts)}
    return list(places.values()), [places.get(str(one), math.nan) for one in told], texts


def _shade(
    axes: "Axes", settings: LoopSettings, first: Any, second: Any, values: Tensor, *, label: str, is_share: bool
) -> None:
    """Fill a map: smooth over numbers, and with a cell for each text."""
    none = first[1][:0]
    x, _, x_texts = _axis(settings, first[0], first[1], none)
    y, _, y_texts = _axis(settings, second[0], second[1], none)
    limits = (0.0, 1.0) if is_share else (None, None)
    if x_texts is None and y_texts is None and min(len(x), len(y)) > 2 and not is_share:
        drawn: Any = axes.contourf(x, y, values, levels=20, cmap="viridis")
    else:
        drawn = axes.pcolormesh(x, y, values, shading="nearest", cmap="viridis", vmin=limits[0], vmax=limits[1])
    for texts, places, put, scale in (
        (x_texts, x, axes.set_xticks, axes.set_xscale),
        (y_texts, y, axes.set_yticks, axes.set_yscale),
    ):
        if texts is not None:
            put(places, texts)
        elif min(places) > 0 and places[len(places) // 2] < 0.1 * (places[0] + places[-1]):
            scale("log")
    axes.figure.colorbar(drawn, ax=axes, label=label)


def _scatter(axes: "Axes", state: LoopState, settings: LoopSettings, first: Any, second: Any) -> None:
    """Draw evaluations, those that fail or break a constraint apart, and what is pending."""
    told = state.observations
    is_kept = is_within_limits(told.y, settings)
    compared = torch.cat([told.points[:0], told.pairs.flatten(0, 1)])
    generator = torch.Generator().manual_seed(0)
    kinds: tuple[tuple[Tensor, dict[str, Any], str], ...] = (
        (told.points[told.is_success & is_kept], {"marker": "o", "c": "white", "edgecolors": "black"}, "evaluated"),
        (
            told.points[told.is_success & ~is_kept],
            {"marker": "s", "c": "lightgray", "edgecolors": "black"},
            "not feasible",
        ),
        (told.points[~told.is_success], {"marker": "x", "c": "tab:red"}, "failed"),
        (compared, {"marker": "o", "c": "white", "edgecolors": "black"}, "compared"),
        (state.pending, {"marker": "^", "c": "tab:orange", "edgecolors": "black"}, "pending"),
    )
    for points, style, label in kinds:
        if not len(points):
            continue
        _, x, x_texts = _axis(settings, first[0], first[1], points)
        _, y, y_texts = _axis(settings, second[0], second[1], points)
        shift = _JITTER * (2.0 * torch.rand(2, len(points), generator=generator) - 1.0)
        x = [a + float(s) * (x_texts is not None) for a, s in zip(x, shift[0], strict=True)]
        y = [a + float(s) * (y_texts is not None) for a, s in zip(y, shift[1], strict=True)]
        axes.scatter(x, y, s=24, linewidths=0.8, label=label, zorder=3, **style)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=3, frameon=False, fontsize=8)


def _places(settings: LoopSettings, name: str, values: tuple[Any, ...]) -> tuple[Tensor, tuple[list[float], list[str]]]:
    """Places of values between 0 and 1, and ticks: the ends of numbers, or all values of a list."""
    space = settings.space
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        center = space.no_points().new_full((1, space.no_points().shape[-1]), 0.5)
        ends = [float(one) for one in parameter_values(space, points_along(space, center[0], space.parts[name]), name)]
        low, high = min(*ends, *map(float, values)), max(*ends, *map(float, values))
        is_log = low > 0 and ends[len(ends) // 2] < 0.1 * (ends[0] + ends[-1])
        scale = math.log if is_log else float
        width = (scale(high) - scale(low)) or 1.0
        places = [(scale(float(one)) - scale(low)) / width for one in values]
        return torch.tensor(places, dtype=torch.float64), ([0.0, 1.0], [f"{low:.4g}", f"{high:.4g}"])
    texts = sorted({str(one) for one in values})
    step = 1.0 / max(len(texts) - 1, 1)
    places = [step * texts.index(str(one)) for one in values]
    return torch.tensor(places, dtype=torch.float64), ([step * i for i in range(len(texts))], texts)
