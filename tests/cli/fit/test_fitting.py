import csv
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import streamgp as sg
from streamgp.cli.app import app
from streamgp.cli.fit.fitting import TableShard, input_names
from streamgp.errors import DatasetError, OptionError, ValueRangeError
from streamgp.tables.files import TableFile

OPTIONS = ["--num-inducing", "6", "--max-iterations", "5"]


def write(path, X, y, names=("east", "north", "y")):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([*row, target] for row, target in zip(X.tolist(), y.tolist(), strict=True))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(90, 2))
    y = 100.0 + 20.0 * np.sin(X[:, 0])
    paths = [tmp_path / f"part{i}.csv" for i in range(2)]
    write(paths[0], X[:40], y[:40])
    write(paths[1], X[40:], y[40:])
    return paths


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.mark.slow
def test_a_model_is_fitted_scored_saved_and_predicts(files, tmp_path):
    model = tmp_path / "model.zip"
    done = run("fit", *files, "--target", "y", "--output", model, *OPTIONS)
    assert done.exit_code == 0, done.output
    assert float(re.search(r"Held out, 9 rows: R² ([-0-9.]+)", done.output).group(1)) > 0.5
    assert list(sg.load_estimator(model).feature_names_in_) == ["east", "north"]
    predictions = tmp_path / "predictions.csv"
    done = run("predict", model, files[0], "--output", predictions)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader(predictions.read_text().splitlines()))
    assert len(rows) == 40
    truth = [float(row["y"]) for row in csv.DictReader(files[0].read_text().splitlines())]
    assert np.abs(np.array([float(row["y_mean"]) for row in rows]) - truth).max() < 10.0
    assert all(float(row["y_std"]) > 0 for row in rows)


@pytest.mark.slow
def test_parquet_files_are_read_alike(files, tmp_path):
    pyarrow_csv = pytest.importorskip("pyarrow.csv", reason="needs the extra streamgp[tables]")
    parquet = pytest.importorskip("pyarrow.parquet")
    others = [path.with_suffix(".parquet") for path in files]
    for path, other in zip(files, others, strict=True):
        parquet.write_table(pyarrow_csv.read_csv(path), other)
    for name, paths in (("a", files), ("b", others)):
        assert run("fit", *paths, "--target", "y", "--output", tmp_path / name, "--quiet", *OPTIONS).exit_code == 0
    points = [sg.load_estimator(tmp_path / name).inducing_points_ for name in ("a", "b")]
    np.testing.assert_array_equal(points[0], points[1])


@pytest.mark.slow
def test_labels_are_fitted_scored_and_predicted(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-3.0, 3.0, size=(60, 2))
    labels = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, "east", "west")
    table, model, predictions = (tmp_path / name for name in ("table.csv", "model.zip", "predictions.csv"))
    write(table, X, labels)
    done = run(
        "fit", table, "--target", "y", "--classes", "--output", model, "--num-inducing", 3, "--max-iterations", 1
    )
    assert done.exit_code == 0, done.output
    assert "Held out, 6 rows: accuracy" in done.output
    assert run("predict", model, table, "--output", predictions).exit_code == 0
    rows = list(csv.DictReader(predictions.read_text().splitlines()))
    assert np.mean([row["y"] == label for row, label in zip(rows, labels, strict=True)]) > 0.7
    local = sg.load_estimator(model)
    probabilities = [[float(row[f"y_probability_{each}"]) for each in local.classes_] for row in rows]
    names = pytest.importorskip("pandas").DataFrame(X, columns=["east", "north"])
    np.testing.assert_array_equal(probabilities, local.predict_proba(names))
    refused = run("fit", table, "--target", "y", "--classes", "--likelihood", "poisson", "--output", tmp_path / "no")
    assert "--likelihood poisson must be left out" in refused.output


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("east,north,y\n1,2,3\n1,a,3\n", "line 3: 'north' must be a number, but is 'a'"),
        ("east,north,y\n1,2\n", "line 2: 2 cells, but the header has 3"),
        ("east,north\n1,2\n", "has no column 'y'"),
        ("", "is empty"),
        ("east,north,y\n1,2,3\n1,,3\n", "1 of 2 rows have missing"),
    ],
)
def test_a_bad_file_is_named(tmp_path, lines, message):
    path = tmp_path / "bad.csv"
    path.write_text(lines)
    done = run("fit", path, "--target", "y", "--output", tmp_path / "model")
    assert done.exit_code == 1
    assert message in done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "model").exists()


