"""The table of Hartmann6 with batches of three."""

from paper.plots.hartmann_table import check_table, problems_of, table_figure

__all__ = ["FIGURE"]

FIGURE = table_figure(
    "q3",
    "Table: Hartmann6 with batches of three",
    lambda records: check_table(records, "q3"),
    problems=problems_of("q3"),
    claim="Exact GPs and SVGPs do about as well, SVGPs slightly better at the higher noise; knowledge gradient tends "
    "to do better than noisy expected improvement; higher noise is somewhat harder.",
    note="In the paper's own table, noisy expected improvement is ahead of knowledge gradient for exact GPs.",
)
