"""The table of Hartmann6 with batches of three."""

from streamgp.experiments.analysis.claims import weigh
from streamgp.experiments.plots.hartmann_progress import NOTES
from streamgp.experiments.plots.hartmann_table import (
    METHODS,
    check_table,
    describe_table,
    draw_table,
    number_table,
    problems_of,
)
from streamgp.experiments.schema.figure import Figure

__all__ = ["FIGURE"]

FIGURE = Figure(
    name="table_q3",
    title="Table: Hartmann6 with batches of three",
    study="hartmann",
    problems=problems_of("q3"),
    methods=METHODS,
    claim="Exact GPs and SVGPs do about as well, SVGPs slightly better at the higher noise; knowledge gradient tends "
    "to do better than noisy expected improvement; higher noise is somewhat harder.",
    notes=(
        "In the paper's own table, noisy expected improvement is ahead of knowledge gradient for exact GPs.",
        *NOTES,
    ),
    draw=lambda records: draw_table(records, "q3"),
    describe=lambda records: describe_table(records, "q3"),
    judge=lambda records: weigh(check_table(records, "q3")),
    needs_all=False,
    tables=lambda records: (number_table(records, "q3"),),
)
