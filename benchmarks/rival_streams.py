"""The streams of `benchmarks/rivals.py`: all that river ships and that are of one target, and six that drift.

Which streams settings were chosen on was fixed before the first comparison: those with `is_tuned`. The others were
looked at for the table only.
"""

import datetime
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

from river import datasets
from river.datasets import synth

__all__ = ["STREAMS", "Stream"]

# Long streams are cut, so that all rivals can be run in minutes.
MOST_ROWS = 1500

Row = tuple[dict[str, float], Any]


@final
@dataclass(frozen=True)
class Stream:
    """A stream in the order of its file.

    Attributes:
        name: For tables.
        is_regression: Whether targets are real numbers; labels otherwise.
        is_tuned: Whether settings were chosen with it in view.
        make: Opens it.
    """

    name: str
    is_regression: bool
    is_tuned: bool
    make: Callable[[], Iterable[Any]]

    def rows(self) -> Iterator[Row]:
        """Rows with numbers as features: a date becomes time in days, year's and day's phase, and weekday."""
        for x, y in itertools.islice(self.make(), MOST_ROWS):
            features: dict[str, float] = {}
            for name, value in x.items():
                features |= _date(name, value) if isinstance(value, datetime.datetime) else {name: float(value)}
            yield features, float(y) if self.is_regression else y


def _date(name: str, value: datetime.datetime) -> dict[str, float]:
    day = 2 * math.pi * value.timetuple().tm_yday / 365.25
    hour = 2 * math.pi * (value.hour + value.minute / 60) / 24
    return {
        f"{name} in days": value.timestamp() / 86400,
        f"{name}, sine of year": math.sin(day),
        f"{name}, cosine of year": math.cos(day),
        f"{name}, sine of day": math.sin(hour),
        f"{name}, cosine of day": math.cos(hour),
        f"{name}, weekday": float(value.weekday()),
    }


def _friedman(kind: str, *, transition: int = 1, seed: int) -> Callable[[], Iterable[Any]]:
    position = (500, 1000, 1250) if kind == "lea" else (500, 1000)
    return lambda: synth.FriedmanDrift(
        drift_type=kind, position=position, transition_window=transition, seed=seed
    ).take(MOST_ROWS)


def _changes(parts: list[Callable[[], Any]], *, every: int = 400, width: int = 10) -> Callable[[], Iterable[Any]]:
    """One concept after the other, a change every so many rows."""

    def make() -> Iterable[Any]:
        stream = parts[-1]()
        for index in reversed(range(len(parts) - 1)):
            stream = synth.ConceptDriftStream(parts[index](), stream, position=every, width=width, seed=index)
        return stream.take(MOST_ROWS)

    return make


def _sea(variant: int) -> Callable[[], Any]:
    return lambda: synth.SEA(variant=variant, noise=0.1, seed=variant)


def _sine(function: int, seed: int) -> Callable[[], Any]:
    return lambda: synth.Sine(classification_function=function, seed=seed)


STREAMS = (
    Stream("TrumpApproval", True, True, datasets.TrumpApproval),
    Stream("ChickWeights", True, False, datasets.ChickWeights),
    Stream("AirlinePassengers", True, False, datasets.AirlinePassengers),
    Stream("WaterFlow", True, True, datasets.WaterFlow),
    Stream("Friedman, local", True, True, _friedman("lea", seed=1)),
    Stream("Friedman, recurring", True, False, _friedman("gra", seed=2)),
    Stream("Friedman, gradual", True, False, _friedman("gsg", transition=500, seed=3)),
    Stream("Bananas", False, False, datasets.Bananas),
    Stream("ImageSegments", False, False, datasets.ImageSegments),
    Stream("Phishing", False, True, datasets.Phishing),
    Stream("SEA, abrupt", False, True, _changes([_sea(0), _sea(3), _sea(1), _sea(2)])),
    Stream("Sine, recurring", False, False, _changes([_sine(0, 1), _sine(1, 2), _sine(0, 3), _sine(1, 4)])),
    Stream(
        "RBF, moving",
        False,
        False,
        lambda: synth.RandomRBFDrift(
            seed_model=1,
            seed_sample=1,
            n_classes=4,
            n_features=4,
            n_centroids=20,
            change_speed=0.3,
            n_drift_centroids=10,
        ).take(MOST_ROWS),
    ),
)
