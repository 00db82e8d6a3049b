"""Effects of one parameter: along a line through a point, and on average over all others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import AbstractSpace
from streamgp.display import draw_band, new_axes
from streamgp.errors import OptionError, UnsupportedError, ValueRangeError
from streamgp.loops.prediction import predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Effect",
    "check_free",
    "draw_effect",
    "find_parameter",
    "parameter_values",
    "partial_dependence",
    "points_along",
    "slice_through",
]

# Values of a parameter that is not discrete, and points over which others are averaged.
_NUM_VALUES = 101
_NUM_OTHERS = 128
# Share of the single curves that the band of a partial dependence holds.
_SHARE = 0.8
# Up to so many values are drawn one by one.
_MOST_BARS = 8


@final
@dataclass(frozen=True, eq=False)
class Effect:
    """The response against one parameter.

    Attributes:
        name: Of the parameter.
        values: Of the parameter, in the user's units.
        mean: Expected response.
        lower: Lower end of the band.
        upper: Upper end.
        at: The value at the point through which the slice goes; None for an average.
    """

    name: str
    values: tuple[Any, ...]
    mean: Float[Tensor, " k"]
    lower: Float[Tensor, " k"]
    upper: Float[Tensor, " k"]
    at: Any = None


def slice_through(state: LoopState, settings: LoopSettings, parameter: Any, *, at: Any, output: int) -> Effect:
    """The predicted response along one parameter, with its interval of probability 0.95.

    Args:
        state: With a model.
        settings: Of the loop.
        parameter: Name, or number of a dimension.
        at: The values of all others, as a point of the user; the best point that was evaluated if None.
        output: Which outcome.
    """
    space = settings.space
    name, columns = find_parameter(space, parameter)
    through = _best_point(state, settings, output) if at is None else space.read(at, "at")
    if len(through) != 1:
        raise ValueRangeError(f"A slice goes through one point, but at has {len(through)}. Pass one of them.")
    points = points_along(space, through.squeeze(0), columns)
    points = points[space.is_allowed(points)]
    if len(points) < 2:
        raise UnsupportedError(f"No other value of {name!r} keeps the linear constraints. Choose another point.")
    found = predict_objective(state, settings, space.inputs(points), output=output)
    shown = parameter_values(space, points, name)
    return Effect(name, shown, found.mean, found.lower, found.upper, parameter_values(space, through, name)[0])


def partial_dependence(state: LoopState, settings: LoopSettings, parameter: Any, *, output: int) -> Effect:
    """The predicted response against one parameter, on average over all others.

    The band holds the middle 80 % of the single curves, each moved to the common mean: where it is wide, the effect of
    the parameter depends on others.

    Args:
        state: With a model.
        settings: Of the loop.
        parameter: Name, or number of a dimension.
        output: Which outcome.
    """
    space = settings.space
    name, columns = find_parameter(space, parameter)
    check_free(space, "Partial dependence")
    others = space.design(_NUM_OTHERS, num_initial=_NUM_OTHERS, num_before=0, seed=settings.seed)
    line = points_along(space, others[0], columns)
    points = others.repeat(len(line), 1, 1)
    points[..., columns] = line[:, columns].unsqueeze(1)
    mean = predict_objective(state, settings, space.inputs(points.flatten(0, 1)), output=output).mean
    curves = mean.reshape(len(line), len(others))
    moved = curves - curves.mean(0) + curves.mean()
    tails = 0.5 - 0.5 * _SHARE
    lower, upper = moved.quantile(tails, dim=-1), moved.quantile(1.0 - tails, dim=-1)
    return Effect(name, parameter_values(space, line, name), curves.mean(-1), lower, upper)


def draw_effect(effect: Effect, axes: "Axes | None", *, label: str, ylabel: str) -> "Axes":
    """Draw a line with its band over many numbers, and points with bars over few values."""
    axes = new_axes(axes)
    is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in effect.values)
    if is_number and len(effect.values) > _MOST_BARS:
        x: Any = torch.tensor([float(value) for value in effect.values], dtype=torch.float64)
        draw_band(axes, x, effect.mean, effect.lower, effect.upper, label=label)
        if bool((x > 0).all()) and float(x[len(x) // 2]) < 0.1 * float(x[0] + x[-1]):
            axes.set_xscale("log")
        if effect.at is not None:
            axes.axvline(float(effect.at), color="gray", linestyle=":", linewidth=1)
    else:
        x = torch.arange(len(effect.values))
        bars = torch.stack([effect.mean - effect.lower, effect.upper - effect.mean]).clamp_min(0.0)
        axes.errorbar(x, effect.mean, yerr=bars.numpy(), fmt="o", color="tab:blue", capsize=4, label=label)
        axes.set_xticks(x.tolist(), [str(value) for value in effect.values])
        axes.set_xlim(-0.5, len(effect.values) - 0.5)
    axes.set_xlabel(effect.name, parse_math=False)
    axes.set_ylabel(ylabel, parse_math=False)
    axes.legend()
    return axes


def check_free(space: AbstractSpace, what: str) -> Mapping[str, slice]:
    """The columns of each parameter, if every value of one goes with every value of the others."""
    if space.no_points().dim() != 2:
        raise UnsupportedError(f"{what} needs parameters that can be set, but members of a pool cannot.")
    if not space.is_product:
        raise UnsupportedError(
            f"{what} needs parameters that can be set one by one, but linear constraints tie them. Use plot_slice."
        )
    return space.parts


def find_parameter(space: AbstractSpace, parameter: Any) -> tuple[str, slice]:
    """Find a parameter by its name or number, and the columns that hold it."""
    if space.no_points().dim() != 2:
        raise UnsupportedError("A slice needs parameters that can be set, but members of a pool cannot.")
    parts, names = space.parts, space.column_names
    if isinstance(parameter, int) and not isinstance(parameter, bool) and 0 <= parameter < len(names):
        parameter = names[parameter]
    if parameter not in parts:
        raise OptionError(f"There is no parameter {parameter!r}. The parameters are {', '.join(parts)}.")
    return parameter, parts[parameter]


def points_along(
    space: AbstractSpace, point: Float[Tensor, " d"], columns: slice, *, num_values: int = _NUM_VALUES
) -> Float[Tensor, "k d"]:
    """Points with all values of one parameter, or many.

    Args:
        space: Where they are from.
        point: With the values of all others.
        columns: Those of the parameter.
        num_values: Number of values that are taken, where there are as many.
    """
    found = [one for name, one in getattr(space, "parameters", {}).items() if space.parts[name] == columns]
    if found and found[0].num_values is not None and found[0].num_values < num_values:
        line = found[0].all_columns().to(point)
    else:
        line = torch.linspace(0.0, 1.0, num_values, dtype=point.dtype).unsqueeze(-1)
    points = point.expand(len(line), -1).clone()
    points[:, columns] = line
    return torch.unique_consecutive(space.inputs(points), dim=0)


def parameter_values(space: AbstractSpace, points: Float[Tensor, "k d"], name: str) -> tuple[Any, ...]:
    """Values of a parameter at points."""
    shown = space.show(points)
    if isinstance(shown, Tensor):
        return tuple(shown[:, space.column_names.index(name)].tolist())
    return tuple(point[name] for point in shown)


def _best_point(state: LoopState, settings: LoopSettings, output: int) -> Float[Tensor, "1 d"]:
    """The evaluated point of the best mean; of the first objective for a slice of a constraint."""
    data = current(state, settings)
    points = torch.cat([data.points[data.is_informative], data.pairs.flatten(0, 1)])
    which = output if output < len(settings.objectives) else 0
    mean = predict_objective(state, settings, settings.space.inputs(points), output=which).mean
    index = int(mean.argmax() if settings.objectives[which].maximize else mean.argmin())
    return points[index : index + 1]
