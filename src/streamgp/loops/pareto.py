"""The Pareto set: evaluated points that no other one beats in all objectives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import torch
from botorch.utils.multi_objective.hypervolume import Hypervolume
from botorch.utils.multi_objective.pareto import is_non_dominated
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import to_double
from streamgp.display import html_rows, new_axes, shown_point, with_uncertainty
from streamgp.errors import OptionError
from streamgp.loops.best import are_within, is_taken_at_its_word
from streamgp.loops.outcomes import Objective
from streamgp.loops.prediction import predict_objective
from streamgp.loops.settings import LoopSettings
from streamgp.loops.state import LoopState, current
from streamgp.loops.suggest import make_context

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ParetoSet", "draw_pareto", "find_hypervolume", "find_pareto"]

# How sure it must be that a point keeps all constraints for it to be called feasible.
_SURE = 0.9


@final
@dataclass(frozen=True, eq=False, repr=False)
class ParetoSet:
    """Points of which none is better than another in all objectives; in the user's units.

    Attributes:
        X: The points.
        mean: Expected outcome of each objective.
        std: Standard deviation of what is not known of it, without the noise of an observation.
        probability_feasible: Probability that all constraints hold; 1 if there are none.
        observed: Outcomes as they were observed.
        names: Of the objectives.
    """

    X: Any
    mean: Float[Tensor, "n k"]
    std: Float[Tensor, "n k"]
    probability_feasible: Float[Tensor, " n"]
    observed: Float[Tensor, "n k"]
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, k = self.mean.shape
        named = f": {', '.join(self.names)}" if self.names else ""
        return f"ParetoSet({n} {'point' if n == 1 else 'points'} of {k} objectives{named})"

    def _repr_html_(self) -> str:
        names = self.names or tuple(f"objective {j}" for j in range(self.mean.shape[-1]))
        rows = []
        for point, means, stds in zip(self.X, self.mean.tolist(), self.std.tolist(), strict=True):
            expected = [with_uncertainty(mean, std) for mean, std in zip(means, stds, strict=True)]
            rows.append({"point": shown_point(point), **dict(zip(names, expected, strict=True))})
        return html_rows("Pareto set", rows)

    def to_rows(self) -> list[dict[str, Any]]:
        """Points as dictionaries, with outcomes by name."""
        points = self.X.tolist() if isinstance(self.X, Tensor) else self.X
        parts = {"mean": self.mean, "std": self.std, "observed": self.observed}
        return [
            {"point": point}
            | {key: dict(zip(self.names, values[i].tolist(), strict=True)) for key, values in parts.items()}
            | {"probability_feasible": float(self.probability_feasible[i])}
            for i, point in enumerate(points)
        ]

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the first two objectives, with two standard deviations.

        Args:
            axes: Where to draw; a new figure by default.
        """
        axes = new_axes(axes)
        (first, second), (wide, high) = self.mean.T[:2], 2.0 * self.std.T[:2]
        axes.errorbar(first, second, yerr=high, xerr=wide, fmt="o", color="tab:orange", label="Pareto set")
        if self.names:
            axes.set_xlabel(self.names[0], parse_math=False)
            axes.set_ylabel(self.names[1], parse_math=False)
        axes.legend()
        return axes


@torch.no_grad()
def find_pareto(state: LoopState, settings: LoopSettings) -> ParetoSet:
    """Find the evaluated points that no other one dominates, by posterior means, or by outcomes without noise.

    Only points that keep the constraints with a probability of 0.9 count, or the likeliest one if none does.

    Args:
        state: With a model.
        settings: Of the loop.
    """
    context, data, surrogate = make_context(state, settings), current(state, settings), state.surrogate
    assert surrogate is not None
    known, k = data.rows(data.is_informative), len(settings.objectives)
    inputs = settings.space.inputs(known.points)
    posterior: Any = context.model.posterior(inputs)
    scores = context.objective.scores(posterior.mean).clone()
    for j, one in enumerate(settings.objectives):
        if is_taken_at_its_word(surrogate, settings, known, j):
            y = known.y[:, j]
            scores[:, j] = torch.where(y.isnan(), scores[:, j], y if one.maximize else -y)
    chance = context.objective.feasibility(posterior)[:, : len(settings.constraints)].clone()
    for j, constraint in enumerate(settings.constraints):
        if is_taken_at_its_word(surrogate, settings, known, k + j):
            y = known.y[:, k + j]
            chance[:, j] = torch.where(y.isnan(), chance[:, j], constraint.is_kept(y).to(chance))
    sure, is_within = chance.prod(-1), are_within(settings, known.points)
    if bool(is_within.any()):  # in the range as it is now, not where it was before
        sure = sure.masked_fill(~is_within, -1.0)
    is_good = sure >= min(_SURE, float(sure.max()))
    chosen = is_good.nonzero().squeeze(-1)
    chosen = chosen[is_non_dominated(scores[chosen], deduplicate=False)]
    predicted = [predict_objective(state, settings, inputs[chosen], output=j) for j in range(k)]
    return ParetoSet(
        X=settings.space.show(known.points[chosen]),
        mean=torch.stack([one.mean for one in predicted], dim=-1),
        std=torch.stack([one.std for one in predicted], dim=-1),
        probability_feasible=sure[chosen],
        observed=known.y[chosen, :k],
        names=tuple(one.name for one in settings.objectives),
    )


def find_hypervolume(
    found: ParetoSet, objectives: Sequence[Objective], reference: Mapping[str, float] | Sequence[float] | None
) -> float:
    """Volume between a reference point and a Pareto set.

    Args:
        found: The set, by its expected outcomes.
        objectives: Their directions and thresholds.
        reference: An outcome of each; None for the thresholds.
    """
    names = [one.name for one in objectives]
    if reference is None:
        reference = [one.threshold for one in objectives if one.threshold is not None]
    elif isinstance(reference, Mapping):
        reference = [reference[name] for name in names if name in reference]
    if len(reference) != len(names):
        raise OptionError(
            f"A volume is measured from a reference point with a value of each of {', '.join(names)}, but "
            f"{len(reference)} are known. Pass reference={{{', '.join(f'{name!r}: ...' for name in names)}}}, or give "
            "the objectives thresholds."
        )
    signs = torch.tensor([1.0 if one.maximize else -1.0 for one in objectives], dtype=torch.float64)
    volume = Hypervolume(signs * to_double(reference, "reference"))
    return float(volume.compute(signs * found.mean))


def draw_pareto(state: LoopState, settings: LoopSettings, axes: "Axes | None") -> "Axes":
    """Draw the first two objectives of all evaluations, and of the Pareto set with two standard deviations."""
    axes, told = new_axes(axes), state.observations
    axes.plot(told.y[:, 0], told.y[:, 1], ".", color="lightgray", label="evaluations")
    return find_pareto(state, settings).plot(axes)
