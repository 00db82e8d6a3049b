"""The table of Hartmann6 with one point at a time."""

from streamgp.experiments.analysis.claims import weigh
from streamgp.experiments.plots.hartmann_progress import NOTES
from streamgp.experiments.plots.hartmann_table import (
    METHODS,
    check_table,
    check_variation,
    describe_table,
    draw_table,
    number_table,
    problems_of,
)
from streamgp.experiments.schema.figure import Figure

__all__ = ["FIGURE"]

FIGURE = Figure(
    name="table_q1",
    title="Table: Hartmann6 with one point at a time",
    study="hartmann",
    problems=(*problems_of("q1"), *problems_of("q3")),
    methods=METHODS,
    claim="As for batches of three: exact GPs and SVGPs do about as well, SVGPs slightly better at the higher noise, "
    "knowledge gradient better than noisy expected improvement, and higher noise is somewhat harder. Larger batches "
    "vary less.",
    notes=("Compared with the results of batches of three, which it needs too.", *NOTES),
    draw=lambda records: draw_table(records, "q1"),
    describe=lambda records: describe_table(records, "q1"),
    judge=lambda records: weigh([*check_table(records, "q1"), check_variation(records)]),
    needs_all=False,
    tables=lambda records: (number_table(records, "q1"),),
)
