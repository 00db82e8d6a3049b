"""Labels, counts and outliers in streams: two versions of the package, each row judged by what was said of it before.

Streams, and which of them are held out, were declared before either version was run on any of them here. Each unit runs
in a process of its own, defaults only, and classes are announced with the first row. Printed are error (mean absolute,
or the share of wrong labels), log loss or negative log density, and processor time a row in microseconds.

    python benchmarks/stream_labels.py run --sources old=../old/src new=src --output results [--held-out]
    python benchmarks/stream_labels.py table old new --output results
"""

import argparse
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

NUM_SKIPPED, MOST_ROWS = 30, 700


class Case(NamedTuple):
    """A stream: its rows, its likelihood or None for labels, and whether it is held out."""

    make: Callable[[], tuple[np.ndarray, ...]]
    likelihood: str | None
    is_held_out: bool


def _rival(name: str) -> Callable[[], tuple[np.ndarray, ...]]:
    def make() -> tuple[np.ndarray, ...]:
        from rival_streams import STREAMS

        (stream,) = (each for each in STREAMS if each.name == name)
        rows = [row for row, _ in zip(stream.rows(), range(MOST_ROWS), strict=False)]
        return np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])

    return make


def _synth(name: str, **options: Any) -> Callable[[], tuple[np.ndarray, ...]]:
    def make() -> tuple[np.ndarray, ...]:
        from river.datasets import synth

        rows = list(getattr(synth, name)(seed=5, **options).take(MOST_ROWS))
        return np.array([[float(v) for v in x.values()] for x, _ in rows]), np.array([y for _, y in rows])

    return make


def _sklearn(name: str) -> Callable[[], tuple[np.ndarray, ...]]:
    def make() -> tuple[np.ndarray, ...]:
        from sklearn import datasets

        X, y = getattr(datasets, name)(return_X_y=True)
        order = np.random.default_rng(7).permutation(len(y))[:MOST_ROWS]
        return X[order], y[order]

    return make


def _returns() -> tuple[np.ndarray, ...]:
    """Signs of daily returns, of which the inputs (the last five) say next to nothing."""
    rng = np.random.default_rng(20)
    steps = 0.0003 + 0.01 * rng.standard_normal(MOST_ROWS + 5) * np.exp(0.3 * np.sin(np.arange(MOST_ROWS + 5) / 60))
    X = np.stack([steps[i : i + MOST_ROWS] for i in range(5)], axis=1)
    return X, (steps[5:] > 0).astype(int)


def _hourly() -> tuple[np.ndarray, ...]:
    rng, t = np.random.default_rng(8), np.arange(MOST_ROWS)
    X = np.c_[np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), t // 24 % 7, rng.random(MOST_ROWS)]
    level = np.cumsum(0.02 * rng.standard_normal(MOST_ROWS))
    return X, rng.poisson(np.exp(1 + X[:, 0] + 0.3 * (X[:, 2] > 4) + level)).astype(float)


def _outliers() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (1200, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + 0.1 * rng.standard_normal(1200)
    return X, y + np.where(rng.random(1200) < 0.02, rng.choice([-8.0, 8.0], 1200), 0.0)


def _spread() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(21)
    X = rng.uniform(-1, 1, (MOST_ROWS, 3))
    return X, rng.poisson(np.exp(2.0 + X[:, 0] - X[:, 1] ** 2) * rng.gamma(1.5, 1 / 1.5, MOST_ROWS)).astype(float)


def _rare() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(22)
    X = rng.uniform(-1, 1, (MOST_ROWS, 3))
    return X, rng.poisson(0.08 * np.exp(1.5 * X[:, 0])).astype(float)


def _clicks() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(23)
    X, trials = rng.standard_normal((MOST_ROWS, 4)), rng.integers(1, 40, MOST_ROWS).astype(float)
    f = -2.0 + X[:, 0] * np.cos(np.arange(MOST_ROWS) / 200) + 0.5 * X[:, 1]
    return X, rng.binomial(trials.astype(int), 1 / (1 + np.exp(-f))).astype(float), trials


def _rough() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(24)
    t = np.arange(MOST_ROWS)
    level = np.cumsum(0.05 * rng.standard_normal(MOST_ROWS)) + np.sin(2 * np.pi * t / 24)
    return np.c_[np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)], level + 0.2 * rng.standard_t(2, MOST_ROWS)


CASES = {
    # Looked at.
    "Bananas": Case(_rival("Bananas"), None, False),
    "Phishing": Case(_rival("Phishing"), None, False),
    "SEA, abrupt": Case(_rival("SEA, abrupt"), None, False),
    "hyperplane": Case(_synth("Hyperplane", n_features=6, n_drift_features=3, mag_change=0.003), None, False),
    "returns": Case(_returns, None, False),
    "hourly counts": Case(_hourly, "poisson", False),
    "outliers": Case(_outliers, "student_t", False),
    # Held out.
    "ImageSegments": Case(_rival("ImageSegments"), None, True),
    "Sine, recurring": Case(_rival("Sine, recurring"), None, True),
    "RBF, moving": Case(_rival("RBF, moving"), None, True),
    "wine": Case(_sklearn("load_wine"), None, True),
    "breast cancer": Case(_sklearn("load_breast_cancer"), None, True),
    "STAGGER": Case(_synth("STAGGER"), None, True),
    "spread counts": Case(_spread, "negative_binomial", True),
    "rare counts": Case(_rare, "poisson", True),
    "clicks": Case(_clicks, "binomial", True),
    "rough level": Case(_rough, "student_t", True),
}


