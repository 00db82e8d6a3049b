"""Best values on Hartmann6 at two noise levels, beside those of the paper, for the tables that show them."""

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from paper.analysis.claims import Check, is_larger, is_missing, weigh
from paper.analysis.drawing import PALETTE, legend_below, new_picture
from paper.analysis.statistics import (
    format_mean,
    jackknife,
    mean_and_error,
    paired_difference,
    standard_error,
)
from paper.plots.best_values import RECOMMENDED, has_recommended
from paper.plots.hartmann_progress import NOTES, VALUES
from paper.schema.figure import Figure, NumberTable
from paper.schema.record import Records
from paper.studies.hartmann import STUDY

__all__ = ["check_table", "check_variation", "problems_of", "table_figure"]

METHODS = ("exact-qnei", "svgp-qnei", "exact-qkg", "svgp-qkg")
_NOISES = ("0.1", "0.5")
# The paper's means after 150 evaluations over 20 trials, and a spread of a kind that is not stated; by batch size and
# noise, in the order of the methods.
_PAPER = {
    ("q3", "0.1"): ((3.19, 0.05), (3.08, 0.06), (3.17, 0.03), (3.13, 0.04)),
    ("q3", "0.5"): ((3.20, 0.03), (3.12, 0.06), (3.15, 0.03), (3.21, 0.05)),
    ("q1", "0.1"): ((3.14, 0.13), (3.10, 0.10), (3.20, 0.02), (3.18, 0.03)),
    ("q1", "0.5"): ((3.10, 0.10), (3.10, 0.14), (3.12, 0.04), (3.16, 0.05)),
}


def problems_of(batch: str) -> tuple[str, ...]:
    """The problems of a batch size, `"q1"` or `"q3"`."""
    return tuple(f"noise{noise}-{batch}" for noise in _NOISES)


def table_figure(
    batch: str,
    title: str,
    check: Callable[[Records], list[Check]],
    *,
    problems: tuple[str, ...],
    claim: str,
    note: str,
) -> Figure:
    """The table of a batch size as a figure.

    Args:
        batch: `"q1"` or `"q3"`.
        title: Its heading.
        check: What is held against the claim.
        problems: The problems that it needs.
        claim: What the paper says, in our words.
        note: What is to be known of this table, besides what is of all figures of Hartmann6.
    """
    return Figure(
        name=f"table_{batch}",
        title=title,
        study="hartmann",
        problems=problems,
        methods=METHODS,
        claim=claim,
        notes=(note, *NOTES),
        draw=lambda records: _draw_table(records, batch),
        describe=lambda records: _describe_table(records, batch),
        judge=lambda records: weigh(check(records)),
        needs_all=False,
        tables=lambda records: (_number_table(records, batch),),
    )


def check_table(records: Records, batch: str) -> list[Check]:
    """What the paper says of a table, averaged over its cells trial by trial."""
    both, low, high = problems_of(batch), problems_of(batch)[:1], problems_of(batch)[1:]
    qnei, qkg, exact, svgp = METHODS[:2], METHODS[2:], METHODS[::2], METHODS[1::2]
    checks = [
        VALUES.similar("SVGPs against exact GPs", VALUES.compare(records, both, svgp, exact)),
        VALUES.larger("qKG above qNEI", VALUES.compare(records, both, qkg, qnei)),
        VALUES.larger("SVGPs above exact GPs at noise 0.5", VALUES.compare(records, high, svgp, exact)),
    ]
    cells = records.shared((problem, method) for problem in both for method in METHODS)
    what = "noise 0.1 above noise 0.5"
    if not cells.all:
        return [*checks, is_missing(what)]
    noise = paired_difference(VALUES.finals(cells, low, METHODS), VALUES.finals(cells, high, METHODS))
    return [*checks, is_larger(what, noise)]


