import csv
import math
import random
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import streamgp as sg
from streamgp.cli.app import app

NUM_PLACES, NUM_SURVEYED, TOTAL = 20, 8, 20
COLUMNS = ("village", "lng", "lat", "rain", "positives", "tested", "level", "sd", "cases")
PLACES = ("--coordinates", "lng,lat", "--covariates", "rain")
TESTS = (*PLACES, "--positives", "positives", "--tested", "tested")


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["survey", *map(str, arguments)], input=stdin, env={"COLUMNS": "400"})


def make_villages(num_surveyed=NUM_SURVEYED):
    draw = random.Random(0)
    for i in range(NUM_PLACES):
        lng, lat = round(draw.uniform(0, 3), 3), round(draw.uniform(0, 2), 3)
        f = math.sin(2 * lng) + 0.5 * lat - 1.5
        positives = sum(draw.random() < 1 / (1 + math.exp(-f)) for _ in range(TOTAL))
        outcomes = (positives, TOTAL, round(f, 3), 0.2, positives)
        known = outcomes if i < num_surveyed else ("",) * len(outcomes)
        yield dict(zip(COLUMNS, (f"V{i}", lng, lat, round(lng * lat, 3), *known), strict=True))


def write(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
    return path


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory):
    """A survey with all of its files."""
    directory = tmp_path_factory.mktemp("survey")
    source = write(directory / "villages.csv", make_villages())
    files = {"map": "map.png", "predictions": "all.csv", "save": "learner.streamgp"}
    options = [part for name, file in files.items() for part in (f"--{name}", directory / file)]
    result = run(source, *TESTS, "--id", "village", "--threshold", 0.3, "--number", 3, *options)
    assert result.exit_code == 0, result.output
    return directory, result


@pytest.mark.slow
def test_the_chosen_places_are_those_of_a_pool_learner(surveyed):
    directory, result = surveyed
    rows = list(make_villages())
    X = torch.tensor([[row["lng"], row["lat"], row["rain"]] for row in rows], dtype=torch.float64)
    learner = sg.PoolLearner(
        X, likelihood=sg.likelihoods.Binomial(TOTAL), acquisition="hotspot_entropy", threshold=0.3, num_initial=1
    )
    learner.tell(list(range(NUM_SURVEYED)), [row["positives"] for row in rows[:NUM_SURVEYED]])
    chosen, prediction = learner.ask(3).tolist(), learner.predict()
    table = read(directory / "villages.next.csv")
    assert [(row["rank"], row["village"]) for row in table] == [(str(i + 1), f"V{k}") for i, k in enumerate(chosen)]
    for row, member in zip(table, chosen, strict=True):
        assert (float(row["lng"]), float(row["lat"])) == tuple(X[member, :2].tolist())
        assert row["predicted"] == f"{float(prediction.mean[member]):.4g}"
        assert row["lower"] == f"{float(prediction.lower[member]):.4g}"
        assert row["upper"] == f"{float(prediction.upper[member]):.4g}"
        assert row["probability_above"] == f"{float(prediction.exceedance[member]):.4g}"
    assert "20 places, 8 of them surveyed, described by lng, lat, rain." in result.output
    assert "The next places are chosen by hotspot_entropy." in result.output
    assert "Of each, 20 tests are expected" in result.output


