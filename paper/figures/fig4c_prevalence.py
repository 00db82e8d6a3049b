"""Fig. 4c: the prevalence of villages that were not visited."""

from matplotlib.figure import Figure as Picture

from paper.analysis.drawing import legend_below, new_picture
from paper.plots.village_survey import (
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
    picture = new_picture(1, 2, height=3.6)
    error, gains = picture.axes
    draw_curves(error, records, "error", label="mean squared error of the prevalence")
    draw_gains(gains, records, "error", label="error, random less choosing", sign=-1.0)
    legend_below(picture)
    return picture


def describe(records: Records) -> str:
    return (
        "Mean squared error of the predicted prevalence against visited villages for five methods, and what choosing "
        f"gains over random choice. Mean errors {list_ends(records, 'error', digits=4)}"
    )


def judge(records: Records) -> Judgement:
    end = marks_of(records)[-1]
    claims = {
        "error of the SVGP, random less entropy": ("svgp-random", "svgp-entropy", end),
        "error when choosing, forest less SVGP": ("forest-adaptive", "svgp-entropy", end),
        "error at random, forest less SVGP": ("forest-random", "svgp-random", end),
    }
    return judge_differences(records, "error", claims)


FIGURE = survey_figure(
    "fig4c",
    "Fig. 4c: finding hotspots, prevalence",
    "error",
    claim=(
        "The SVGP predicts prevalence better than forests with kriging, and choosing villages by hotspot entropy "
        "clearly beats random choice."
    ),
    caption="Mean squared error of the prevalence of villages that were not visited, mean and half a 95 % interval.",
    draw=draw,
    describe=describe,
    judge=judge,
)
