"""Fig. 4b: which villages are hotspots."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from paper.analysis.drawing import PALETTE, legend_below, new_picture
from paper.plots.maps import draw_places, mark_places
from paper.plots.village_survey import (
    PROBLEM,
    draw_curves,
    draw_gains,
    judge_differences,
    list_ends,
    marks_of,
    survey_figure,
)
from paper.schema.figure import Judgement
from paper.schema.record import Records

__all__ = ["FIGURE"]


def draw(records: Records) -> Picture:
    picture = new_picture(2, 2, height=3.6)
    accuracy, gains, prevalence, exceedance = picture.axes
    draw_curves(accuracy, records, "accuracy", label="accuracy on other villages")
    draw_gains(gains, records, "accuracy", label="accuracy, choosing less random", sign=1.0)
    _draw_maps(prevalence, exceedance, records)
    legend_below(picture)
    return picture


def _draw_maps(prevalence: Axes, exceedance: Axes, records: Records) -> None:
    """Maps of the sparse GP after its choices, in the trial that kept one."""
    outcome = records.outcome(PROBLEM, "svgp-entropy")
    if "map" not in outcome:
        for axes in (prevalence, exceedance):
            axes.set_axis_off()
        return
    found = outcome["map"]
    places = (found["longitude"], found["latitude"])
    draw_places(prevalence, places, found["prevalence"], title="SVGP: predicted prevalence", label="infected share")
    title = "is it a hotspot? and the visited villages"
    draw_places(exceedance, places, found["exceedance"], title=title, label="probability", colors="coolwarm")
    num_initial, coordinates = records.settings["num_initial"], np.array(places)
    first, later = outcome["visited"][:num_initial], outcome["visited"][num_initial:]
    for visited, color, label in ((first, "white", "first, random"), (later, PALETTE[4], "chosen")):
        longitude, latitude = coordinates[:, visited].tolist()
        mark_places(exceedance, (longitude, latitude), color=color, label=label)


def describe(records: Records) -> str:
    return (
        "Accuracy of hotspots against visited villages for five methods, what choosing gains over random choice, and "
        "two maps of Côte d'Ivoire with the SVGP's predicted prevalence, its probability of a hotspot and the visited "
        f"villages. Mean accuracies {list_ends(records, 'accuracy', digits=3)}"
    )


def judge(records: Records) -> Judgement:
    start, _, end = marks_of(records)
    claims = {
        "accuracy of the SVGP, entropy less random": ("svgp-entropy", "svgp-random", end),
        "accuracy at the end, SVGP with entropy less forest with random choice": ("svgp-entropy", "forest-random", end),
        "accuracy at the start, forest less SVGP": ("forest-adaptive", "svgp-entropy", start),
    }
    return judge_differences(records, "accuracy", claims)


FIGURE = survey_figure(
    "fig4b",
    "Fig. 4b: finding hotspots, accuracy",
    "accuracy",
    claim=(
        "Choosing villages by hotspot entropy clearly beats random choice. Forests with kriging start more accurate, "
        "and the SVGP ends above forests with random choice."
    ),
    caption="Accuracy on villages that were not visited, mean and half a 95 % interval, and mean seconds of a step.",
    draw=draw,
    describe=describe,
    judge=judge,
)
