"""Best values on Hartmann6 at two noise levels, beside those of the paper, for the tables that show them."""

import math

import numpy as np
from matplotlib.figure import Figure as Picture

from streamgp.experiments.claims import Check, is_larger, is_similar
from streamgp.experiments.drawing import PALETTE, new_picture
from streamgp.experiments.figure import NumberTable
from streamgp.experiments.panels.hartmann_progress import MARGIN, compare, final_values
from streamgp.experiments.record import Records
from streamgp.experiments.statistics import Difference, format_mean, mean_and_error, paired_difference
from streamgp.experiments.studies.hartmann import STUDY

__all__ = ["METHODS", "check_table", "check_variation", "describe_table", "draw_table", "number_table", "problems_of"]

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


def check_table(records: Records, batch: str) -> list[Check]:
    """What the paper says of a table, averaged over its cells trial by trial."""
    both, low, high = problems_of(batch), problems_of(batch)[:1], problems_of(batch)[1:]
    qnei, qkg, exact, svgp = METHODS[:2], METHODS[2:], METHODS[::2], METHODS[1::2]
    noise = paired_difference(final_values(records, low, METHODS), final_values(records, high, METHODS))
    return [
        is_similar("SVGPs against exact GPs", compare(records, both, svgp, exact), MARGIN),
        is_larger("qKG above qNEI", compare(records, both, qkg, qnei)),
        is_larger("SVGPs above exact GPs at noise 0.5", compare(records, high, svgp, exact)),
        is_larger("noise 0.1 above noise 0.5", noise),
    ]


def check_variation(records: Records) -> Check:
    r"""Whether larger batches vary less: by the logarithm of the ratio of variances over trials, pooled over cells.

    With $k$ degrees of freedom in each, its standard error is about $\sqrt{4 / k}$.
    """
    variances, freedom = [], 0
    for batch in ("q1", "q3"):
        table = np.array(
            [final_values(records, [problem], [method]) for problem in problems_of(batch) for method in METHODS]
        )
        freedom = table.shape[0] * (table.shape[1] - 1)
        # Of runs that all end at the same value, the logarithm is that of a variance far below any that matters.
        variances.append(max(float(table.var(1, ddof=1).mean()), 1e-12) if freedom else math.nan)
    error = 2.0 * math.sqrt(4.0 / freedom) if freedom else math.nan
    ratio = Difference(math.log(variances[0] / variances[1]), error, len(records.of(problems_of("q1")[0], METHODS[0])))
    return is_larger("logarithm of the variance of single points over that of batches of 3", ratio)


def draw_table(records: Records, batch: str) -> Picture:
    """Draw each cell with two standard errors, and the paper's number beside it as an open circle."""
    picture = new_picture(height=3.6)
    axes = picture.axes[0]
    for index, noise in enumerate(_NOISES):
        rows = np.arange(len(METHODS)) + 0.3 * index - 0.15
        cells = [final_values(records, [f"noise{noise}-{batch}"], [method]) for method in METHODS]
        moments = [mean_and_error(cell) for cell in cells]
        means, errors = ([float(moment[part]) for moment in moments] for part in (0, 1))
        paper = [mean for mean, _ in _PAPER[batch, noise]]
        color = PALETTE[index]
        axes.errorbar(means, rows, xerr=errors, fmt="o", color=color, capsize=3, label=f"noise {noise}")
        axes.plot(paper, rows, "o", markerfacecolor="none", color=color, label=f"noise {noise}, paper")
    axes.set_yticks(range(len(METHODS)), [STUDY.methods[method] for method in METHODS])
    axes.invert_yaxis()
    axes.set_xlabel(f"best noise-free value after {_num_evaluations(records, batch)} evaluations")
    axes.legend(ncols=2)
    return picture


def describe_table(records: Records, batch: str) -> str:
    """Say what the picture shows."""
    cells = [
        f"{STUDY.methods[method]} at noise {noise} "
        f"{format_mean(final_values(records, [f'noise{noise}-{batch}'], [method]))}"
        for noise in _NOISES
        for method in METHODS
    ]
    return f"Best values after {_num_evaluations(records, batch)} evaluations: {'; '.join(cells)}."


def number_table(records: Records, batch: str) -> NumberTable:
    """Our numbers beside the paper's."""
    rows = []
    for noise in _NOISES:
        for method, (mean, spread) in zip(METHODS, _PAPER[batch, noise], strict=True):
            ours = format_mean(final_values(records, [f"noise{noise}-{batch}"], [method]))
            rows.append((f"noise {noise}, {STUDY.methods[method]}", ours, f"{mean:.2f} ({spread:.2f})"))
    return NumberTable(
        f"Best value after {_num_evaluations(records, batch)} evaluations, mean and two standard errors; the paper's "
        "are after 150, over 20 trials, with a spread of a kind that it does not state. The optimum is 3.322.",
        ("noise and method", "here", "paper"),
        tuple(rows),
    )


def _num_evaluations(records: Records, batch: str) -> int:
    counts: list[int] = records.outcome(problems_of(batch)[0], METHODS[0])["num_evaluations"]
    return counts[-1]
