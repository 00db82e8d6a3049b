import gzip
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import streamgp as sg
from streamgp.cli.app import app
from streamgp.cli.stream.checkpoints import Checkpoint
from streamgp.errors import ArgumentTypeError, OptionError, StreamGPWarning, ValueRangeError
from streamgp.storage import load

# Small models, so that most of the time is not theirs.
SMALL = ("--num-inducing", "4", "--warmup", "4", "--refit", "never")


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["stream", *map(str, arguments)], input=stdin, env={"COLUMNS": "400"})


def make_rows(num_rows, seed=0):
    draw = random.Random(seed)
    for _ in range(num_rows):
        x, z = draw.uniform(-2, 2), draw.uniform(-2, 2)
        f = math.sin(2 * x) + 0.3 * z
        yield {
            "x": x,
            "z": z,
            "y": f + draw.gauss(0, 0.1),
            "count": math.floor(3 * draw.random() * math.exp(f)),
            "kind": "low" if f < -0.4 else "high" if f > 0.4 else "middle",
            "trials": 6,
            "successes": sum(draw.random() < 1 / (1 + math.exp(-f)) for _ in range(6)),
        }


def write_csv(path, rows, columns=("x", "z", "y")):
    lines = [",".join(columns), *(",".join(str(row[name]) for name in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def predictions(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_each_row_is_predicted_before_it_is_learned(tmp_path):
    rows = list(make_rows(12))
    source = write_csv(tmp_path / "data.csv", rows)
    result = run(source, "--target", "y", "--likelihood", "gaussian", *SMALL)
    assert result.exit_code == 0, result.output
    written = predictions(tmp_path / "data.predictions.jsonl")
    assert [(each["row"], each["line"]) for each in written] == [(i, i + 1) for i in range(1, 13)]
    assert written[0]["prediction"] is None
    stream = sg.Stream("y", likelihood="gaussian", num_inducing=4, warmup=4, refit="never")
    for entry, row in zip(written, rows, strict=True):
        fields = {name: row[name] for name in ("x", "z", "y")}
        if entry["row"] > 1:
            ticket = stream.expect(fields)
            said = ticket.prediction
            assert {name: entry[name] for name in ("prediction", "std", "quantiles")} == {
                "prediction": said.mean[0],
                "std": said.deviation[0],
                "quantiles": dict(zip(["0.05", "0.95"], said.quantiles([0.05, 0.95])[0], strict=True)),
            }
            assert entry["nlpd"] == -said.log_density([row["y"]])[0]
            stream.learn(ticket, row["y"])
        else:
            stream.learn(fields)
        assert entry["target"] == row["y"]
    errors = [each["prediction"] - each["target"] for each in written[1:]]
    rmse = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert "│ RMSE" in result.output
    assert f"{rmse:.5g}" in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "fields"),
    [
        (("--target", "count", "--likelihood", "poisson"), {"prediction", "std", "quantiles"}),
        (("--target", "successes", "--total-count", "trials"), {"prediction", "std", "quantiles"}),
        (("--target", "kind"), {"prediction", "probabilities"}),
    ],
    ids=["counts", "successes", "classes"],
)
def test_targets_of_all_kinds_are_learned_from_json_lines(tmp_path, options, fields):
    features = ("--features", "x,z")
    source = tmp_path / "data.jsonl.gz"
    source.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in make_rows(24)).encode()))
    result = run(source, *options, *features, *SMALL, "--block", 8)
    assert result.exit_code == 0, result.output
    written = predictions(tmp_path / "data.predictions.jsonl")
    assert all(each["prediction"] is None for each in written[:8])
    assert all(fields <= each.keys() for each in written[8:])
    assert all(math.isfinite(each["nlpd"]) for each in written[8:])
    if "kind" in options:
        assert "The target 'kind' is taken as a class: --likelihood classes." in result.output
        assert all(sum(each["probabilities"].values()) == pytest.approx(1.0) for each in written[8:])


