"""A study from the first question to the picture, on the command line alone."""

import csv
import json

import pytest
from typer.testing import CliRunner

from streamgp.cli.app import app
from streamgp.testing.tolerances import approximation, within


@pytest.fixture
def call():
    def invoke(*words, code=0):
        result = CliRunner().invoke(app, ["optimize", *map(str, words)])
        assert result.exit_code == code, result.output
        return result.output

    return invoke


def fill(path, outcome):
    with path.open() as file:
        table = csv.DictReader(file)
        rows = [row | outcome(row) for row in table]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def yield_of(row):
    return {"yield": f"{80 - 0.01 * (float(row['temperature']) - 130) ** 2:.3f}"}


@pytest.mark.slow
def test_a_study_from_ask_to_best(study, call, tmp_path):
    printed = call("ask", study, "--number", 5)
    assert "What to try next" in printed
    assert "Fill in the outcome, yield" in printed
    table = tmp_path / "reaction.ask1.csv"
    rows = fill(table, yield_of)
    assert len(rows) == 5
    assert all(len(row["temperature"]) <= 7 for row in rows)
    assert "5 experiments learned, of which 0 failed" in call("tell", study, table)
    again = call("tell", study, table)
    assert "0 experiments learned" in again
    assert "5 rows had been told before" in again
    assert json.loads(call("tell", study, table, "--again", "--json"))["known"] == 10
    asked = json.loads(call("ask", study, "--fix", "solvent=-OH", "--json"))
    assert asked["points"][0]["solvent"] == "-OH"
    shown = json.loads(call("show", study, "--json"))
    assert len(shown["experiments"]) == 10
    assert shown["pending"] == asked["points"]
    assert "1 pending experiment will not" in call("cancel", study)
    best = json.loads(call("best", study, "--json"))
    assert best["best"]["observed"] == pytest.approx(max(float(row["yield"]) for row in rows))
    assert best["best"]["mean"].keys() == {"yield"}
    assert "What the model recommends" in call("best", study)
    assert "Written" in call("plot", study, "--output", tmp_path / "study.png")
    assert (tmp_path / "study.png").stat().st_size > 1000
    assert "10 experiments known, 0 pending" in call("show", study)


@pytest.mark.slow
def test_a_mixture_with_two_objectives_and_a_limit(call, tmp_path):
    study = tmp_path / "mix.toml"
    study.write_text(
        """
        parameters.a = {type = "real", low = 0, high = 1}
        parameters.b = {type = "real", low = 0, high = 1}
        linear_constraints = [{weights = {a = 1, b = 1}, lower = 1, upper = 1}]
        objectives.strength = {}
        objectives.cost = {maximize = false}
        constraints.crack = {upper = 1}
        settings = {num_initial = 4}
        """
    )
    call("ask", study, "--number", 4, "--output", tmp_path / "next.csv")

    def outcome(row):
        a = float(row["a"])
        return {"strength": a, "cost": a**2, "crack": 0.5 * a}

    rows = fill(tmp_path / "next.csv", outcome)
    assert all(
        float(row["a"]) + float(row["b"]) == pytest.approx(1.0, **within(approximation(1e-8, "printed")))
        for row in rows
    )
    call("tell", study, tmp_path / "next.csv")
    pareto = json.loads(call("best", study, "--json"))["pareto"]
    assert len(pareto) == 4  # more strength costs more
    assert "crack (at most 1)" in call("show", study)
    call("plot", study, "--output", tmp_path / "mix.svg")


def test_what_cannot_be_done_is_said(study, call, tmp_path):
    assert "Nothing is known yet" in call("best", study, code=1)
    assert "no results yet" in call("plot", study, code=1)
    assert "--output" in call("plot", study, "--output", tmp_path / "study.abc", code=1)
    assert "such as solvent=water" in call("ask", study, "--fix", "water", code=1)
    assert "fixed names 'solvnt'" in call("ask", study, "--fix", "solvnt=water", code=1)
    assert not study.with_suffix(".streamgp").exists()
    assert "cannot be read" in call("tell", study, tmp_path / "none.csv", code=1)
    (tmp_path / "mine.csv").write_text("my results")
    assert "may hold results" in call("ask", study, "--output", tmp_path / "mine.csv", code=1)
    assert (tmp_path / "mine.csv").read_text() == "my results"
    assert "Error: " in call("show", tmp_path / "none.toml", code=1)


def test_an_example_to_begin_with(call, tmp_path):
    study = tmp_path / "new.toml"
    assert "begin with `streamgp optimize ask" in call("init", study)
    shown = call("show", study)
    for text in (
        "100 to 180, in steps of 5",
        "0.0001 to 1, logarithmic",
        "whole numbers from 1 to 4",
        "50 < 100 < 250",
    ):
        assert text in shown
    assert "exists" in call("init", study, code=1)


FORMULAS = """\
[parameters."=heat"]
type = "real"
low = 0
high = 1

[parameters."-kind"]
type = "categorical"
values = ["+a", "@b"]

[objectives."+yield"]
"""


def test_names_that_look_like_formulas_are_told_as_they_were_asked(call, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text(FORMULAS)
    call("ask", study, "--number", 2)
    table = tmp_path / "study.ask1.csv"
    assert table.read_text().startswith("'=heat,'-kind,'+yield")
    fill(table, lambda row: {"'+yield": "3.5"})
    assert "2 experiments learned" in call("tell", study, table)
    assert {one["-kind"] for one in json.loads(call("show", study, "--json"))["experiments"]} <= {"+a", "@b"}


def test_what_a_killed_command_left_is_removed_by_the_next(study, call, tmp_path):
    for name in ("reaction.streamgp", "reaction.ask1.csv"):
        left = tmp_path / f".{name}-abcd.part"
        left.mkdir()
        (left / name).write_text("half of it")
    other = tmp_path / ".reaction-backup"
    other.mkdir()
    call("ask", study)
    assert not list(tmp_path.glob("*.part"))
    assert other.is_dir()