def run_case(name: str, output: Path) -> None:
    """Run the package that is first on the path over a stream, and keep error and density of each row."""
    warnings.simplefilter("ignore")
    case = CASES[name]
    X, y, *rest = case.make()
    trials = rest[0] if rest else None
    said = np.full((len(y), 3), np.nan)
    began = time.process_time()
    (_run_new if _is_new() else _run_old)(case, X, y, trials, said)
    output.parent.mkdir(parents=True, exist_ok=True)
    np.savez(output, said=said, seconds=time.process_time() - began)


def _is_new() -> bool:
    try:
        from streamgp.streams import StreamOptions
    except ImportError:
        return False
    return "likelihood" in StreamOptions.__dataclass_fields__


def _run_new(case: Case, X: np.ndarray, y: np.ndarray, trials: np.ndarray | None, said: np.ndarray) -> None:
    from streamgp.streams import StreamLearner, StreamOptions

    classes, targets = (None, y) if case.likelihood else np.unique(y, return_inverse=True)
    learner = StreamLearner(
        X.shape[1],
        StreamOptions(likelihood=case.likelihood or "gaussian"),
        num_classes=0 if classes is None else len(classes),
    )

    def note(rows: np.ndarray, forecast: Any) -> None:
        said[rows, 1] = -forecast.log_density(targets[rows])
        if classes is None:
            said[rows, 0], said[rows, 2] = np.abs(forecast.mean - y[rows]), forecast.mean
        else:
            said[rows, 0] = forecast.probabilities.argmax(1) != targets[rows]

    learner.learn(X.astype(float), targets.astype(float), total_count=trials, on_predicted=note)


def _run_old(case: Case, X: np.ndarray, y: np.ndarray, trials: np.ndarray | None, said: np.ndarray) -> None:
    import streamgp as sg

    if case.likelihood is None:
        classes = np.unique(y)
        model = sg.StreamingGPClassifier().partial_fit(X[:1], y[:1], classes=classes)
        for i in range(1, len(y)):
            probabilities = model.predict_proba(X[i : i + 1])[0]
            right = probabilities[np.searchsorted(classes, y[i])]
            said[i, :2] = classes[probabilities.argmax()] != y[i], -math.log(max(right, 1e-9))
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        return
    regressor = sg.StreamingGPRegressor(case.likelihood)
    for i in range(len(y)):
        row = {} if trials is None else {"total_count": trials[i : i + 1]}
        if i:
            mean = float(np.ravel(regressor.predict(X[i : i + 1], **row))[0])
            density = float(regressor.log_predictive_density(X[i : i + 1], y[i : i + 1], **row)[0])
            said[i] = abs(mean - y[i]), -density, mean
        regressor.partial_fit(X[i : i + 1], y[i : i + 1], **row)


def table(output: Path, names: list[str]) -> None:
    """Print the versions, and the differences in standard errors of paired rows."""
    for is_held_out in (False, True):
        print("held out" if is_held_out else "looked at")
        for name, case in CASES.items():
            paths = [output / version / f"{name}.npz" for version in names]
            if case.is_held_out != is_held_out or not all(path.exists() for path in paths):
                continue
            line, parts = f"{name:18}", []
            for path in paths:
                with np.load(path) as file:
                    said, seconds = file["said"][NUM_SKIPPED:], float(file["seconds"])
                    parts.append(said)
                    cost = 1e6 * seconds / len(file["said"])
                line += f" | {said[:, 0].mean():7.4f} {said[:, 1].mean():7.3f} {cost:6.0f}"
            for column in (0, 1):
                difference = parts[-1][:, column] - parts[0][:, column]
                deviation = difference.std(ddof=1) / math.sqrt(len(difference))
                line += f" | {difference.mean():+.4f} ({difference.mean() / max(deviation, 1e-12):+.1f} SE)"
            print(line)


def main() -> None:
    """Run or tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "one", "table"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sources", nargs="*", default=[])
    parser.add_argument("--streams", nargs="*")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "one":
        run_case(options.names[0], options.output)
    elif options.command == "table":
        table(options.output, options.names)
    else:
        for name, case in CASES.items():
            if (name not in options.streams) if options.streams else (case.is_held_out != options.held_out):
                continue
            for source in options.sources:
                version, path = source.split("=")
                target = options.output / version / f"{name}.npz"
                if not target.exists():
                    environment = {**os.environ, "PYTHONPATH": path}
                    command = [sys.executable, __file__, "one", name, "--output", str(target)]
                    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                    if done.returncode:
                        print(name, version, done.stderr[-600:], flush=True)


if __name__ == "__main__":
    main()
