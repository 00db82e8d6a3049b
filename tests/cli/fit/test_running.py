import csv
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import streamgp as sg
from streamgp.cli.app import app

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
    rows = list(csv.DictReader(predictions.open()))
    assert len(rows) == 40
    truth = [float(row["y"]) for row in csv.DictReader(files[0].open())]
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
    rows = list(csv.DictReader(predictions.open()))
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
