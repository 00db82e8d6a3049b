"""Fig. 4c: the prevalence of villages that were not visited."""

from matplotlib.figure import Figure as Picture

from streamgp.experiments.analysis.claims import is_larger, weigh
from streamgp.experiments.analysis.drawing import new_picture
from streamgp.experiments.plots.village_survey import (
    METHODS,
    NOTES,
    PROBLEM,
    compare,
    draw_curves,
    draw_gains,
    marks_of,
    mean_at_end,
    survey_table,
)
from streamgp.experiments.schema.figure import Figure, Judgement, NumberTable
from streamgp.experiments.schema.record import Records
from streamgp.experiments.studies.hotspots import STUDY

__all__ = ["FIGURE"]


def draw(records: Records) -> Picture:
    picture = new_picture(1, 2, height=3.6)
    error, gains = picture.axes
    draw_curves(error, records, "error", label="mean squared error of the prevalence")
    draw_gains(gains, records, "error", label="error, random less choosing", sign=-1.0)
    return picture


def describe(records: Records) -> str:
    ends = ", ".join(f"{STUDY.methods[method]} {mean_at_end(records, 'error', method):.4f}" for method in METHODS)
    number = records.outcome(PROBLEM, METHODS[0])["num_villages"][marks_of(records)[-1]]
    return (
        "Mean squared error of the predicted prevalence against visited villages for five methods, and what choosing "
        f"gains over random choice. Mean errors after {number} villages: {ends}."
    )


def judge(records: Records) -> Judgement:
    end = marks_of(records)[-1]
    return weigh(
        [
            is_larger(
                "error of the SVGP, random less entropy",
                compare(records, "error", "svgp-random", "svgp-entropy", mark=end),
            ),
            is_larger(
                "error when choosing, forest less SVGP",
                compare(records, "error", "forest-adaptive", "svgp-entropy", mark=end),
            ),
            is_larger(
                "error at random, forest less SVGP",
                compare(records, "error", "forest-random", "svgp-random", mark=end),
            ),
        ]
    )


def tables(records: Records) -> tuple[NumberTable, ...]:
    caption = "Mean squared error of the prevalence of villages that were not visited, mean and half a 95 % interval."
    return (survey_table(records, "error", caption=caption),)


FIGURE = Figure(
    name="fig4c",
    title="Fig. 4c: finding hotspots, prevalence",
    study="hotspots",
    problems=(PROBLEM,),
    methods=METHODS,
    claim=(
        "The SVGP predicts prevalence better than forests with kriging, and choosing villages by hotspot entropy "
        "clearly beats random choice."
    ),
    notes=NOTES,
    draw=draw,
    describe=describe,
    judge=judge,
    tables=tables,
)
