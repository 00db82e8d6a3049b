from dataclasses import replace
from pathlib import Path

from paper.report.commands import list_commands
from paper.schema.configuration import Configuration
from paper.schema.record import Records, UnitRecord

KNOWN = {"quick": Records(()), "full": Records(())}
CONFIGURATIONS = (Configuration("quick", 3, 2.0, None), Configuration("full", 50, 72.0, None))


def test_both_scales_come_with_their_runs_and_times(figure):
    quick, full = list_commands(figure, "quick", Path("paper/results"), configurations=CONFIGURATIONS, known=KNOWN)
    assert quick.line == "python -m paper run good --quick"
    assert quick.note == "quick settings: 12 runs, about 24 s on one core, 12 of these times guessed"
    assert full.line == "python -m paper run good --full"
    assert full.note == "full settings: 200 runs, about 4 h on one core, 200 of these times guessed"


def test_a_figure_that_is_not_statistical_runs_once(figure):
    _, full = list_commands(
        replace(figure, is_statistical=False),
        "quick",
        Path("paper/results"),
        configurations=CONFIGURATIONS,
        known=KNOWN,
    )
    assert "4 runs, about 5 min" in full.note


def test_another_directory_is_named_and_quoted(figure):
    quick, _ = list_commands(figure, "quick", Path("my results"), configurations=CONFIGURATIONS, known=KNOWN)
    assert quick.line == "python -m paper run good --quick --results 'my results'"


def test_own_settings_ask_for_their_file(figure):
    own, *others = list_commands(figure, "mine", Path("paper/results"), configurations=CONFIGURATIONS, known=KNOWN)
    assert own.line == "python -m paper run good --config FILE"
    assert "[mine]" in own.note
    assert len(others) == 2


def test_recorded_times_tell_how_long_it_takes(figure):
    records = Records(
        tuple(
            UnitRecord(figure.study, problem, method, 0, "quick", {}, {}, 99.0, "", {}, "", 50.0)
            for problem, method in figure.lines
        )
    )
    quick, _ = list_commands(
        figure, "quick", Path("paper/results"), configurations=CONFIGURATIONS, known={**KNOWN, "quick": records}
    )
    assert quick.note == "quick settings: 12 runs, about 10 min on one core"
