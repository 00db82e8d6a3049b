"""Which studies and figures there are. Each lives in a module of its own, imported when it is asked for."""

from importlib import import_module

from streamgp.checks import check_choice
from streamgp.experiments.figure import Figure
from streamgp.experiments.study import Study

__all__ = ["FIGURES", "STUDIES", "find_figure", "find_study"]

# In the order of the report. A module `figures/NAME.py` defines `FIGURE`.
FIGURES = (
    "fig1",
    "fig2",
    "branin",
    "fig3a",
    "fig3c",
    "fig4a",
    "fig4b",
    "fig4c",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "table_q3",
    "table_q1",
    "fig10a",
    "fig10b",
    "fig11",
)
# A module `studies/NAME.py` defines `STUDY`, and `settings/NAME.toml` holds its settings.
STUDIES = (
    "conditioning",
    "protein",
    "branin",
    "hartmann",
    "malaria",
    "hotspots",
    "rover",
    "condition_numbers",
    "sine",
    "exchange_rates",
    "bananas",
)


def find_figure(name: str) -> Figure:
    """The figure of a name."""
    check_choice(name, FIGURES, "name")
    figure: Figure = import_module(f"streamgp.experiments.figures.{name}").FIGURE
    return figure


def find_study(name: str) -> "Study[object]":
    """The study of a name."""
    check_choice(name, STUDIES, "name")
    study: Study[object] = import_module(f"streamgp.experiments.studies.{name}").STUDY
    return study
