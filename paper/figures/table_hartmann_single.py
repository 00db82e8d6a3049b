"""The table of Hartmann6 with one point at a time."""

from paper.plots.hartmann_table import check_table, check_variation, problems_of, table_figure

__all__ = ["FIGURE"]

FIGURE = table_figure(
    "q1",
    "Table: Hartmann6 with one point at a time",
    lambda records: [*check_table(records, "q1"), check_variation(records)],
    problems=(*problems_of("q1"), *problems_of("q3")),
    claim="As for batches of three: exact GPs and SVGPs do about as well, SVGPs slightly better at the higher noise, "
    "knowledge gradient better than noisy expected improvement, and higher noise is somewhat harder. Larger batches "
    "vary less.",
    note="Compared with the results of batches of three, which it needs too.",
)
