"""Work of the commands of `streamgp optimize`."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from streamgp.cli.optimize.notebook import open_notebook
from streamgp.cli.optimize.study_file import EXAMPLE
from streamgp.cli.outputs import remove_unfinished, write_together
from streamgp.cli.pictures import check_output, save_figure
from streamgp.cli.printing import count_of, print_json, say, show_table
from streamgp.display import with_uncertainty
from streamgp.errors import OptionError
from streamgp.loops import Categorical, Integer, Ordinal, ParameterSpace, Real
from streamgp.loops.abstract_parameter import AbstractParameter
from streamgp.optimizers import Optimizer
from streamgp.tables.records import write_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "cell",
    "draw_study",
    "in_words",
    "rounded",
    "run_ask",
    "run_best",
    "run_cancel",
    "run_init",
    "run_plot",
    "run_show",
    "run_tell",
]

# Digits of a suggested number.
_DIGITS = 4
# Parameters that fit into one picture.
_MOST_SLICES = 8


def run_init(study: Path) -> None:
    """Write an example of a study."""
    if study.exists():
        raise OptionError(f"{study} exists. Choose another name, or delete it.")
    study.write_text(EXAMPLE, encoding="utf-8")
    say(f"Written: {study}. Change it to what you want to find out, and begin with `streamgp optimize ask {study}`.")


def run_ask(
    study: Path, state: Path | None, *, number: int, fixed: Sequence[str], output: Path | None, is_json: bool
) -> None:
    """Suggest experiments, keep them as pending, and write a table to be filled in."""
    torch.set_num_threads(1)  # as sums of several threads are not the same to the last bit
    with open_notebook(study, state) as notebook:
        path = study.with_suffix(f".ask{notebook.num_asks + 1}.csv") if output is None else output
        if path.exists():
            raise OptionError(f"{path} exists, and may hold results. Choose another name with --output, or delete it.")
        remove_unfinished(path)
        points = notebook.optimizer.ask(number, fixed=_read_fixed(fixed))
        shown = [rounded(point, notebook.space) for point in points]
        names, outcomes = notebook.space.column_names, notebook.settings.names
        reasons = [one.to_row() for one in points.why]
        more = list(dict.fromkeys(key for one in reasons for key in one))
        rows = [
            [*(cell(point[name]) for name in names), *("" for _ in outcomes), *(_short(one.get(key)) for key in more)]
            for point, one in zip(shown, reasons, strict=True)
        ]
        header = (*names, *outcomes, *more)
        write_together({path: partial(write_table, header=header, rows=rows), notebook.state: notebook.optimizer.save})
    if is_json:
        print_json({"points": shown, "why": reasons, "file": str(path)})
        return
    say(*notebook.notes)
    _show("What to try next", [point | {"why": str(why)} for point, why in zip(shown, points.why, strict=True)])
    filled = "the outcome" if len(outcomes) == 1 else "the outcomes"
    say(
        f"Written: {path}. Fill in {filled}, {', '.join(outcomes)}, or the word failed, and go on with "
        f"`streamgp optimize tell {study} {path}`."
    )


def run_tell(study: Path, state: Path | None, sources: Sequence[str], *, is_again: bool, is_json: bool) -> None:
    """Learn results from tables."""
    with open_notebook(study, state) as notebook:
        read = notebook.optimizer.tell_csv(*sources, skip_known=not is_again)
        if read.num_told or read.num_completed:
            write_together({notebook.state: notebook.optimizer.save})
    counts = {
        "told": read.num_told,
        "failed": read.num_failed,
        "completed": read.num_completed,
        "told_before": read.num_known,
        "without_outcome": read.num_open,
        "known": len(notebook.optimizer.y),
        "pending": len(notebook.optimizer.pending),
    }
    if is_json:
        print_json(counts)
        return
    say(*notebook.notes)
    say(f"{count_of(counts['told'], 'experiment')} learned, of which {counts['failed']} failed.")
    if read.num_completed:
        say(f"{count_of(read.num_completed, 'experiment')} completed with outcomes that were measured later.")
    if read.num_known:
        say(f"{count_of(read.num_known, 'row')} had been told before, and were left out; --again tells them once more.")
    if read.num_open:
        say(f"{count_of(read.num_open, 'row')} without an outcome yet: tell the table again when it is there.")
    say(f"So far: {count_of(counts['known'], 'experiment')}, and {counts['pending']} pending.")


def run_best(study: Path, state: Path | None, *, is_json: bool) -> None:
    """Print the best experiment so far, and what the model recommends; or the best trade-offs."""
    torch.set_num_threads(1)
    with open_notebook(study, state) as notebook:
        is_front = len(notebook.settings.objectives) > 1
        rows = (notebook.optimizer.pareto() if is_front else notebook.optimizer.best()).to_rows()
        outlook = "" if is_front else str(notebook.optimizer.outlook())
    if is_json:
        print_json({"pareto": rows} if is_front else {row.pop("which"): row for row in rows})
        return
    say(*notebook.notes)
    if is_front:
        _show("The best trade-offs: no other experiment is better in all outcomes", [_flat(row) for row in rows])
        return
    titles = {"best": "The best experiment so far", "recommended": "What the model recommends, tried or not"}
    for row in rows:
        _show(titles[row["which"]], [_flat(row)])
    say(outlook)


def run_show(study: Path, state: Path | None, *, is_json: bool) -> None:
    """Print what is searched, what is known, and what is pending."""
    with open_notebook(study, state) as notebook:
        optimizer, settings = notebook.optimizer, notebook.settings
    outcomes = settings.names
    known = [
        {**point, **dict(zip(outcomes, row, strict=True))}
        for point, row in zip(optimizer.X, optimizer.y.tolist(), strict=True)
    ]
    pending = [rounded(point, notebook.space) for point in optimizer.pending]
    parameters = {name: in_words(one) for name, one in notebook.space.parameters.items()}
    if is_json:
        shown = {"parameters": parameters, "outcomes": list(outcomes), "experiments": known, "pending": pending}
        print_json(shown)
        return
    say(*notebook.notes)
    _show("Parameters", [{"parameter": name, "values": text} for name, text in parameters.items()])
    directions = [f"{one.name} ({'high' if one.maximize else 'low'} is good)" for one in settings.objectives]
    limits = [f"{one.name} ({_bounds(one.lower, one.upper)})" for one in settings.constraints]
    say(f"Outcomes: {', '.join([*directions, *limits])}.")
    if known:
        _show("Experiments", known)
    if pending:
        _show("Pending: asked for and not told yet", pending)
    say(f"{count_of(len(known), 'experiment')} known, {len(pending)} pending.")


def run_cancel(study: Path, state: Path | None) -> None:
    """Forget what is pending."""
    with open_notebook(study, state) as notebook:
        num_pending = len(notebook.optimizer.pending)
        notebook.optimizer.cancel()
        write_together({notebook.state: notebook.optimizer.save})
    say(*notebook.notes, f"{count_of(num_pending, 'pending experiment')} will not be waited for any more.")


def run_plot(study: Path, state: Path | None, *, output: Path) -> None:
    """Draw progress or trade-offs, and the expected outcome along each parameter; or a page with all pictures."""
    is_page = output.suffix.lower() in (".html", ".htm")
    issue = None if is_page else check_output(output)
    if issue is not None:
        raise OptionError(f"--output: {issue}")
    torch.set_num_threads(1)
    with open_notebook(study, state) as notebook:
        optimizer: Optimizer = notebook.optimizer
        if not len(optimizer.y):
            raise OptionError(f"{study} has no results yet, so there is nothing to draw. Ask for experiments first.")
        if is_page:
            optimizer.report(output, title=study.stem)
        else:
            save_figure(draw_study(optimizer), output)
    say(*notebook.notes, f"Written: {output}.")


def _show(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    show_table(title, list(rows[0]), [list(row.values()) for row in rows])


def draw_study(optimizer: Optimizer) -> "Figure":
    """Draw progress or trade-offs, and the expected outcome along each parameter."""
    from matplotlib.figure import Figure

    settings, is_known = optimizer.to_parts()["settings"], bool(optimizer.y.isfinite().all(-1).any())
    space = settings.space
    sliced = space.column_names[:_MOST_SLICES] if is_known and space.is_product else ()
    num_columns = min(3, 1 + len(sliced))
    num_rows = math.ceil((1 + len(sliced)) / num_columns)
    figure = Figure(figsize=(4.8 * num_columns, 3.6 * num_rows), layout="constrained")
    panels = list(figure.subplots(num_rows, num_columns, squeeze=False).flat)
    if len(settings.objectives) > 1 and is_known:
        optimizer.plot_pareto(panels[0])
    else:
        optimizer.plot_progress(panels[0])
    slices = [optimizer.plot_slice(name, panel) for name, panel in zip(sliced, panels[1:], strict=False)]
    for panel in slices:  # on one scale, so that what matters most can be seen
        panel.set_ylim(min(one.get_ylim()[0] for one in slices), max(one.get_ylim()[1] for one in slices))
    for panel in panels[1 + len(sliced) :]:
        panel.set_axis_off()
    return figure


def _read_fixed(fixed: Sequence[str]) -> dict[str, str] | None:
    values = {}
    for text in fixed:
        name, sign, value = text.partition("=")
        if not sign:
            raise OptionError(f"--fix takes a parameter and its value, such as solvent=water, but got {text!r}.")
        values[name.strip()] = value.strip()
    return values or None


def rounded(point: Mapping[str, Any], space: ParameterSpace) -> dict[str, Any]:
    """Round a suggestion to digits that can be set, but where a sum has to be kept."""
    summed = {name for one in space.constraints for name in one.weights}
    shown = dict(point)
    for name, parameter in space.parameters.items():
        if not isinstance(parameter, Real) or parameter.step is not None:
            continue
        value = float(point[name])
        if name in summed:
            shown[name] = float(f"{value:.9g}")
            continue
        scale = value if parameter.log else 10.0 * (parameter.high - parameter.low)
        digits = _DIGITS - 1 - math.floor(math.log10(abs(scale)))
        shown[name] = min(max(round(value, digits), parameter.low), parameter.high)
    return shown


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for a terminal: the point, and each outcome with its uncertainty."""
    flat = dict(row["point"])
    for name, mean in row["mean"].items():
        flat[f"{name} expected"] = with_uncertainty(mean, row["std"][name])
    if row["probability_feasible"] < 1.0:
        flat["keeps constraints"] = f"{100.0 * row['probability_feasible']:.0f} %"
    return flat


def in_words(parameter: AbstractParameter) -> str:
    """Say what can be set."""
    if isinstance(parameter, Categorical):
        return ", ".join(map(str, parameter.choices))
    if isinstance(parameter, Ordinal):
        return " < ".join(map(str, parameter.values))
    assert isinstance(parameter, Real | Integer)
    kind = "whole numbers from " if isinstance(parameter, Integer) else ""
    step = (
        f", in steps of {parameter.step:g}" if parameter.step is not None and (not kind or parameter.step > 1) else ""
    )
    return f"{kind}{parameter.low:g} to {parameter.high:g}{step}{', logarithmic' * parameter.log}"


def _bounds(lower: float | None, upper: float | None) -> str:
    parts = [] if lower is None else [f"at least {lower:g}"]
    return " and ".join(parts if upper is None else [*parts, f"at most {upper:g}"])


def _short(value: Any) -> str:
    """Write an expected value in few digits: it is read and not set."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def cell(value: Any) -> str:
    """Write a value as text for a table."""
    return f"{value:.12g}" if isinstance(value, float) else str(value)
