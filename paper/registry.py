"""Which studies and figures there are. Each lives in a module of its own, imported when it is asked for."""

from importlib import import_module

from paper.schema.figure import Figure
from paper.schema.study import Study
from streamgp.checks import check_choice

__all__ = ["FIGURES", "STUDIES", "find_figure", "find_study"]

# Names on the command line, in the order of the report, and modules of `figures`, each of which defines `FIGURE`.
_MODULES = {
    "fig1": "fig1_conditioning",
    "fig2": "fig2_protein",
    "branin": "branin_knowledge_gradient",
    "fig3a": "fig3a_hartmann",
    "fig3b": "fig3b_laser",
    "fig3c": "fig3c_counts",
    "fig3d": "fig3d_preferences",
    "fig4a": "fig4a_malaria",
    "fig4b": "fig4b_hotspots",
    "fig4c": "fig4c_prevalence",
    "fig5": "fig5_rover",
    "fig5c": "fig5c_swimmer",
    "fig5d": "fig5d_hopper",
    "fig6": "fig6_sine",
    "fig7": "fig7_exchange_rates",
    "fig8": "fig8_bananas",
    "table_q3": "table_hartmann_batches",
    "table_q1": "table_hartmann_single",
    "fig10a": "fig10a_depths",
    "fig10b": "fig10b_condition_numbers",
    "fig10c": "fig10c_global",
    "fig10d": "fig10d_collapsed",
    "fig11": "fig11_inducing_points",
}
FIGURES = tuple(_MODULES)
# A module `studies/NAME.py` defines `STUDY`, and `settings/NAME.toml` holds its settings.
STUDIES = (
    "conditioning",
    "protein",
    "branin",
    "hartmann",
    "laser",
    "preferences",
    "malaria",
    "hotspots",
    "rover",
    "robots",
    "global_models",
    "condition_numbers",
    "sine",
    "exchange_rates",
    "bananas",
)


def find_figure(name: str) -> Figure:
    """The figure of a name."""
    check_choice(name, FIGURES, "name")
    figure: Figure = import_module(f"paper.figures.{_MODULES.get(name, name)}").FIGURE
    return figure


def find_study(name: str) -> "Study[object]":
    """The study of a name."""
    check_choice(name, STUDIES, "name")
    study: Study[object] = import_module(f"paper.studies.{name}").STUDY
    return study
