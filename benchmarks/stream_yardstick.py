"""Two versions of the package on the same streams, side by side, each row judged by what was said of it beforehand.

The streams, and which of them are held out, were declared before the second version was run on any of them. Each unit
runs in a process of its own with the sources that it is given, defaults only, one row at a time. Printed are mean
absolute error, negative log predictive density, the share of targets within 90 % intervals, the sum of predictions over
the sum of targets, and processor time a row in microseconds, refits included.

    python benchmarks/stream_yardstick.py run --sources old=../old/src new=src --output results [--streams walk]
    python benchmarks/stream_yardstick.py table --output results old new
"""

import argparse
import csv
import datetime
import gzip
import inspect
import itertools
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The first rows are learned and not judged.
NUM_SKIPPED = 30


class Case(NamedTuple):
    """A stream: its rows, whether it is held out, and how many rows late its labels come."""

    make: Callable[[], tuple[np.ndarray, np.ndarray]]
    is_held_out: bool
    delay: int = 0


def _river(name: str, num_rows: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def make() -> tuple[np.ndarray, np.ndarray]:
        from river import datasets, stream

        del stream
        rows = list(itertools.islice(getattr(datasets, name)(), num_rows))
        return np.array([_numbers(x) for x, _ in rows]), np.array([float(y) for _, y in rows])

    return make


def _numbers(x: dict[str, Any]) -> list[float]:
    numbers = []
    for value in x.values():
        if isinstance(value, datetime.datetime):
            day = 2 * math.pi * value.timetuple().tm_yday / 365.25
            hour = 2 * math.pi * (value.hour + value.minute / 60) / 24
            days = value.replace(tzinfo=datetime.UTC).timestamp() / 86400
            numbers += [days, math.sin(day), math.cos(day), math.sin(hour), math.cos(hour), float(value.weekday())]
        else:
            numbers.append(float(value))
    return numbers


def _friedman(kind: str, transition: int, seed: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def make() -> tuple[np.ndarray, np.ndarray]:
        from river.datasets import synth

        position = (500, 1000, 1250) if kind == "lea" else (500, 1000)
        rows = list(
            synth.FriedmanDrift(drift_type=kind, position=position, transition_window=transition, seed=seed).take(1500)
        )
        return np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])

    return make


def _read(path: str, **options: Any) -> np.ndarray:
    with gzip.open(Path(os.environ["STREAMGP_DATA_DIR"]) / path, "rt") as file:
        return np.genfromtxt(file, delimiter=",", **options)


