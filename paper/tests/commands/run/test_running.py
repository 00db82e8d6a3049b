from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pytest
from typer.testing import CliRunner

from paper import registry
from paper.commands.app import app
from paper.engine.execution import Failure, UnitTask, execute
from paper.engine.local_engine import AbstractEngine
from paper.engine.results import load_records
from paper.schema.configuration import Configuration
from paper.schema.record import UnitRecord
from paper.schema.unit import Unit
from paper.tests.tiny_figure import tiny_registry
from paper.tests.tiny_study import TinySettings

TEXT = """
[mine]
num_trials = 2
seconds_per_unit = 90
[mine.settings]
pause = 0
sizes = [1, 2]
label = "x"
"""


@final
@dataclass(frozen=True)
class HereEngine(AbstractEngine):
    """Runs units in this process, one by one."""

    num_jobs: int

    @property
    def num_workers(self) -> int:
        return self.num_jobs

    def run(self, tasks: Sequence[UnitTask], *, announce: Callable[[Unit], None]) -> Iterator[UnitRecord | Failure]:
        for task in tasks:
            announce(task.unit)
            yield execute(task)


@pytest.fixture
def run(tmp_path: Path, monkeypatch):
    """Runs `python -m paper run` with the tiny study, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paper.commands.run.running.JoblibEngine", HereEngine)
    Path("mine.toml").write_text(TEXT)

    def invoke(*arguments: str):
        # A wide terminal, so that no sentence is broken over lines.
        environment = {"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"}
        return CliRunner().invoke(app, ["run", *arguments], env=environment)

    with tiny_registry():
        yield lambda *arguments: invoke(*arguments, "--config", "mine.toml")


def finished() -> set[tuple[str, str, int]]:
    records, issues = load_records("tiny", "mine", Path("paper/results"))
    assert issues == ()
    return {(record.problem, record.method, record.seed) for record in records.all}


def test_a_study_runs_and_its_results_are_kept(run):
    result = run("tiny", "--methods", "sum, process", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "tiny (mine): 8 of 8 units to run, 6 min" in result.output
    assert "Forecast: 6 min with 2 at a time." in result.output
    assert "8 of 8: tiny: right, process, seed 1: under 1 s" in result.output
    assert "8 units have run and are kept." in result.output
    assert finished() == {
        (problem, method, seed) for problem in ("left", "right") for method in ("sum", "process") for seed in (0, 1)
    }


def test_what_has_run_is_skipped(run):
    run("tiny", "--methods", "sum", "--problems", "left")
    result = run("tiny", "--methods", "sum")
    assert "tiny (mine): 2 of 4 units to run, under 1 s" in result.output
    content = Path("paper/results/mine/tiny.jsonl").read_bytes()
    result = run("tiny", "--methods", "sum")
    assert result.exit_code == 0
    assert "All 4 units have run; nothing is left to do." in result.output
    assert Path("paper/results/mine/tiny.jsonl").read_bytes() == content


def test_a_unit_that_fails_does_not_stop_the_others(run):
    result = run("tiny", "--methods", "raises,nan,sum")
    assert result.exit_code == 1
    assert finished() == {(problem, "sum", seed) for problem in ("left", "right") for seed in (0, 1)}
    assert "Failed: tiny: left, raises, seed 0 (and 3 more of this method)" in result.output
    assert "ArithmeticError: seed 0 has no square root" in result.output
    assert "Results must be finite numbers" in result.output
    assert "4 units have run and are kept, 8 failed. Run the same command again to try these again." in result.output


def test_an_interrupt_keeps_what_has_ended_and_says_how_to_go_on(run, monkeypatch):
    def run_until_interrupt(self, tasks, *, announce):
        yield from (execute(task) for task in tasks if task.unit.seed == 0)
        raise KeyboardInterrupt

    monkeypatch.setattr(HereEngine, "run", run_until_interrupt)
    result = run("tiny", "--methods", "sum")
    assert result.exit_code == 130
    assert "Units that had ended are kept; run the same command again to go on." in result.output
    assert finished() == {("left", "sum", 0), ("right", "sum", 0)}


def test_trials_and_seed_choose_the_seeds(run):
    assert run("tiny_figure", "--methods", "sum", "--trials", "2", "--seed", "5").exit_code == 0
    assert finished() == {("left", "sum", 5), ("left", "sum", 6)}


def test_a_dry_run_writes_nothing(run):
    result = run("tiny", "--dry-run", "--jobs", "1")
    assert result.exit_code == 0
    assert "Forecast: 30 min with 1 at a time." in result.output
    assert not Path("paper/results").exists()


def test_damaged_results_are_named_before_the_run(run):
    run("tiny", "--methods", "sum", "--problems", "left")
    with Path("paper/results/mine/tiny.jsonl").open("a") as file:
        file.write("{}\n" * 12)
    result = run("tiny", "--methods", "sum")
    assert result.exit_code == 0
    assert (
        "paper/results/mine/tiny.jsonl, line 3: The line was left out: its version must be 1, but is None"
        in result.output
    )
    assert "And 2 more lines that were left out." in result.output
    assert "tiny (mine): 2 of 4 units to run" in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "Name figures or studies, or all. --list shows them."),
        (("tiny", "--full"), 2, "Choose one of --quick, --full and --config."),
        (("tinny",), 1, "Error: There is no figure or study 'tinny'. Did you mean 'tiny'?"),
        (("tiny", "--trials", "0"), 2, "Invalid value for '--trials'"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_sentence(run, arguments, code, sentence):
    result = run(*arguments)
    assert result.exit_code == code
    assert sentence in result.output


def test_dask_is_asked_for_by_its_address(run, monkeypatch):
    addresses = []

    def connect(address: str) -> HereEngine:
        addresses.append(address)
        return HereEngine(3)

    monkeypatch.setattr("paper.commands.run.running.DaskEngine", connect)
    result = run("tiny_figure", "--dask", "tcp://somewhere:8786")
    assert "with 3 at a time" in result.output
    assert addresses == ["tcp://somewhere:8786"]
    assert len(finished()) == 2


def test_the_list_shows_what_has_run(run):
    run("tiny_figure", "--methods", "sum")
    result = run("--list", "--jobs", "1")
    assert result.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.output.splitlines() if "│" in line]
    assert rows == [
        ["tiny_figure", "A figure of the tiny study", "tiny", "1 of 2", "90 s"],
        ["tiny", "left, right", "sum, process, raises, dies, nan", "1 of 20", "24 min"],
    ]
    assert "Figures" not in run("tiny", "--list").output


@pytest.mark.slow
def test_trials_are_added_until_claims_are_decided(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paper.commands.run.running.JoblibEngine", HereEngine)
    settings = TinySettings(pause=0.0, sizes=(1, 2), label="x")

    def configuration(study, scale):
        return Configuration(scale, 2, 1.0, settings)

    open_until = []
    for module in ("commands.run.running", "engine.plan"):
        monkeypatch.setattr(f"paper.{module}.read_configuration", configuration)

    def undecided(names, scale, directory):
        records, _ = load_records("tiny", scale, directory)
        open_until.append(len({record.seed for record in records.all}))
        return list(names) if open_until[-1] < 12 else []

    monkeypatch.setattr("paper.commands.run.running.undecided_figures", undecided)
    with tiny_registry():
        monkeypatch.setattr("paper.commands.run.running.FIGURES", registry.FIGURES)
        result = CliRunner().invoke(app, ["run", "tiny_figure", "--trials", "2", "--until-decided", "30"])
        assert result.exit_code == 0, result.output
        assert open_until == [2, 7, 12]
        assert "All claims are decided." in result.output
        few = CliRunner().invoke(
            app, ["run", "tiny_figure", "--results", "few", "--trials", "2", "--until-decided", "8"]
        )
        assert "Not decided with at most 8 trials: tiny_figure." in few.output
        study = CliRunner().invoke(app, ["run", "tiny", "--until-decided", "8"])
        assert "--until-decided needs figures with claims" in study.output
