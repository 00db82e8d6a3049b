"""The report of an optimizer: one page with all that a reader would ask for."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from streamgp.display import shown_point, with_uncertainty
from streamgp.errors import StreamGPError
from streamgp.loops.importance import Importance
from streamgp.loops.settings import LoopSettings
from streamgp.report import Report

if TYPE_CHECKING:
    from streamgp.optimizers.optimizer import Optimizer

__all__ = ["write_report"]

# Slices that are drawn, of the parameters that matter most.
_MOST_SLICES = 6
_WIDTH, _HEIGHT = 4.8, 3.6


def write_report(optimizer: "Optimizer", title: str) -> Report:
    """Put together the page.

    Args:
        optimizer: As it is; the model is fitted if that is due.
        title: Of the page.
    """
    settings: LoopSettings = optimizer.to_parts()["settings"]
    inspection = optimizer.inspect()
    report = Report(title, repr(optimizer))
    report.facts(
        {
            "Parameters": ", ".join(settings.space.column_names),
            "Objectives": ", ".join(
                f"{one.name} ({'high' if one.maximize else 'low'} is good)" for one in settings.objectives
            ),
            "Constraints": ", ".join(_limits(settings)) or "none",
            "Rule": settings.rule.innermost.in_words,
            "Seed": settings.seed,
        }
    )
    if not len(optimizer.comparisons[0]) and not bool(optimizer.y.isfinite().any()):
        return report.text("Nothing is known yet.")
    _describe_best(report, optimizer, settings)
    _draw_all(report, optimizer, settings)
    report.heading("The model").table(
        [
            {
                "outcome": one.name,
                "kernel": one.kernel,
                "lengthscales": shown_point(one.lengthscales),
                "standard deviation": one.std,
                "noise": "" if one.noise is None else one.noise,
                "modeled": one.scale,
            }
            for one in inspection.outcomes
        ]
    )
    report.heading("Asked last").table([{"point": shown_point(p), "why": str(why)} for p, why in _asked(optimizer)])
    report.heading("All that was told").table(optimizer.to_rows())
    return report


def _describe_best(report: Report, optimizer: "Optimizer", settings: LoopSettings) -> None:
    is_front = len(settings.objectives) > 1
    report.heading("The best trade-offs" if is_front else "The best")
    rows = (optimizer.pareto() if is_front else optimizer.best()).to_rows()
    report.table(
        [
            ({} if is_front else {"": row["which"]})
            | {"point": shown_point(row["point"])}
            | {f"{name} expected": with_uncertainty(mean, row["std"][name]) for name, mean in row["mean"].items()}
            | {"keeps constraints": f"{100.0 * row['probability_feasible']:.0f} %"}
            for row in rows
        ]
    )
    if not is_front and not settings.is_preference:
        report.heading("What is left to gain").text(str(optimizer.outlook()))


def _draw_all(report: Report, optimizer: "Optimizer", settings: LoopSettings) -> None:
    """Draw all pictures that this search has."""
    report.heading("Pictures")
    names, outcomes = list(settings.space.column_names), settings.names
    if len(settings.objectives) > 1:
        _add(report, "Trade-offs of the first two objectives, with two standard deviations.", [optimizer.plot_pareto])
    elif not settings.is_preference:
        caption = "Outcomes in the order in which they were told, and where the best possible one is expected."
        _add(report, caption, [optimizer.plot_history])
    most = names[:_MOST_SLICES]
    importance = _tried(optimizer.importance)
    if isinstance(importance, Importance):
        _add(report, "How much each parameter matters.", [importance.plot])
        most = [importance.names[i] for i in importance.total.argsort(descending=True).tolist()][:_MOST_SLICES]
    for output in outcomes:
        _add(
            report,
            f"Expected {output} along each parameter, through the best point.",
            [_call(optimizer.plot_slice, name, output=output) for name in most],
        )
    if len(most) > 1:
        maps = [_call(optimizer.plot_contour, most[0], most[1], output=output) for output in outcomes]
        _add(report, "The two parameters that matter most: what is expected, and all that was told.", maps)
        caption = "Where constraints are kept and evaluations succeed."
        _add(report, caption, [_call(optimizer.plot_feasibility, most[0], most[1])])
    _add(report, "Each evaluation as a line.", [optimizer.plot_parallel], width=max(6.0, 1.4 * len(names) + 2.0))
    _add(
        report,
        "Each outcome as the model predicts it from all others: points on the line are right.",
        [_call(optimizer.plot_predictions, output=output) for output in outcomes],
    )


def _call(function: Callable[..., Any], *names: str, **options: Any) -> Callable[[Any], Any]:
    """A picture of some parameters, to be drawn on axes."""
    return lambda axes: function(*names, axes, **options)


def _add(report: Report, caption: str, pictures: list[Callable[[Any], Any]], *, width: float = _WIDTH) -> None:
    """Add a row of pictures; those that this search does not have are left out."""
    from matplotlib.figure import Figure  # slow to load

    drawn = []
    for draw in pictures:
        figure = Figure(figsize=(width, _HEIGHT), layout="constrained")
        if _tried(draw, figure.subplots()) is not None:
            drawn.append(draw)
    if not drawn:
        return
    num_columns = min(3, len(drawn))
    num_rows = math.ceil(len(drawn) / num_columns)
    figure = Figure(figsize=(width * num_columns, _HEIGHT * num_rows), layout="constrained")
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    for draw, panel in zip(drawn, panels, strict=False):
        draw(panel)
    for panel in panels[len(drawn) :]:
        panel.set_axis_off()
    report.figure(figure, caption)


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """Result of a function, or None where it does not apply to this search."""
    try:
        return function(*arguments)
    except StreamGPError:
        return None


def _limits(settings: LoopSettings) -> list[str]:
    texts = []
    for name, one in zip(settings.names[len(settings.objectives) :], settings.constraints, strict=True):
        low = "" if one.lower is None else f"at least {one.lower:g}"
        high = "" if one.upper is None else f"at most {one.upper:g}"
        texts.append(f"{name} {' and '.join(filter(None, (low, high)))}")
    return texts


def _asked(optimizer: "Optimizer") -> list[tuple[Any, Any]]:
    asked = optimizer.inspect(refit=False).asked
    reasons = optimizer.why()
    return list(zip(asked, reasons, strict=True)) if asked is not None and len(asked) == len(reasons) else []
