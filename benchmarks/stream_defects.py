"""What real targets were once predicted wrong: sums of skewed targets, late labels, horizons, little noise, pauses.

python benchmarks/stream_defects.py [sums late horizons noise pauses]
"""

import sys
import time
import warnings
from collections import deque

import numpy as np

import streamgp as sg

NUM_SKIPPED = 50


def said_of(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return what is said of each row before it is learned."""
    model, said = sg.StreamingGPRegressor().partial_fit(X[:1], y[:1]), []
    for i in range(1, len(y)):
        said.append(model.predict(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return np.array([y[0], *said])


def sums() -> None:
    """Sum of predictions over that of targets."""
    rng = np.random.default_rng(11)
    n = 800
    X = rng.uniform(-1, 1, (n, 3))
    streams = {
        "85 % zeros, else gamma": np.where(rng.random(n) < 0.85, 0.0, rng.gamma(2.0, 50.0, n)),
        "97 % zeros, else 1 to 5": np.where(rng.random(n) < 0.97, 0.0, rng.integers(1, 6, n)).astype(float),
        "log-normal, 1.5": np.exp(1.5 * rng.standard_normal(n)),
        "log-normal, 1, with a trend": np.exp(X[:, 0] + rng.standard_normal(n)),
        "exponential demand": rng.exponential(np.exp(1.0 + X[:, 1])),
    }
    for name, y in streams.items():
        print(f"{name:30} {said_of(X, y)[NUM_SKIPPED:].sum() / y[NUM_SKIPPED:].sum():.3f}", flush=True)


def late() -> None:
    """Share of targets within 90 % intervals as they were said, labels so many rows late."""
    rng = np.random.default_rng(12)
    n = 900
    walk = np.cumsum(rng.standard_normal(n)) + 0.2 * rng.standard_normal(n)
    t = np.arange(n)
    day = np.c_[np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)]
    demand = 20 + 4 * day[:, 0] + np.cumsum(0.1 * rng.standard_normal(n)) + 0.3 * rng.standard_normal(n)
    for name, X, y in (("walk", rng.standard_normal((n, 2)), walk), ("demand", day, demand)):
        for delay in (1, 24, 200):
            model = sg.StreamingGPRegressor().partial_fit(X[:1], y[:1])
            waiting, inside = deque(), []
            for i in range(1, n):
                waiting.append((i, model.expect(X[i : i + 1])))
                low, high = waiting[-1][1].prediction.quantiles([0.05, 0.95])[0].tolist()
                inside.append(low <= y[i] <= high)
                if waiting[0][0] <= i - delay:
                    j, ticket = waiting.popleft()
                    model.learn(ticket, y[j : j + 1])
            print(f"{name}, {delay} late: {np.mean(inside[2 * delay + NUM_SKIPPED :]):.1%}", flush=True)


def horizons() -> None:
    """Share of targets within 90 % intervals at horizons to 48."""
    rng = np.random.default_rng(13)
    n = 900
    t = np.arange(n)
    day = np.c_[np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)]
    y = 20 + 4 * day[:, 0] + np.cumsum(0.1 * rng.standard_normal(n)) + 0.3 * rng.standard_normal(n)
    model, inside = sg.StreamingGPRegressor(), {h: [] for h in (1, 6, 24, 48)}
    for i in range(n - 48):
        model.partial_fit(day[i : i + 1], y[i : i + 1])
        if i >= 100 and i % 4 == 0:
            for h, each in inside.items():
                _, ends = model.predict(day[i + h : i + h + 1], quantiles=[0.05, 0.95], horizon=h)
                each.append(ends[0, 0] <= y[i + h] <= ends[0, 1])
    print("horizons:", {h: f"{np.mean(each):.1%}" for h, each in inside.items()}, flush=True)


def noise() -> None:
    """Mean error of one step along a time column, by the deviation of the noise."""
    t = np.arange(600.0)
    for deviation in (0.0, 0.001, 0.01, 0.05):
        y = np.sin(2 * np.pi * t / 24) + deviation * np.random.default_rng(2).standard_normal(600)
        error = np.abs(said_of(t[:, None], y) - y)[100:].mean()
        print(f"noise {deviation}: error {error:.4f}, goal {1.5 * deviation + 0.01:.4f}", flush=True)


def pauses() -> None:
    """Longest call of `partial_fit` of a row with 256 points."""
    rng = np.random.default_rng(14)
    X = rng.uniform(-2, 2, (1300, 6))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(X[:, 2] + X[:, 3]) + 0.05 * rng.standard_normal(1300)
    for refit in ("auto", "background"):
        model, longest = sg.StreamingGPRegressor(refit=refit), []
        for i in range(1300):
            began = time.perf_counter()
            model.partial_fit(X[i : i + 1], y[i : i + 1])
            longest.append(time.perf_counter() - began)
            time.sleep(0.002)
        late_rows = sorted(longest[20:])[-3:]
        print(refit, [f"{1e3 * each:.0f} ms" for each in late_rows], len(model.inducing_points_), "points", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for each in sys.argv[1:] or ("sums", "late", "horizons", "noise", "pauses"):
        {"sums": sums, "late": late, "horizons": horizons, "noise": noise, "pauses": pauses}[each]()