@pytest.mark.slow
def test_standard_input_goes_to_standard_output(tmp_path, monkeypatch):
    source = write_csv(tmp_path / "data.csv", make_rows(6))
    run(source, "--target", "y", *SMALL, "--block", 3)
    result = run("-", "--target", "y", *SMALL, "--block", 3, "--quiet", stdin=source.read_bytes())
    assert result.stdout_bytes == (tmp_path / "data.predictions.jsonl").read_bytes()


@pytest.mark.slow
def test_the_metrics_are_drawn(tmp_path):
    source = write_csv(tmp_path / "data.csv", make_rows(6))
    result = run(source, "--target", "y", *SMALL, "--block", 3, "--picture", tmp_path / "metrics.svg")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "metrics.svg").read_text(encoding="utf-8").count("<path") > 5


BAD = {
    4: ("1,oops,2", "the feature 'z' is 'oops' and not a number"),
    6: ("1,2", "it has 2 fields, but the header has 3"),
    9: ("inf,1,3", "the feature 'x' is not finite"),
}


def write_with_bad_rows(path):
    lines = write_csv(path, make_rows(10)).read_text(encoding="utf-8").splitlines()
    for line, (content, _) in sorted(BAD.items()):
        lines.insert(line - 1, content)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_bad_rows_are_left_out_and_listed_on_request(tmp_path):
    source = write_with_bad_rows(tmp_path / "bad.csv")
    result = run(source, "--target", "y", *SMALL, "--block", 5, "--skip-bad")
    assert result.exit_code == 0, result.output
    for line, (_, issue) in BAD.items():
        assert f"Line {line} was left out: {issue}." in result.output
    clean = write_csv(tmp_path / "good.csv", make_rows(10))
    run(clean, "--target", "y", *SMALL, "--block", 5)
    ours, theirs = (predictions(tmp_path / f"{name}.predictions.jsonl") for name in ("bad", "good"))
    assert [{**each, "line": 0} for each in ours] == [{**each, "line": 0} for each in theirs]


@pytest.mark.slow
def test_a_bad_row_stops_the_stream_and_the_rest_follows_once_it_may_be_left_out(tmp_path):
    source = write_with_bad_rows(tmp_path / "bad.csv")
    options = (source, "--target", "y", *SMALL, "--checkpoint", tmp_path / "keep")
    result = run(*options)
    assert result.exit_code == 1
    assert "Line 4 of the stream cannot be used: the feature 'z' is 'oops' and not a number." in result.output
    assert "--skip-bad" in result.output
    assert len(predictions(tmp_path / "bad.predictions.jsonl")) == 2
    result = run(*options, "--resume", "--skip-bad")
    assert "Going on after row 2, line 3." in result.output
    parts = (tmp_path / "bad.predictions.jsonl").read_bytes()
    run(source, "--target", "y", *SMALL, "--skip-bad", "--output", tmp_path / "whole")
    assert parts == (tmp_path / "whole").read_bytes()


