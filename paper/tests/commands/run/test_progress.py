import io

from rich.console import Console

from paper.commands.run.progress import RunProgress
from paper.engine.execution import Failure
from paper.engine.forecast import Forecast
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit

UNITS = tuple(Unit("tiny", "mine", "left", "sum", seed) for seed in range(6))


def make_record(unit: Unit, seconds: float) -> UnitRecord:
    return UnitRecord(unit.study, unit.problem, unit.method, unit.seed, unit.scale, {}, {}, seconds, "", {}, "")


def test_a_terminal_shows_units_failures_and_the_time_left():
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    with RunProgress(console, Forecast({("tiny", "mine"): 600.0}), UNITS, num_workers=2) as progress:
        progress.start(UNITS[0])
        progress.start(UNITS[1])
        first = _picture(progress)
        progress.finish(make_record(UNITS[0], 60.0))
        progress.finish(Failure(UNITS[1], "Traceback\nValueError: [no] number"))
        second = _picture(progress)
    assert "0/6" in first
    assert "30 min left" in first
    assert "tiny: left, sum, seed 0 · tiny: left, sum, seed 1" in first
    assert "2/6" in second
    assert "2 min left" in second  # four units of a minute each, two at a time
    assert "1 failed" in second
    assert "2 of 6: tiny: left, sum, seed 1: failed: ValueError: [no] number" in console.file.getvalue()


def test_many_units_are_counted_and_not_named():
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    progress = RunProgress(console, Forecast({("tiny", "mine"): 1.0}), UNITS, num_workers=6)
    for unit in UNITS:
        progress.start(unit)
    assert "6 of tiny" in _picture(progress)


def test_without_a_terminal_every_unit_has_a_line():
    console = Console(file=io.StringIO(), width=200)
    with RunProgress(console, Forecast({("tiny", "mine"): 1.0}), UNITS, num_workers=2) as progress:
        for unit in UNITS[:2]:
            progress.finish(make_record(unit, 61.0))
    assert console.file.getvalue().splitlines() == [
        "1 of 6: tiny: left, sum, seed 0: 61 s",
        "2 of 6: tiny: left, sum, seed 1: 61 s",
    ]


def _picture(progress: RunProgress) -> str:
    """The bar as a terminal would show it."""
    console = Console(file=io.StringIO(), width=200)
    console.print(progress._bar.get_renderable())
    return console.file.getvalue()
