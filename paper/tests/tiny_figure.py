"""A figure of the tiny study, and a registry that holds nothing else."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from matplotlib.figure import Figure as Picture

from paper import registry
from paper.schema.figure import Figure, Judgement
from paper.tests import tiny_study

__all__ = ["FIGURE", "tiny_registry"]

FIGURE = Figure(
    name="tiny_figure",
    title="A figure of the tiny study",
    study="tiny",
    problems=("left",),
    methods=("sum", "process"),
    claim="Sums are positive.",
    notes=(),
    draw=lambda records: Picture(),
    describe=lambda records: "An empty picture.",
    judge=lambda records: Judgement("reproduced", "All sums are positive."),
    tables=lambda records: (),
    is_statistical=False,
)


@contextmanager
def tiny_registry() -> Iterator[None]:
    """Make the tiny study and its figure the only ones."""
    modules = {
        "paper.studies.tiny": tiny_study,
        "paper.figures.tiny_figure": sys.modules[__name__],
    }
    sys.modules.update(modules)
    try:
        with patch.object(registry, "STUDIES", ("tiny",)), patch.object(registry, "FIGURES", ("tiny_figure",)):
            yield
    finally:
        for name in modules:
            del sys.modules[name]
