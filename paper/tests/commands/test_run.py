from contextlib import nullcontext
from pathlib import Path

import pytest
from distributed import Client
from typer.testing import CliRunner

from paper.commands.app import app
from paper.engine.running import only_run, run_units
from paper.schema.results import load_records
from paper.tests.tiny_figure import tiny_registry

TEXT = """
[mine]
num_trials = 2
seconds_per_unit = 90
[mine.settings]
pause = 0
sizes = [1, 2]
label = "x"
"""


@pytest.fixture(scope="module")
def cluster():
    """A cluster of threads in this process, for all runs."""
    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as client:
        yield client


@pytest.fixture
def run(tmp_path: Path, monkeypatch, cluster):
    """Runs `python -m paper run` with the tiny study, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paper.commands.run.connect", lambda address, num_jobs: nullcontext(cluster))
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
    assert "tiny (mine): 8 of 8 units to run, 6 min with 2 at a time; times of 8 are guessed" in result.output
    assert "8 of 8: tiny: " in result.output
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
    assert (
        "tiny (mine): 0 of 4 units to run. To run them anew beside those recorded, name a directory: --results mine"
        in result.output
    )
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
    def run_until_interrupt(tasks, client, directory, *, tell):
        run_units([task for task in tasks if task.unit.seed == 0], client, directory, tell=tell)
        raise KeyboardInterrupt

    monkeypatch.setattr("paper.commands.run.run_units", run_until_interrupt)
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
    assert "tiny (mine): 20 of 20 units to run, 30 min with 1 at a time" in result.output
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


def test_dask_is_asked_for_by_its_address(run, monkeypatch, cluster):
    addresses = []

    def connect(address, num_jobs):
        addresses.append(address)
        return nullcontext(cluster)

    monkeypatch.setattr("paper.commands.run.connect", connect)
    assert run("tiny_figure", "--dask", "tcp://somewhere:8786").exit_code == 0
    assert addresses == ["tcp://somewhere:8786"]
    assert len(finished()) == 2


def test_a_directory_that_another_run_has_is_refused(run):
    with only_run(Path("paper/results")):
        result = run("tiny_figure")
    assert result.exit_code == 1
    assert "Error: Another run writes to paper/results." in result.output


def rows(output):
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in output.splitlines() if "│" in line]


def test_the_list_shows_what_has_run(run):
    run("tiny_figure", "--methods", "sum")
    assert rows(run("--list").output) == [["tiny_figure", "A figure of the tiny study", "tiny", "1 of 2", "90 s"]]
    assert rows(run("tiny_figure", "--list").output) == [
        ["tiny", "left", "sum", "Sums", "1", "under 1 s"],
        ["tiny", "left", "process", "Sums, and where they were made", "0", "–"],
    ]
