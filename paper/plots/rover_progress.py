"""Rewards and times on rover against evaluations, for the figures that show them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Picture
from numpy.typing import NDArray

from paper.analysis.drawing import draw_medians, legend_below, new_picture
from paper.analysis.statistics import (
    MIN_TRIALS_OF_MEDIANS,
    Difference,
    median_and_interval,
    paired_difference,
)
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records

__all__ = [
    "MARGIN",
    "NOTES",
    "compare_rewards",
    "compare_times",
    "describe_rewards",
    "draw_columns",
    "final_table",
    "name_methods",
    "rover_figure",
]

PROBLEM = "rover"
# Of two methods that are called alike: a twentieth of the way from random inputs, at -19, to the bound of 4.9.
MARGIN = 1.2
NOTES = (
    "The initial design is a scrambled Sobol sequence, the same for all methods of a seed; the paper's is uniform.",
    "The look-ahead chooses from the conditioned model and follows one function along each path; the paper's listing "
    "would choose from the model before.",
    "The best value of a run counts its initial design; the paper's code leaves that out after a restart.",
    "Fits go on from the hyperparameters of the step before, for exact and sparse models alike.",
    "Times are those of the processor, with one thread, so that other work on the machine does not count; evaluations "
    "are left out.",
)


def name_methods(records: Records, methods: Sequence[str]) -> dict[str, str]:
    """Labels with the numbers of inducing points that were used."""
    settings = records.settings
    labels = {}
    for method in methods:
        model, *words = method.split("-")
        if model == "exact":
            labels[method] = f"exact, {words[0].upper()}"
        else:
            size, objective, acquisition = words[:3]
            count = settings[f"num_inducing_{size}"]
            labels[method] = f"SVGP {count}, {objective.upper()}, {acquisition.upper()}"
    return labels


def rover_figure(
    name: str,
    title: str,
    labels: Callable[[Records], Mapping[str, str]],
    *,
    methods: Sequence[str],
    claim: str,
    notes: Sequence[str],
    judge: Callable[[Records], Judgement],
    columns: Callable[[Records], Sequence[tuple[str, Mapping[str, str]]]] | None = None,
) -> Figure:
    """A figure of rewards and times, with a table of the last ones.

    Args:
        name: Its name on the command line.
        title: Its heading.
        labels: The methods of some results with their labels.
        methods: The methods that it needs.
        claim: What the paper says, in our words.
        notes: What differs in this figure, besides what differs in all of rover.
        judge: Says whether the claim held.
        columns: Title and methods of each column; all methods in one by default.
    """
    return Figure(
        name=name,
        title=title,
        study="rover",
        problems=(PROBLEM,),
        methods=tuple(methods),
        claim=claim,
        notes=(*notes, *NOTES),
        draw=lambda records: draw_columns(records, [("", labels(records))] if columns is None else columns(records)),
        describe=lambda records: describe_rewards(records, labels(records)),
        judge=judge,
        tables=lambda records: (final_table(records, labels(records)),),
        needs_all=False,
    )


def compare_rewards(records: Records, first: Sequence[str], second: Sequence[str]) -> Difference | None:
    """The difference of last best rewards between two groups of methods, averaged over each, trial by trial."""
    return _compare(records, first, second, lambda shared, method: _rewards(shared, method)[:, -1])


def compare_times(records: Records, first: Sequence[str], second: Sequence[str]) -> Difference | None:
    """The logarithm of the ratio of the times of all steps between two groups of methods, trial by trial."""
    return _compare(records, first, second, lambda shared, method: np.log(_times(shared, method)[:, -1]))


def _compare(
    records: Records,
    first: Sequence[str],
    second: Sequence[str],
    values: Callable[[Records, str], NDArray[np.float64]],
) -> Difference | None:
    """Over the trials that all of them have; None without any."""
    shared = records.shared((PROBLEM, method) for method in (*first, *second))
    if not shared.all:
        return None
    return paired_difference(*(_averaged([values(shared, method) for method in group]) for group in (first, second)))


def draw_columns(records: Records, columns: Sequence[tuple[str, Mapping[str, str]]]) -> Picture:
    """Draw rewards in the upper row and times in the lower, a column for each group of methods.

    Args:
        records: The results.
        columns: Title of each column, and its methods with their labels.
    """
    picture = new_picture(2, len(columns), height=3.2)
    for column, (title, labels) in enumerate(columns):
        upper, lower = picture.axes[column], picture.axes[len(columns) + column]
        for index, (method, label) in enumerate(labels.items()):
            if not records.of(PROBLEM, method):
                continue
            x = records.outcome(PROBLEM, method)["num_evaluations"]
            for axes, runs in ((upper, _rewards(records, method)), (lower, _times(records, method))):
                draw_medians(axes, x, list(runs), label=label, index=index, num_lines=len(labels))
        upper.set_title(title)
        lower.set_xlabel("evaluations")
    picture.axes[0].set_ylabel("best reward")
    picture.axes[len(columns)].set_ylabel("seconds of all steps")
    legend_below(picture)
    return picture


def describe_rewards(records: Records, labels: Mapping[str, str]) -> str:
    """Say what the picture shows."""
    labels = _shown(records, labels)
    num = records.outcome(PROBLEM, next(iter(labels)))["num_evaluations"][-1]
    ends = "; ".join(
        f"{label} {np.median(reward[:, -1]):.2f} in {np.median(time[:, -1]):.0f} s"
        for method, label in labels.items()
        for reward, time in [(_rewards(records, method), _times(records, method))]
    )
    return (
        f"Best reward and time of all steps against evaluations, with {_interval(records, next(iter(labels)))}. "
        f"Medians after {num} evaluations: {ends}."
    )


def final_table(records: Records, labels: Mapping[str, str]) -> NumberTable:
    """The last best rewards and the times, with the number of trials."""
    labels = _shown(records, labels)
    first = next(iter(labels))
    rows = []
    for method, label in labels.items():
        reward, time = (
            median_and_interval(table[:, -1]) for table in (_rewards(records, method), _times(records, method))
        )
        numbers = ("{:.3g} [{:.3g}, {:.3g}]".format(*map(float, one)) for one in (reward, time))
        rows.append((label, *numbers, str(len(records.of(PROBLEM, method)))))
    num = records.outcome(PROBLEM, first)["num_evaluations"][-1]
    return NumberTable(
        f"Best reward after {num} evaluations and seconds of all steps, median and {_interval(records, first)}.",
        ("method", "reward", "seconds", "trials"),
        tuple(rows),
    )


def _shown(records: Records, labels: Mapping[str, str]) -> dict[str, str]:
    """The methods that have run."""
    return {method: label for method, label in labels.items() if records.of(PROBLEM, method)}


def _interval(records: Records, method: str) -> str:
    num_trials = len(records.of(PROBLEM, method))
    return "the range of all trials" if num_trials < MIN_TRIALS_OF_MEDIANS else "a 95 % interval from order statistics"


def _rewards(records: Records, method: str) -> NDArray[np.float64]:
    return np.array(records.outcomes(PROBLEM, method, "best"), dtype=float)


def _times(records: Records, method: str) -> NDArray[np.float64]:
    """Time spent until each mark, zero after the initial design."""
    seconds = np.array(records.outcomes(PROBLEM, method, "seconds"), dtype=float)
    return np.pad(seconds.cumsum(1), ((0, 0), (1, 0)))


def _averaged(values: Sequence[NDArray[np.float64]]) -> list[float]:
    return [float(value) for value in np.mean(values, axis=0)]