def _table(path: str, num_rows: int, *, column: int | None = None) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Rows of a table in random order, or by a column; the last column is the target."""

    def make() -> tuple[np.ndarray, np.ndarray]:
        rows = _read(path)
        rows = rows[np.isfinite(rows).all(1)]
        rows = rows[np.random.default_rng(7).permutation(len(rows))[:num_rows]]
        if column is not None:
            rows = rows[np.argsort(rows[:, column], kind="stable")]
        return rows[:, :-1], rows[:, -1]

    return make


def _co2() -> tuple[np.ndarray, np.ndarray]:
    rows = _read("streams/mauna_loa_co2_monthly_1959_1997.csv.gz", skip_header=1)
    return rows[:, 1:2], rows[:, 2]


def _currencies() -> tuple[np.ndarray, np.ndarray]:
    with (Path(os.environ["STREAMGP_DATA_DIR"]) / "fx/fxdata2007.csv").open() as file:
        rows = list(csv.reader(file))[1:]
    values = np.array([[float(value) for value in row[6:16]] for row in rows])
    return values[:, :7], values[:, 8]


def _diabetes() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


def _walk() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((1200, 2)), np.cumsum(rng.standard_normal(1200)) + 0.2 * rng.standard_normal(1200)


def _sine() -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(600.0)
    return t[:, None], np.sin(2 * np.pi * t / 24) + 0.01 * np.random.default_rng(2).standard_normal(600)


def _flip() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (1200, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(1200)
    return X, np.where(np.arange(1200) < 600, y, -y)


def _outliers() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (1200, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + 0.1 * rng.standard_normal(1200)
    return X, y + np.where(rng.random(1200) < 0.02, rng.choice([-8.0, 8.0], 1200), 0.0)


def _zero_inflated() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.random((1500, 3)), np.where(rng.random(1500) < 0.85, 0.0, rng.gamma(2.0, 50.0, 1500))


def _log_normal() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (1500, 3))
    return X, np.exp(X[:, 0] + 1.5 * rng.standard_normal(1500))


def _counts() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    t = np.arange(2000)
    X = np.c_[np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), t // 24 % 7, rng.random(2000)]
    level = np.cumsum(0.02 * rng.standard_normal(2000))
    return X, rng.poisson(np.exp(1 + X[:, 0] + 0.3 * (X[:, 2] > 4) + level)).astype(float)


def _demand() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    t = np.arange(1500)
    weather = np.zeros(1500)
    for i in range(1, 1500):
        weather[i] = 0.98 * weather[i - 1] + 0.2 * rng.standard_normal()
    X = np.c_[np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), t // 24 % 7, weather]
    hidden = np.cumsum(0.1 * rng.standard_normal(1500))
    return X, 20 + 4 * X[:, 0] + 2 * (X[:, 2] > 4) + np.abs(weather) + hidden + 0.3 * rng.standard_normal(1500)


def _steps() -> tuple[np.ndarray, np.ndarray]:
    """A machine of little noise along a count of hours, whose load steps and whose wear grows."""
    rng = np.random.default_rng(10)
    t = np.arange(800.0)
    load = rng.choice([1.0, 2.0, 3.0], 40).repeat(20)
    return np.c_[t, load], np.sin(2 * np.pi * t / 50) + load + 0.002 * t + 0.02 * rng.standard_normal(800)


CASES = {
    # Looked at while the second version was written.
    "chick weights": Case(_river("ChickWeights", 578), False),
    "water flow": Case(_river("WaterFlow", 1268), False),
    "approval": Case(_river("TrumpApproval", 1001), False),
    "Friedman, local drift": Case(_friedman("lea", 1, 1), False),
    "random walk": Case(_walk, False),
    "sine": Case(_sine, False),
    "sign flip": Case(_flip, False),
    "outliers": Case(_outliers, False),
    "zero-inflated gamma": Case(_zero_inflated, False),
    "power plant, sorted": Case(_table("uci/powerplant.csv.gz", 1500, column=0), False),
    "walk, 24 late": Case(_walk, False, delay=24),
    # Held out.
    "airline": Case(_river("AirlinePassengers", 144), True),
    "diabetes": Case(_diabetes, True),
    "CO2": Case(_co2, True),
    "currencies": Case(_currencies, True),
    "Friedman, gradual": Case(_friedman("gsg", 500, 3), True),
    "skill": Case(_table("uci/skillcraft_data.csv.gz", 1500), True),
    "elevators": Case(_table("uci/elevators_data.csv.gz", 2000), True),
    "log-normal": Case(_log_normal, True),
    "hourly counts": Case(_counts, True),
    "machine steps": Case(_steps, True),
    "demand, 24 late": Case(_demand, True, delay=24),
    "protein, long": Case(_table("uci/protein_data.csv.gz", 6000), True),
}


def run_case(name: str, output: Path) -> None:
    """Run the package that is first on the path over a stream, and keep what was said of each row."""
    import streamgp as sg

    warnings.simplefilter("ignore")
    case = CASES[name]
    X, y = case.make()
    model = sg.StreamingGPRegressor()
    learn_first = model.partial_fit(X[:1], y[:1])
    del learn_first
    said = np.full((len(y), 4), np.nan)
    waiting: deque[tuple[int, Any]] = deque()
    has_tickets = hasattr(model, "expect")
    # Trials and, in later versions, a horizon of one row.
    options = (None, 1) if "horizon" in inspect.signature(model._predict).parameters else (None,)
    began = time.process_time()
    for i in range(1, len(y)):
        row = X[i : i + 1]
        if case.delay and has_tickets:
            ticket = model.expect(row)
            forecast = ticket.prediction
            waiting.append((i, ticket))
        else:
            forecast = model._predict(row, *options)
            waiting.append((i, None))
        low, high = np.ravel(forecast.quantiles([0.05, 0.95]))
        mean, density = float(np.ravel(forecast.mean)[0]), _density(forecast, y[i])
        said[i] = mean, density, float(low <= y[i] <= high), high - low
        while waiting and waiting[0][0] <= i - case.delay:
            j, ticket = waiting.popleft()
            if ticket is None:
                model.partial_fit(X[j : j + 1], y[j : j + 1])
            else:
                model.learn(ticket, y[j : j + 1])
    seconds = time.process_time() - began
    output.parent.mkdir(parents=True, exist_ok=True)
    np.savez(output, said=said, y=y, seconds=seconds)


def _density(forecast: Any, y: float) -> float:
    try:
        return float(np.ravel(forecast.log_density(np.array([y])))[0])
    except (TypeError, AttributeError):
        import torch

        return float(np.ravel(forecast.log_density(torch.tensor([y], dtype=torch.float64)))[0])


def summary(path: Path) -> dict[str, Any]:
    """What one version did on one stream."""
    with np.load(path) as file:
        said, y, seconds = file["said"][NUM_SKIPPED:], file["y"][NUM_SKIPPED:], float(file["seconds"])
        num_rows = len(file["y"])
    error = np.abs(said[:, 0] - y)
    return {
        "error": error,
        "nlpd": -said[:, 1],
        "MAE": error.mean(),
        "NLPD": -said[:, 1].mean(),
        "coverage": said[:, 2].mean(),
        "ratio": said[:, 0].sum() / y.sum(),
        "microseconds": 1e6 * seconds / num_rows,
    }


def table(output: Path, names: list[str]) -> None:
    """Print both versions, and the difference in standard errors of paired rows."""
    for is_held_out in (False, True):
        print("held out" if is_held_out else "looked at")
        for name, case in CASES.items():
            paths = [output / version / f"{name}.npz" for version in names]
            if case.is_held_out != is_held_out or not paths[-1].exists():
                continue
            done = [summary(path) if path.exists() else None for path in paths]
            line = f"{name:22}"
            for each in done:
                if each is not None:
                    line += (
                        f" | {each['MAE']:9.4g} {each['NLPD']:7.3f} {100 * each['coverage']:5.1f} "
                        f"{each['ratio']:6.3f} {each['microseconds']:6.0f}"
                    )
            if done[0] is not None and done[-1] is not None and len(done) > 1:
                first, last = done[0], done[-1]
                line += f" | {last['MAE'] / first['MAE']:.3f} ({_t(last['error'] - first['error']):+.1f} SE)"
                line += f" {last['NLPD'] - first['NLPD']:+.3f} ({_t(last['nlpd'] - first['nlpd']):+.1f} SE)"
            print(line)


def _t(difference: np.ndarray) -> float:
    deviation = difference.std(ddof=1) / math.sqrt(len(difference))
    return float(difference.mean() / deviation) if deviation else 0.0


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
        return
    if options.command == "table":
        table(options.output, options.names)
        return
    for name, case in CASES.items():
        if (name not in options.streams) if options.streams else (case.is_held_out and not options.held_out):
            continue
        for source in options.sources:
            version, path = source.split("=")
            target = options.output / version / f"{name}.npz"
            if target.exists():
                continue
            environment = {**os.environ, "PYTHONPATH": path}
            command = [sys.executable, __file__, "one", name, "--output", str(target)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                print(json.dumps({"stream": name, "version": version, "error": done.stderr[-600:]}))


if __name__ == "__main__":
    main()