@pytest.mark.slow
def test_a_damaged_checkpoint_is_refused_and_the_one_before_it_used(tmp_path):
    source = write_csv(tmp_path / "data.csv", make_rows(9))
    options = (source, "--target", "y", *SMALL, "--checkpoint", tmp_path / "keep", "--checkpoint-every", 3)
    assert run(*options, "--limit", 7).exit_code == 0
    last = (tmp_path / "keep").read_bytes()
    (tmp_path / "keep").write_bytes(last[: len(last) // 2])
    result = run(*options, "--resume")
    assert "keep is damaged" in result.output
    assert "Going on after row 6, line 7." in result.output
    run(source, "--target", "y", *SMALL, "--output", tmp_path / "whole")
    assert (tmp_path / "data.predictions.jsonl").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "keep.damaged").exists()
    # Both damaged: nothing is lost without a word.
    for name in ("keep", "keep.previous"):
        (tmp_path / name).write_bytes(b"nothing")
    result = run(*options, "--resume")
    assert result.exit_code == 1
    assert "Start again with --fresh." in result.output
    assert (tmp_path / "data.predictions.jsonl").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.fixture
def kept(tmp_path):
    """A stream with a checkpoint after four of its rows."""
    source = write_csv(tmp_path / "data.csv", make_rows(6))
    options = (source, "--target", "y", *SMALL, "--block", "2", "--checkpoint", tmp_path / "keep")
    assert run(*options, "--limit", 4).exit_code == 0
    return source, options


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("--resume", "--warmup", "5"), "was written with warmup = 4, but now it is 5"),
        (("--resume", "--features", "x"), "was written with features = ['x', 'z'], but now it is ['x']"),
        (("--resume", "--output", "-"), "was written with output = 'a file', but now it is 'standard output'"),
        (("--resume", "--output", "other"), "has 0 bytes, but the checkpoint was written when it had"),
        ((), "There is a checkpoint"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, kept, change, sentence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = run(*kept[1], *change)
    assert result.exit_code == 1
    assert sentence in result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_a_source_that_has_changed_is_refused_and_one_that_has_grown_is_not(tmp_path, kept):
    source, options = kept
    write_csv(source, make_rows(6, seed=1))
    result = run(*options, "--resume")
    assert result.exit_code == 1
    assert "are not the ones that were read then" in result.output
    write_csv(source, make_rows(8))
    assert run(*options, "--resume").exit_code == 0
    assert len(predictions(tmp_path / "data.predictions.jsonl")) == 8
    # Once more: there is nothing left to do, and nothing is done.
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run(*options, "--resume").exit_code == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_a_fresh_run_replaces_the_checkpoint(tmp_path, kept):
    before = load(tmp_path / "keep", kind=Checkpoint)
    assert run(*kept[1], "--fresh", "--features", "q").exit_code == 1
    assert (tmp_path / "keep").exists()
    result = run(*kept[1], "--fresh", "--limit", 2)
    assert result.exit_code == 0
    after = load(tmp_path / "keep", kind=Checkpoint)
    assert (before.num_rows, after.num_rows) == (4, 2)
    assert len(predictions(tmp_path / "data.predictions.jsonl")) == 2


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("x,y\n1,2\n", ("--target", "z"), "There is no column 'z' for the target. The columns are 'x', 'y'."),
        ("x,y\n", ("--target", "y"), "has no rows that could be learned, and 0 bad ones"),
        ("", ("--target", "y"), "has no rows. Pass CSV with a header, or JSON lines."),
        ("x,y\n1,2\n", ("--target", "y", "--likelihood", "cauchy"), "likelihood must be one of 'auto', 'gaussian', "),
        ("x,y\na,2\n", ("--target", "y", "--numbers", "x"), "Line 2 .* the feature 'x' is 'a' and not a number"),
        ("x,y\n1,2\n", ("--target", "y", "--exclude", "x"), "There are no features"),
        ("x,y\n1,2\n", ("--target", "y", "--dates", "q"), "There is no column 'q' for the date"),
        ("x,y\n1,2\n", ("--target", "y", "--numbers", "x", "--dates", "x"), "is said to hold a number and a date"),
        ("x,y\n1,2\n", ("--target", "y", "--dates", "y"), "The column 'y' is said to be a date, but is no feature"),
        ("x,y\n1,2\n", ("--target", "y", "--drift-detector", "ddm"), "looks at labels only"),
        ("x,y\n1,2\n", ("--target", "y", "--drift-detector", "nose"), "drift-detector must be one of 'adwin'"),
        ("x,y\n1\n", ("--target", "y"), "Line 2 of the stream cannot be used: it has 1 fields, but the header has 2"),
        ("x,y\n1,inf\n", ("--target", "y"), "Line 2 of the stream cannot be used: the target 'y' is not finite"),
        ("x,y\n1,-1\n", ("--target", "y", "--likelihood", "poisson"), "Line 2 .* the count 'y' is -1, but must be"),
        ("x,y\n1,2\n", ("--target", "y", "--output", "absent/p"), "--output absent/p: the directory does not exist"),
        ("x,y\n1,2\n", ("--target", "y", "--output", "data.csv"), "--output data.csv is also the source"),
        ("x,y\n1,2\n", ("--target", "y", "--output", "."), "--output . is a directory"),
        ("x,y\n1,2\n", ("--target", "y", "--picture", "a.xyz"), "must end in the name of a picture format"),
        ("x,y\n1,2\n", ("--target", "y", "--resume"), "--resume needs a checkpoint to go on from"),
        ("x,y\n1,2\n", ("--target", "y", "--likelihood", "binomial"), "Name their column with --total-count"),
        (
            "x,y\n1,2\n",
            ("--target", "y", "--likelihood", "poisson", "--totals", "x"),
            "--total-count names numbers of trials",
        ),
        ("x,y\n1,2\n", ("--target", "y", "--num-inducing", "many"), "num_inducing must be a whole number or 'auto'"),
        (
            "x,y\n1,2\n",
            ("--target", "y", "--refit", "often"),
            "refit must be 'auto'",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(tmp_path, monkeypatch, content, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(content, encoding="utf-8")
    result = run("data.csv", *arguments)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert all(part in result.output for part in sentence.split(" .* "))
    assert Path("data.csv").read_text(encoding="utf-8") == content


def test_a_missing_source_is_named(tmp_path):
    result = run(tmp_path / "nothing.csv", "--target", "y")
    assert result.exit_code == 1
    assert "nothing.csv cannot be read" in result.output


def test_an_unbalanced_quote_stops_the_stream_or_costs_one_row(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(path, make_rows(12))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[6] = '"' + lines[6]
    path.write_text("".join(lines), encoding="utf-8")
    result = run(str(path), "--target", "y", *SMALL)
    assert result.exit_code == 1
    assert "Line 7 of the stream cannot be used: a quote is opened in it and not closed" in result.stderr
    result = run(str(path), "--target", "y", *SMALL, "--skip-bad")
    assert result.exit_code == 0
    assert len(predictions(tmp_path / "rows.predictions.jsonl")) == 11


def test_the_unfinished_last_line_of_a_growing_file_is_left_for_a_later_run(tmp_path):
    path, checkpoint = tmp_path / "rows.csv", tmp_path / "c"
    write_csv(path, make_rows(9))
    whole = path.read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    path.write_text("".join(lines[:7]) + lines[7][:-4], encoding="utf-8")
    common = (str(path), "--target", "y", *SMALL, "--likelihood", "gaussian")
    assert run(*common, "--checkpoint", str(checkpoint)).exit_code == 0
    assert len(predictions(tmp_path / "rows.predictions.jsonl")) == 6
    path.write_text(whole, encoding="utf-8")
    assert run(*common, "--checkpoint", str(checkpoint), "--resume").exit_code == 0
    assert [each["row"] for each in predictions(tmp_path / "rows.predictions.jsonl")] == list(range(1, 10))


@pytest.mark.slow
def test_numbers_that_are_too_large_are_bad_rows(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(path, [*make_rows(8), {"x": 1e308, "z": 1, "y": -1e308}, *make_rows(2, seed=1)])
    common = (str(path), "--target", "y", *SMALL)
    result = run(*common)
    assert result.exit_code == 1
    assert "Line 10 of the stream cannot be used: the feature 'x' is 1e+308, and numbers beyond" in result.stderr
    assert run(*common, "--skip-bad").exit_code == 0
    assert len(predictions(tmp_path / "rows.predictions.jsonl")) == 10


def test_half_of_a_pair_of_surrogates_is_a_label_as_others(tmp_path):
    path = tmp_path / "rows.jsonl"
    labels = ["a", "\ud800"]
    path.write_text("".join(json.dumps({"x": i % 7, "y": labels[i % 2]}) + "\n" for i in range(12)), encoding="utf-8")
    result = run(str(path), "--target", "y", *SMALL, "--block", 4)
    assert result.exit_code == 0, result.output
    assert {each["target"] for each in predictions(tmp_path / "rows.predictions.jsonl")} == set(labels)


def write_table(path, num_rows=24):
    """A table as they are: an identifier, dates, texts, missing features, and a target that is missing at the end."""
    lines = ["id,when,city,load,y"]
    for i in range(num_rows):
        load = "" if i % 7 == 3 else str(i % 5)
        y = "" if i % 9 == 8 else str((i % 5) + 3.0 * (i % 2))
        lines.append(
            f"machine {i},2024-03-{1 + i // 4:02d} {6 * (i % 4):02d}:00,{('Oslo', 'Bergen')[i % 2]},{load},{y}"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_an_ordinary_table_is_learned_and_its_checkpoint_predicts_in_python(tmp_path):
    source = write_table(tmp_path / "data.csv")
    options = (source, "--target", "y", *SMALL, "--block", 6, "--checkpoint", tmp_path / "keep", "--drift-detector")
    result = run(*options, "adwin")
    assert result.exit_code == 0, result.output
    assert "Columns are taken as dates: when; categories: city." in result.output
    assert "Not used, as most of their texts are different: id." in result.output
    for name in ("MAE of the last value", "MAE of the running mean", "rows without a target"):
        assert f"│ {name}" in result.output
    written = predictions(tmp_path / "data.predictions.jsonl")
    assert [each["row"] for each in written if each["target"] is None] == [9, 18]
    assert all(math.isfinite(each["prediction"]) for each in written[6:])
    checkpoint = sg.load(tmp_path / "keep")
    assert checkpoint.stream.num_seen_ == 22
    report = checkpoint.score_report()
    assert sum(report.score.calibration.counts) == report.num_rows == 24 - 1 - 2
    rows = [{"when": "2024-03-07 00:00", "city": city, "load": "2"} for city in ("Oslo", "Bergen", "Paris")]
    mean = checkpoint.predict(rows).mean
    assert mean.shape == (3,)
    assert np.isfinite(mean).all()
    checkpoint.stream.learn({**rows[0], "y": 1.0})  # learns on
    assert checkpoint.stream.num_seen_ == 23


@pytest.mark.slow
def test_the_preprocessing_and_the_drift_detector_go_on_from_a_checkpoint(tmp_path):
    source = write_table(tmp_path / "data.csv")
    options = (source, "--target", "y", *SMALL, "--block", 4, "--drift-detector", "page_hinkley", "--exclude", "id")
    assert run(*options, "--output", tmp_path / "whole", "--checkpoint", tmp_path / "one").exit_code == 0
    parts = (*options, "--output", tmp_path / "parts", "--checkpoint", tmp_path / "two")
    assert run(*parts, "--limit", 12).exit_code == 0
    result = run(*parts, "--resume")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
    one, two = (sg.load(tmp_path / name) for name in ("one", "two"))
    assert one.score_report() == two.score_report()
    row = {"when": "2024-03-07 00:00", "city": "Oslo"}
    assert one.predict(row).mean == two.predict(row).mean


def test_columns_that_hold_only_names_are_no_features(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,y\n" + "".join(f"n{i},{i}\n" for i in range(25)), encoding="utf-8")
    result = run(path, "--target", "y")
    assert result.exit_code == 1
    assert "on the command line --categories name." in result.output


@pytest.mark.slow
def test_a_typo_among_numeric_targets_is_named_and_its_row_not_learned(tmp_path):
    rows = list(make_rows(16))
    clean = write_csv(tmp_path / "clean.csv", [{**row, "y": ""} if i == 4 else row for i, row in enumerate(rows)])
    typo = write_csv(tmp_path / "typo.csv", [{**row, "y": "12.3x"} if i == 4 else row for i, row in enumerate(rows)])
    assert run(clean, "--target", "y", *SMALL, "--block", 4).exit_code == 0
    result = run(typo, "--target", "y", *SMALL, "--block", 4)
    assert result.exit_code == 0, result.output
    assert "The target 'y' is taken as a real number: --likelihood gaussian." in result.output
    assert "If they are labels, pass --likelihood classes." in result.output
    warning = "Warning: line 6 is predicted and not learned: the target 'y' is '12.3x' and not a number."
    assert result.output.count(warning) == 1
    assert "of these, targets that are not numbers" in result.output
    assert predictions(tmp_path / "typo.predictions.jsonl") == predictions(tmp_path / "clean.predictions.jsonl")


@pytest.mark.slow
def test_labels_that_are_found_are_shown_with_their_numbers(tmp_path):
    source = write_csv(tmp_path / "data.csv", [{"x": i, "y": i % 2 if i else "oops"} for i in range(12)], ("x", "y"))
    result = run(source, "--target", "y", *SMALL, "--block", 4)
    assert "Labels of the first rows: '1' (6), '0' (5), 'oops' (1)." in result.output


@pytest.mark.slow
def test_many_targets_that_are_not_numbers_are_counted_and_not_all_told(tmp_path):
    rows = [{**row, "y": "off"} if i >= 4 else row for i, row in enumerate(make_rows(30))]
    source = write_csv(tmp_path / "data.csv", rows)
    result = run(source, "--target", "y", *SMALL, "--block", 5, "--likelihood", "gaussian")
    assert result.exit_code == 0, result.output
    assert result.output.count("is predicted and not learned") == 20
    assert "Further ones are only counted." in result.output
    assert re.search(r"of these, targets that are not numbers +│ +26 │", result.output)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [(), ("--fresh",), ("--checkpoint", "other"), ("--output", "data.predictions.jsonl")]
)
def test_the_predictions_of_another_checkpoint_are_not_replaced(tmp_path, kept, change, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = run(kept[0], "--target", "y", *SMALL, "--block", 2, *change)
    assert result.exit_code == 1
    assert "data.predictions.jsonl holds the predictions of the run whose checkpoint is" in result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    # What the sentence says works: another file, and then the first run goes on.
    assert run(kept[0], "--target", "y", *SMALL, "--block", 2, "--output", "mine").exit_code == 0
    assert run(*kept[1], "--resume").exit_code == 0
    assert Path("mine").read_bytes() == (tmp_path / "data.predictions.jsonl").read_bytes()
    # Without the checkpoint, the predictions belong to nobody.
    (tmp_path / "keep").unlink()
    (tmp_path / "keep.previous").unlink(missing_ok=True)
    assert run(kept[0], "--target", "y", *SMALL, "--block", 2, "--limit", 2).exit_code == 0
    assert len(predictions(tmp_path / "data.predictions.jsonl")) == 2


@pytest.mark.slow
def test_predictions_that_are_not_those_of_the_checkpoint_are_not_continued(tmp_path, kept):
    path = tmp_path / "data.predictions.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"row": 1', b'"row": 9') + b"{}\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    result = run(*kept[1], "--resume")
    assert result.exit_code == 1
    assert "does not begin with the predictions that the checkpoint belongs to" in result.output
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def in_python(tmp_path):
    """The checkpoint of a table with a target, a feature that is left out, and numbers of trials."""
    lines = [f"{i % 5},{('Oslo', 'Bergen')[i % 2]},{i % 4},6,{i}" for i in range(12)]
    (tmp_path / "data.csv").write_text("\n".join(["x,city,y,n,id", *lines, ""]), encoding="utf-8")
    options = ("--total-count", "n", "--exclude", "id", "--block", 6, "--checkpoint", tmp_path / "keep")
    result = run(tmp_path / "data.csv", "--target", "y", *SMALL, *options)
    assert result.exit_code == 0, result.output
    return sg.load(tmp_path / "keep")


@pytest.mark.slow
def test_a_checkpoint_predicts_rows_in_any_form(in_python):
    pandas = pytest.importorskip("pandas")
    row = {"x": "1", "city": "Oslo", "n": "6"}
    expected = in_python.predict([{"x": 1, "city": "Oslo", "n": 6}]).mean
    for rows in ([row], row, pandas.DataFrame([row]), pandas.Series(row), [{**row, "y": 2, "n": 6}]):
        assert np.array_equal(in_python.predict(rows).mean, expected)
    with pytest.warns(StreamGPWarning, match=r"no columns \['x'\], which are taken as missing, but \['X'\]"):
        in_python.predict([{"X": 1, "city": "Oslo", "n": 6}])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "error", "sentence"),
    [
        ([{"x": "1,5", "city": "Oslo", "n": 6}], ValueRangeError, "Row 0, .*'x' is '1,5' and not a number. Mend it"),
        ([{"x": 1, "n": 6}, {"x": math.inf, "n": 6}], ValueRangeError, "Row 1, .*'x' is not finite"),
        ([{"x": 1, "n": 6}, {"x": 1, "n": "six"}], ValueRangeError, "Row 1, .*the total count 'n' is 'six'"),
        ([{"X": 1, "City": "Oslo"}], OptionError, r"none of the columns \['x', 'city'\] .*but \['City', 'X'\]"),
        ([[1, "Oslo"]], OptionError, "Pass mappings with those names, or a DataFrame"),
        ("x", ArgumentTypeError, "Rows must be a list of mappings"),
    ],
)
def test_a_checkpoint_refuses_rows_that_the_stream_would_refuse(in_python, rows, error, sentence):
    with pytest.raises(error, match=sentence):
        in_python.predict(rows)


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (
            [f"{1 + i:02d}/02/2024" for i in range(12)],
            "month/day/year. They could be day/month/year as well",
        ),
        ([f"{5 + i:02d}/02/2024 10:00" for i in range(12)], "are read as day/month/year.\n"),
        (
            [f"2024-02-{1 + i:02d}T10:00+0{i % 2}:00" for i in range(12)],
            "time zones: they are brought to UTC",
        ),
        (range(7, 19), "The column 'a' counts the rows. Leave it out with --exclude unless"),
    ],
)
def test_what_is_in_doubt_of_columns_is_said(tmp_path, column, sentence):
    source = write_csv(tmp_path / "data.csv", [{"a": a, "y": i % 5} for i, a in enumerate(column)], ("a", "y"))
    result = run(source, "--target", "y", *SMALL, "--block", 12)
    assert result.exit_code == 0, result.output
    assert sentence in result.output


@pytest.mark.slow
def test_what_is_not_used_or_not_the_same_class_is_said(tmp_path):
    path = tmp_path / "data.jsonl"
    rows = [{"x": i, "y": ("on", "ON")[i % 2], **({"z": 1} if i else {})} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = run(path, "--target", "y", *SMALL, "--block", 6)
    assert result.exit_code == 0, result.output
    assert "Not used, as the first line has no such fields: z." in result.output
    assert "These are different classes, although only their writing differs: on, ON." in result.output


def test_a_directory_is_no_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source in (".", "..", tmp_path):
        result = run(source, "--target", "y")
        assert result.exit_code == 1
        assert f"{source} is a directory. Name a file in it" in result.output


@pytest.mark.parametrize("option", [(), ("--fresh",)])
def test_a_file_that_is_no_checkpoint_is_not_replaced(tmp_path, option):
    source = write_csv(tmp_path / "data.csv", make_rows(6))
    (tmp_path / "notes.txt").write_text("precious", encoding="utf-8")
    result = run(source, "--target", "y", *SMALL, "--checkpoint", tmp_path / "notes.txt", *option)
    assert result.exit_code == 1
    assert "notes.txt is not a checkpoint, and would be replaced by one. Name another --checkpoint" in result.output
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "precious"
    assert {each.name for each in tmp_path.iterdir()} == {"data.csv", "notes.txt"}
