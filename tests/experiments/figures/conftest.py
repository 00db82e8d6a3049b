from collections.abc import Callable, Mapping
from typing import Any

import matplotlib as mpl
import pytest

from streamgp.experiments.schema.figure import Figure
from streamgp.experiments.schema.record import Records, UnitRecord

mpl.use("agg")

# Outcomes by problem and method, one for each seed.
Outcomes = Mapping[tuple[str, str], list[dict[str, Any]]]


@pytest.fixture
def to_records() -> Callable[[Outcomes], Records]:
    """Make records of outcomes."""

    def make(outcomes: Outcomes) -> Records:
        return Records(
            tuple(
                UnitRecord(
                    "study", problem, method, seed, "quick", {}, outcome, 1.0, "machine", {}, "2026-01-01T00:00:00Z"
                )
                for (problem, method), trials in outcomes.items()
                for seed, outcome in enumerate(trials)
            )
        )

    return make


@pytest.fixture
def check_shown() -> Callable[[Figure, Records], None]:
    """Draw, describe and tabulate a figure, and check that all is there."""

    def check(figure: Figure, records: Records) -> None:
        picture = figure.draw(records)
        picture.draw_without_rendering()
        assert all(axes.has_data() for axes in picture.axes)
        assert len(figure.describe(records)) > 80
        for table in figure.tables(records):
            assert table.rows
            assert all(len(row) == len(table.header) for row in table.rows)

    return check
