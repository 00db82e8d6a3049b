"""A small world of figures and results, with all that a page has to show."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure as Picture

from paper.analysis.drawing import draw_trials, new_picture
from paper.report.report import Report, make_report
from paper.schema.configuration import Configuration
from paper.schema.figure import Figure, Judgement, NumberTable
from paper.schema.record import Records, UnitRecord
from paper.schema.results import append_record, results_file

# A name that needs escapes in an address and on a page.
STUDY = "tea & biscuits #1"
EVIL = "<script>alert('no')</script>"


@dataclass(frozen=True)
class Settings:
    num_cups: int
    strength: float
    kinds: tuple[str, ...]


SETTINGS = Settings(num_cups=6, strength=0.25, kinds=("green", "black", EVIL))
CONFIGURATIONS = (Configuration("quick", 3, 2.0, SETTINGS), Configuration("full", 50, 720.0, SETTINGS))


def draw(records: Records):
    picture = new_picture(1, 2)
    for axes, problem in zip(picture.axes, ("warm", "cold"), strict=True):
        for index, method in enumerate(("pot", "bag")):
            values = records.outcomes(problem, method, "warmth")
            draw_trials(axes, np.arange(len(values[0])), values, label=method, index=index)
        axes.set(xlabel="minutes", ylabel="warmth", title=problem)
        axes.legend()
    return picture


def tables(records: Records):
    header = ("method", *(f"after {minute} minutes" for minute in range(12)))
    rows = [
        (method, *(f"{value:.2f} (0.01)" for value in records.outcome("warm", method)["warmth"]))
        for method in ("pot", "bag")
    ]
    return (NumberTable("Warmth beside the paper's", header, tuple(rows)),)


def raise_error(records: Records):
    raise KeyError(f"no warmth {EVIL}")


GOOD = Figure(
    name="good",
    title="Fig. 1: tea cools",
    study=STUDY,
    problems=("warm", "cold"),
    methods=("pot", "bag"),
    claim="Tea in a pot stays warm for longer than tea from a bag, in warm rooms and in cold ones. " * 2,
    notes=("The paper forgot the sugar.", f"Cups are {EVIL} here."),
    draw=draw,
    describe=lambda records: f'Two panels, "warm" & "cold": both lines fall, over {len(records.all)} runs.',
    judge=lambda records: Judgement("reproduced", "The pot is warmer by 0.2 ± 0.1 over 3 trials."),
    tables=tables,
)
PLAIN = replace(GOOD, draw=lambda records: Picture(figsize=(8, 1)))
PARTLY = replace(PLAIN, name="partly", title="Fig. 2: milk", judge=lambda records: Judgement("partly", "In one room."))
WRONG = replace(PLAIN, name="wrong", title="Table 1: sugar", judge=lambda records: Judgement("not", "It dissolved."))
BROKEN = replace(GOOD, name="broken", title="Fig. 3: broken", draw=raise_error, judge=raise_error)
ABSENT = replace(GOOD, name="absent", title="Fig. 4: absent", study="coffee", notes=())
FIGURES = (GOOD, PARTLY, WRONG, BROKEN, ABSENT)


def make_record(problem: str, method: str, seed: int) -> UnitRecord:
    minutes = np.arange(12)
    warmth = np.exp(-minutes / (6.0 + 3.0 * (method == "pot") + seed)) * (1.0 if problem == "warm" else 0.8)
    return UnitRecord(
        study=STUDY,
        problem=problem,
        method=method,
        seed=seed,
        scale="quick",
        settings={"num_cups": 6, "strength": 0.25, "kinds": ["green", "black", EVIL]},
        outcome={"warmth": warmth.round(4).tolist()},
        seconds=90.0,
        machine=f"A processor {EVIL}, 2 cores",
        software={"python": "3.12.1", "torch": "2.9.0"},
        finished=f"2025-06-0{seed + 1}T12:00:00+00:00",
    )


@pytest.fixture(scope="session")
def records() -> Records:
    """Three finished trials of two problems and two methods."""
    pairs = [(problem, method) for problem in ("warm", "cold") for method in ("pot", "bag")]
    return Records(tuple(make_record(*pair, seed) for pair in pairs for seed in range(3)))


@pytest.fixture
def figure() -> Figure:
    """A figure that is drawn and judged in no time."""
    return PLAIN


@pytest.fixture
def detailed_figure() -> Figure:
    """A figure with axes, lines and texts."""
    return GOOD


@dataclass(frozen=True)
class Example:
    """A report, and the directory that its page is made for."""

    report: Report
    home: Path


@pytest.fixture(scope="session")
def example(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Example:
    """All figures, from results in `my results` with two damaged lines."""
    home = tmp_path_factory.mktemp("a page")
    directory = home / "my results"
    for record in records.all:
        append_record(record, directory)
    with results_file(STUDY, "quick", directory).open("a", encoding="utf-8") as file:
        file.write(f'{{"version": 1, "study": "{EVIL}"\n{{"version": 99}}\n')
    configurations = {STUDY: CONFIGURATIONS, "coffee": CONFIGURATIONS}
    return Example(make_report(FIGURES, "quick", directory, home=home, configurations=configurations), home)
