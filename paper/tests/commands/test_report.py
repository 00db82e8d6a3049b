"""`python -m paper report` on a study that takes no time to run."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure as Picture
from typer.testing import CliRunner

from paper import registry
from paper.commands import verdicts
from paper.commands.app import app
from paper.schema.configuration import Configuration
from paper.schema.figure import Figure, Judgement
from paper.schema.record import Records, UnitRecord
from paper.schema.results import append_record
from paper.tests.tiny_study import STUDY, TinySettings

SETTINGS = {"pause": 0.0, "sizes": [2, 3], "label": "a"}


def judge(records: Records) -> Judgement:
    return Judgement("partly", f"The first sum is {records.outcome('left', 'sum')['draws'][0]}.")


FIGURE = Figure(
    name="fig8",
    title="Fig. 8 [red]: sums",
    study="tiny",
    problems=("left",),
    methods=("sum",),
    claim="Sums are sums.",
    notes=(),
    draw=lambda records: Picture(figsize=(2, 1)),
    describe=lambda records: "Nothing at all.",
    judge=judge,
    tables=lambda records: (),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch, tmp_path):
    """The figure is the only one there is, and the current directory is a new one."""
    settings = TinySettings(pause=0.0, sizes=(2, 3), label="a")
    monkeypatch.setattr(verdicts, "FIGURES", ("fig8",))
    monkeypatch.setattr(verdicts, "find_figure", lambda name: FIGURE)
    monkeypatch.setattr(verdicts, "find_study", lambda name: STUDY)
    monkeypatch.setattr(verdicts, "read_configuration", lambda study, scale: Configuration(scale, 2, 1.0, settings))
    monkeypatch.chdir(tmp_path)


def write_results(directory: str, *, scale: str = "quick", outcome: dict[str, object]) -> Path:
    for seed in range(3):
        append_record(
            UnitRecord(
                study="tiny",
                problem="left",
                method="sum",
                seed=seed,
                scale=scale,
                settings=SETTINGS,
                outcome=outcome,
                seconds=60.0,
                machine="A processor, 2 cores",
                software={"python": "3.12"},
                finished="2025-06-01T12:00:00+00:00",
            ),
            Path(directory),
        )
    return Path(directory) / scale / "tiny.jsonl"


def run(*arguments: str):
    return CliRunner().invoke(app, ["report", *arguments], env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})


def test_the_page_is_written_and_summed_up():
    write_results("paper/results", outcome={"draws": [0.25]})
    result = run()
    assert result.exit_code == 0, result.output
    assert "Fig. 8 [red]: sums" in result.output
    assert "Partly reproduced" in result.output
    assert "Figures: 1 partly reproduced." in result.output
    assert "The page is paper-report.html (0.0 MB)." in result.output
    page = Path("paper-report.html").read_text(encoding="utf-8")
    assert "The first sum is 0.25." in page
    assert 'href="paper/results/quick/tiny.jsonl"' in page


def test_damaged_lines_are_printed_with_file_and_number():
    file = write_results("paper/results", outcome={"draws": [0.25]})
    with file.open("a") as lines:
        lines.write('{"version": 1, "stu')
    result = run()
    assert result.exit_code == 0
    assert f"Left out: {file}, line 4: " in result.output


def test_an_error_in_a_figure_is_printed_and_the_page_is_still_written():
    write_results("paper/results", outcome={"other": 1})
    result = run()
    assert result.exit_code == 1
    assert "Error in fig8: Judging failed with KeyError: 'draws'" in result.output
    assert "Judging failed with KeyError" in Path("paper-report.html").read_text(encoding="utf-8")


def test_own_settings_are_shown_by_their_name():
    write_results("mine", scale="short", outcome={"draws": [0.25]})
    result = run("--results", "mine", "--scale", "short", "--output", "page.html", "--figures", "fig8")
    assert result.exit_code == 0
    assert "3 trials of a line, short settings" in Path("page.html").read_text(encoding="utf-8")


def test_full_results_are_shown_where_there_are_any_and_quick_ones_elsewhere():
    write_results("paper/results", outcome={"draws": [0.25]})
    assert "1 of 1 claims were judged: 1 at quick settings." in run().output
    write_results("paper/results", scale="full", outcome={"draws": [0.75]})
    result = run()
    assert "1 of 1 claims were judged: 1 at full settings." in result.output
    page = Path("paper-report.html").read_text(encoding="utf-8")
    assert "The first sum is 0.75." in page
    assert "3 trials of a line, full settings" in page
    assert 'href="paper/results/full/tiny.jsonl"' in page
    assert "1 at quick settings" in run("--scale", "quick").output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--results", "absent"], "There is no directory absent/quick. There are no results at all."),
        (["--scale", "full"], "There is no directory paper/results/full. There are results of: quick."),
        (["--output", "absent/page.html"], "absent/page.html: the directory does not exist or cannot be written."),
        (["--output", "paper/results"], "paper/results is a directory. Add a file name"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(arguments, sentence):
    write_results("paper/results", outcome={"draws": [0.25]})
    result = run(*arguments)
    assert result.exit_code == 1
    assert sentence in result.output
    assert [path.name for path in Path().iterdir()] == ["paper"]


def test_an_unknown_figure_is_refused(monkeypatch):
    write_results("paper/results", outcome={"draws": [0.25]})
    monkeypatch.setattr(verdicts, "find_figure", registry.find_figure)
    result = run("--figures", "fig99")
    assert result.exit_code == 1
    assert "but is 'fig99'" in result.output