def check_variation(records: Records) -> Check:
    """Whether larger batches vary less: by the logarithm of the ratio of variances over trials, pooled over cells.

    The cells share their seeds, so that seeds alone are independent: the error is from leaving out each of them.
    """
    what = "logarithm of the variance of single points over that of batches of 3"
    pairs = [(problem, method) for batch in ("q1", "q3") for problem in problems_of(batch) for method in METHODS]
    records = records.shared(pairs)
    if not records.all:
        return is_missing(what)
    single, batches = (
        np.array([VALUES.finals(records, [problem], [method]) for problem in problems_of(batch) for method in METHODS])
        for batch in ("q1", "q3")
    )

    def ratio(trials: NDArray[np.int64]) -> float:
        # Of runs that all end at the same value, the logarithm is that of a variance far below any that matters.
        parts = (max(float(table[:, trials].var(1, ddof=1).mean()), 1e-12) for table in (single, batches))
        return math.log(next(parts) / next(parts))

    num_trials = single.shape[1]
    if num_trials < 2:
        return is_missing(what)
    return is_larger(what, jackknife(ratio, num_trials))


def _draw_table(records: Records, batch: str) -> Picture:
    """Draw each cell with a 95 % interval, and the paper's number beside it as an open circle."""
    picture = new_picture(height=3.6)
    axes = picture.axes[0]
    for index, noise in enumerate(_NOISES):
        color = PALETTE[index]
        for row, method in enumerate(METHODS):
            values = VALUES.finals(records, [f"noise{noise}-{batch}"], [method])
            place = row + 0.3 * index - 0.15
            label = f"noise {noise}" if row == 0 else None
            if values:
                mean, error = mean_and_error(values)
                axes.errorbar(float(mean), place, xerr=float(error), fmt="o", color=color, capsize=3, label=label)
            paper, _ = _PAPER[batch, noise][row]
            name = f"noise {noise}, paper" if row == 0 else None
            axes.plot(paper, place, "o", markerfacecolor="none", color=color, label=name)
    axes.set_yticks(range(len(METHODS)), [STUDY.methods[method] for method in METHODS])
    axes.invert_yaxis()
    axes.set_xlabel(f"best noise-free value after {_num_evaluations(records)} evaluations")
    legend_below(picture)
    return picture


def _describe_table(records: Records, batch: str) -> str:
    """Say what the picture shows."""
    cells = [
        f"{STUDY.methods[method]} at noise {noise} {format_mean(values)}"
        for noise in _NOISES
        for method in METHODS
        if (values := VALUES.finals(records, [f"noise{noise}-{batch}"], [method]))
    ]
    return f"Best values after {_num_evaluations(records)} evaluations: {'; '.join(cells)}."


def _number_table(records: Records, batch: str) -> NumberTable:
    """Our numbers beside the paper's, their difference, and its standard error as far as ours goes."""
    has_both = has_recommended(records)
    rows = []
    for noise in _NOISES:
        for method, (paper, spread) in zip(METHODS, _PAPER[batch, noise], strict=True):
            problem = f"noise{noise}-{batch}"
            values = VALUES.finals(records, [problem], [method])
            cells = ("not run", "", "", "0")
            if values:
                difference = f"{np.mean(values) - paper:+.2f} ± {float(standard_error(values)):.2f}"
                recommended = VALUES.finals(records, [problem], [method], entry=RECOMMENDED) if has_both else []
                advice = format_mean(recommended) if has_both else "–"
                cells = (format_mean(values), difference, advice, str(len(values)))
            rows.append(
                (f"noise {noise}, {STUDY.methods[method]}", *cells[:1], f"{paper:.2f} ({spread:.2f})", *cells[1:])
            )
    return NumberTable(
        f"Best value after {_num_evaluations(records)} evaluations, mean and half a 95 % interval; the paper's are "
        "after 150, over 20 trials, with a spread of a kind that it does not state. Then our mean less the paper's "
        "with our standard error, and the value of the recommended point. The optimum is 3.322.",
        ("noise and method", "here", "paper", "difference ± standard error", "recommended", "trials"),
        tuple(rows),
    )


def _num_evaluations(records: Records) -> int:
    counts: list[int] = records.all[0].outcome["num_evaluations"]
    return counts[-1]