@pytest.mark.slow
def test_all_places_are_predicted_and_a_map_is_drawn(surveyed):
    directory, _ = surveyed
    table = read(directory / "all.csv")
    assert [row["village"] for row in table] == [f"V{i}" for i in range(NUM_PLACES)]
    assert [row["surveyed"] for row in table] == ["yes"] * NUM_SURVEYED + ["no"] * (NUM_PLACES - NUM_SURVEYED)
    assert all(float(row["lower"]) < float(row["predicted"]) < float(row["upper"]) for row in table)
    assert (directory / "map.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in directory.iterdir() if path.name.startswith(".")) == []


@pytest.mark.slow
def test_the_saved_learner_waits_for_the_chosen_places(surveyed):
    directory, _ = surveyed
    learner = sg.PoolLearner.load(directory / "learner.streamgp")
    chosen = learner.pending  # by their names
    assert chosen == [row["village"] for row in read(directory / "villages.next.csv")]
    learner.tell(learner.pending, [0, 1, 2], total_count=10)
    assert len(learner.X) == NUM_SURVEYED + 3


@pytest.mark.slow
def test_the_same_seed_gives_the_same_files(surveyed, tmp_path):
    directory, _ = surveyed
    output = tmp_path / "again.csv"
    common = ("--id", "village", "--threshold", 0.3, "--number", 3, "--output", output, "--quiet")
    result = run("-", *TESTS, *common, stdin=(directory / "villages.csv").read_bytes())
    assert (result.exit_code, result.output) == (0, "")
    assert output.read_bytes() == (directory / "villages.next.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "acquisition"),
    [(("--target", "level", "--noise", "sd"), "uncertainty_reduction"), (("--count", "cases"), "response_variance")],
    ids=["values", "counts"],
)
def test_outcomes_of_other_kinds_are_learned(tmp_path, columns, acquisition):
    source = write(tmp_path / "v.csv", make_villages())
    files = ("--map", tmp_path / "m.svg", "--save", tmp_path / "s")
    result = run(source, *PLACES, *columns, "--threshold", 0.5, "--number", 2, *files)
    assert result.exit_code == 0, result.output
    assert f"chosen by {acquisition}" in result.output
    rows = read(tmp_path / "v.next.csv")
    assert len({row["row"] for row in rows}) == 2
    assert all(int(row["row"]) > NUM_SURVEYED for row in rows)
    assert all(float(row["lower"]) <= float(row["predicted"]) <= float(row["upper"]) for row in rows)


def test_the_first_places_are_proposed_without_predictions(tmp_path):
    source = write(tmp_path / "v.csv", make_villages(0))
    files = ("--map", tmp_path / "m.svg", "--predictions", tmp_path / "all.csv", "--save", tmp_path / "s")
    result = run(source, *TESTS, "--threshold", 0.3, "--number", 4, *files)
    assert result.exit_code == 0, result.output
    assert "Nothing has been surveyed yet: the next places are spread over the map and the covariates" in result.output
    assert "all.csv is not written." in result.output
    assert {(row["predicted"], row["probability_above"]) for row in read(tmp_path / "v.next.csv")} == {("", "")}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.svg", "s", "v.csv", "v.next.csv"]


def test_surveys_that_found_nothing_are_followed_by_places_that_are_spread(tmp_path):
    rows = [{**row, "positives": 0} if row["tested"] else row for row in make_villages()]
    result = run(write(tmp_path / "v.csv", rows), *TESTS, "--threshold", 0.3, "--number", 4, "--save", tmp_path / "s")
    assert result.exit_code == 0, result.output
    assert "Nothing was found at any place: the next places are spread over the map" in result.output
    chosen = read(tmp_path / "v.next.csv")
    assert {row["predicted"] for row in chosen} == {""}
    assert all(int(row["row"]) > NUM_SURVEYED for row in chosen)
    assert sg.PoolLearner.load(tmp_path / "s").y.flatten().tolist() == [0.0] * NUM_SURVEYED


def test_nothing_is_written_if_a_file_cannot_be(tmp_path, monkeypatch):
    def fail(figure, path):
        raise OSError("no space is left")

    monkeypatch.setattr("streamgp.cli.survey.surveying.save_figure", fail)
    source = write(tmp_path / "v.csv", make_villages(0))
    result = run(source, *TESTS, "--number", 4, "--map", tmp_path / "m.png")
    assert result.exit_code == 1
    assert "Error: no space is left" in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("", (), "has no rows. Pass CSV with a header"),
        ("lng,lat,n\n", (), "There are no places that could be used, and 0 bad rows"),
        ("lng,lat,n" + "x" * 140_000, (), "cannot be read as CSV (field larger than field limit"),
        ("lng,lat,m\r1,2,3\r", (), "There is no column 'n' for --count."),
        ("lng,lat,n\n1,2,3\n1,x,\n", (), "row 2 (line 3): the coordinate 'lat' is 'x' and not a number"),
        ("lng,lat,a,n\n1,2,3,\n1,2,,\n4,5,6,\n", (), "fill missing covariates with --impute median"),
        ("lng,lat,n\n1,2,3\n4,5,\n", (), "10 places were asked for, but 1 of 2 are left"),
        ("lng,lat,n\n1,2,3\n4,5,\n", ("--threshold", "-1"), "must be a positive, finite rate"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(tmp_path, monkeypatch, content, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    Path("v.csv").write_text(content, encoding="utf-8")
    if arguments:
        arguments = (*arguments, "--number", "1")
    result = run("v.csv", "--coordinates", "lng,lat", "--count", "n", *arguments)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert sentence in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["v.csv"]


def test_a_missing_source_is_named(tmp_path):
    result = run(tmp_path / "nothing.csv", "--coordinates", "lng,lat", "--count", "n")
    assert result.exit_code == 1
    assert "nothing.csv cannot be read" in result.output
