"""Fig. 4a: where to measure malaria in Nigeria."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.claims import is_larger, weigh
from paper.analysis.drawing import PALETTE, draw_trials, legend_below, new_picture
from paper.analysis.statistics import Difference, format_mean, paired_difference
from paper.plots.maps import draw_places, mark_places
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records
from paper.studies.malaria import STUDY

__all__ = ["FIGURE"]

_PROBLEM = "nigeria"
_MODELS = {"svgp": "SVGP", "exact": "exact GP", "wiski": "WISKI"}


def draw(records: Records) -> Picture:
    picture = new_picture(2, 2, height=3.4)
    errors, gains, mean, deviation = picture.axes
    x = _numbers(records)
    for index, method in enumerate(STUDY.methods):
        if not records.of(_PROBLEM, method):
            continue
        values = records.outcomes(_PROBLEM, method, "rmse")
        draw_trials(errors, x, values, label=STUDY.methods[method], index=index)
    errors.set_ylabel("RMSE on held-out pixels")
    for index, (model, label) in enumerate(_MODELS.items()):
        pair = [f"{model}-{rule}" for rule in ("random", "nipv")]
        shared = records.shared((_PROBLEM, method) for method in pair)
        if not shared.all:
            continue
        random, chosen = (np.array(shared.outcomes(_PROBLEM, method, "rmse")) for method in pair)
        draw_trials(gains, x, list(random - chosen), label=label, index=2 * index)
    gains.axhline(0.0, color="0.5", linewidth=1.0)
    gains.set_ylabel("RMSE, random less integrated variance")
    for axes in (errors, gains):
        axes.set_xlabel("measured pixels")
    _draw_maps(mean, deviation, records)
    legend_below(picture)
    return picture


def _draw_maps(mean: Axes, deviation: Axes, records: Records) -> None:
    """Maps of the sparse GP after its choices, in the trial that kept one."""
    outcome = records.outcome(_PROBLEM, "svgp-nipv") if "svgp-nipv" in _shown(records) else {}
    if "map" not in outcome:
        for axes in (mean, deviation):
            axes.set_axis_off()
        return
    found = outcome["map"]
    places = (found["longitude"], found["latitude"])
    draw_places(mean, places, found["mean"], title="SVGP: predicted rate", label="infected share")
    title = "its uncertainty, and the measured pixels"
    draw_places(deviation, places, found["deviation"], title=title, label="standard deviation", colors="magma")
    num_initial = records.settings["num_initial"]
    first, later = outcome["chosen"][:num_initial], outcome["chosen"][num_initial:]
    for chosen, color, label in ((first, "white", "first, random"), (later, PALETTE[4], "chosen")):
        longitude, latitude = zip(*chosen, strict=True)
        mark_places(deviation, (longitude, latitude), color=color, label=label)


def _last(records: Records, method: str) -> list[float]:
    return [errors[-1] for errors in records.outcomes(_PROBLEM, method, "rmse")]


def _less(records: Records, first: str, second: str) -> Difference | None:
    """By how much the last error of the second is above that of the first; None without trials that both have."""
    shared = records.shared((_PROBLEM, method) for method in (first, second))
    return paired_difference(_last(shared, second), _last(shared, first)) if shared.all else None


def _numbers(records: Records) -> list[int]:
    """Numbers of measured pixels, which are the same for all lines."""
    numbers: list[int] = records.all[0].outcome["num_points"]
    return numbers


def _shown(records: Records) -> dict[str, str]:
    """The lines that have run."""
    return {method: label for method, label in STUDY.methods.items() if records.of(_PROBLEM, method)}


def describe(records: Records) -> str:
    ends = ", ".join(f"{label} {np.mean(_last(records, method)):.3g}" for method, label in _shown(records).items())
    num_points = _numbers(records)[-1]
    return (
        f"Error on held-out pixels against measured pixels for {len(_shown(records))} methods, what choosing gains "
        "over random choice for each model, and two maps of Nigeria with the prediction and uncertainty of the SVGP. "
        f"Mean errors after {num_points} pixels: {ends}."
    )


def judge(records: Records) -> Judgement:
    beaten = [
        is_larger(
            f"error of {label} after the last choice, random less integrated variance",
            _less(records, f"{model}-nipv", f"{model}-random"),
        )
        for model, label in _MODELS.items()
    ]
    better = [
        is_larger(
            f"with integrated variance, error of {_MODELS[model]} less SVGP",
            _less(records, "svgp-nipv", f"{model}-nipv"),
        )
        for model in ("exact", "wiski")
    ]
    return weigh([*beaten, *better])


def tables(records: Records) -> tuple[NumberTable, ...]:
    numbers = _numbers(records)
    marks = [len(numbers) // 3, 2 * len(numbers) // 3, len(numbers) - 1]
    rows = []
    for method, label in _shown(records).items():
        errors = np.array(records.outcomes(_PROBLEM, method, "rmse"))
        seconds = np.mean([record.seconds for record in records.of(_PROBLEM, method)])
        values = (format_mean(errors[:, mark].tolist(), digits=4) for mark in marks)
        rows.append((label, *values, f"{seconds:.0f}", str(len(errors))))
    return (
        NumberTable(
            "RMSE on held-out pixels, mean and half a 95 % interval, and seconds of a run. The paper has none.",
            ("method", *(f"{numbers[mark]} pixels" for mark in marks), "seconds", "trials"),
            tuple(rows),
        ),
    )


FIGURE = Figure(
    name="fig4a",
    title="Fig. 4a: where to measure malaria",
    study="malaria",
    problems=(_PROBLEM,),
    methods=tuple(STUDY.methods),
    claim=(
        "With each model, choosing by integrated posterior variance beats choosing at random; the SVGP is slightly "
        "better than the exact GP and WISKI."
    ),
    notes=(
        "The map of 2017 that the paper uses could not be had. This is that of 2015, of an earlier release, without "
        "published uncertainty: the known standard deviation is an assumed share of the rate. Orders of methods can be "
        "compared with the paper, errors cannot.",
        "Known noise depends on the rate, so methods see it of measured pixels only and expect its mean elsewhere.",
        "The first ten pixels are random, new for each trial; the paper's code takes the first rows of the file.",
        "Pixels are chosen from the pool itself, one after the other, instead of a continuous search and the nearest "
        "pixel. The variance is integrated over pixels of the pool, not over the test set.",
        "The exact GP chooses from a random part of the pool, by the values of BoTorch's "
        "qNegIntegratedPosteriorVariance in closed form; its quick runs are from before, by BoTorch's own code.",
        "WISKI has its online updates on the 30 × 30 grid; the paper's code refits a KISS-GP. Its grid reaches a step "
        "beyond the map, and its kernel is the same Matérn-1/2 as that of the others, not a product over coordinates.",
        "Fits are by L-BFGS, after every few choices and from the last one; the paper's are by Adam after each.",
    ),
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
    needs_all=False,
)