def test_labels_that_are_one_number_are_refused(tmp_path):
    paths = [tmp_path / "whole.csv", tmp_path / "decimal.csv"]
    for path, labels in zip(paths, (("0", "1"), ("0.0", "1.0")), strict=True):
        path.write_text("x,y\n" + "".join(f"{i},{labels[i % 2]}\n" for i in range(6)))
    done = run("fit", *paths, "--target", "y", "--classes", "--output", tmp_path / "model")
    assert done.exit_code == 1
    assert "The labels '0', '0.0' are one number, written in different ways" in done.output


def test_a_scheduler_that_does_not_answer_is_an_error(files, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    done = run("fit", files[0], "--target", "y", "--output", tmp_path / "model", "--dask", "tcp://nowhere:1")
    assert done.exit_code == 1
    assert "No Dask scheduler answers at 'tcp://nowhere:1'" in done.output


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    rows = "\n".join(f"{i},{i * i},{'odd' if i % 2 else 'even'}" for i in range(25))
    path.write_text(f"x,y,kind\n{rows}\n")
    return path


def test_rows_are_trained_on_or_held_out(table):
    parts = [TableShard(table, ("x",), "y", is_held_out=is_held_out)() for is_held_out in (False, True)]
    (X, y), (X_out, y_out) = parts
    assert X_out[:, 0].tolist() == [9.0, 19.0]
    assert sorted(np.concatenate([X, X_out])[:, 0].tolist()) == list(range(25))
    assert np.array_equal(np.concatenate([X, X_out])[:, 0] ** 2, np.concatenate([y, y_out]))


def test_columns_are_numbers_or_labels(table):
    assert TableFile(table).names == ("x", "y", "kind")
    assert TableFile(table).numbers(("y", "x"))[3].tolist() == [9.0, 3.0]
    assert TableFile(table).labels("kind")[:2].tolist() == ["even", "odd"]
    assert set(TableShard(table, ("x",), "kind", is_label=True)()[1]) == {"even", "odd"}


def test_missing_values_are_counted(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("x,y\n1,2\n,3\n2,inf\n")
    with pytest.raises(ValueRangeError, match="2 of 3 rows have missing or infinite values, the first after 1 good"):
        TableShard(path, ("x",), "y")()
    with pytest.raises(DatasetError, match="is not a file"):
        _ = TableFile(tmp_path / "nothing.csv").names


def test_inputs_are_all_columns_but_the_target_or_those_that_are_named(table, tmp_path):
    assert input_names(table, "y", None) == ("x", "kind")
    assert input_names(table, "y", ("kind", "x")) == ("kind", "x")
    with pytest.raises(OptionError, match="--features names the target 'y'"):
        input_names(table, "y", ("x", "y"))
    with pytest.raises(OptionError, match="--features names 'x' more than once"):
        input_names(table, "y", ("x", "x"))
    numbered = tmp_path / "numbered.csv"
    numbered.write_text(",x,y\n0,1,2\n")
    with pytest.raises(OptionError, match="a column named '', as pandas writes the numbers of rows"):
        input_names(numbered, "y", None)
    assert input_names(numbered, "y", ("x",)) == ("x",)
    numbered.write_text("y\n1\n")
    with pytest.raises(OptionError, match="no column but the target"):
        input_names(numbered, "y", None)


def test_a_file_without_rows_is_named(tmp_path):
    path = tmp_path / "header.csv"
    path.write_text("x,y\n")
    with pytest.raises(DatasetError, match=r"has no rows\. Leave the file out"):
        TableShard(path, ("x",), "y")()


def test_labels_that_a_spreadsheet_would_run_are_escaped_in_predictions(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{x},{'=HYPERLINK(1)' if x > 0 else 'plain'}" for x in rng.normal(size=40)]
    (tmp_path / "data.csv").write_text("x,kind\n" + "\n".join(lines) + "\n")
    model, output = tmp_path / "model.sgp", tmp_path / "predictions.csv"
    options = ["--target", "kind", "--classes", "--output", str(model), "--quiet", *OPTIONS]
    assert CliRunner().invoke(app, ["fit", str(tmp_path / "data.csv"), *options]).exit_code == 0
    done = CliRunner().invoke(app, ["predict", str(model), str(tmp_path / "data.csv"), "--output", str(output)])
    assert done.exit_code == 0, done.output
    with output.open(newline="") as file:
        cells = [row[0] for row in csv.reader(file)]
    assert "'=HYPERLINK(1)" in cells
    assert not any(cell.startswith("=") for cell in cells)
