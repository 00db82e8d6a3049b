"""Development functions: settings of the default optimizer are chosen by these, and judged by those that were declared.

None of them is among the problems of `default_problems.py`. All are to be minimized and have the minimum zero, so that
a value is a regret. Two are sums over coordinates; three are turned, so that no axis is special.
"""

import math
from typing import Any

import numpy as np
from default_problems import Point, Problem, array, cube

import streamgp as sg

__all__ = ["DEVELOPMENT", "HARD", "TRADE_OFFS", "log_regret", "typical_value"]

# Regrets below this share of a typical value are good enough: their logarithms are not told apart.
_GOOD_ENOUGH = 1e-3


def _turned(x: np.ndarray, seed: int) -> np.ndarray:
    """Coordinates in another orthonormal basis."""
    basis, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(x), len(x))))
    return basis @ x


def schwefel(point: Point) -> list[float]:
    x = array(point)
    return [float(418.9828872724338 * len(x) - (x * np.sin(np.sqrt(np.abs(x)))).sum())]


def griewank(point: Point) -> list[float]:
    x = array(point)
    return [float(1 + (x**2).sum() / 4000 - np.cos(x / np.sqrt(np.arange(1, len(x) + 1))).prod())]


def michalewicz(point: Point) -> list[float]:
    x = array(point)
    peaks = np.sin(x) * np.sin(np.arange(1, len(x) + 1) * x**2 / math.pi) ** 20
    return [float(4.687658179 - peaks.sum())]


_SHEKEL = np.array(
    [[4, 1, 8, 6, 3, 2, 5, 8, 6, 7], [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6]] * 2,
    dtype=float,
)
_SHEKEL_WIDTHS = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10


def shekel(point: Point) -> list[float]:
    distance = ((array(point)[:, None] - _SHEKEL) ** 2).sum(0)
    return [float(max(10.536443153483 - (1 / (distance + _SHEKEL_WIDTHS)).sum(), 0.0))]


def dixon_price(point: Point) -> list[float]:
    x = array(point)
    return [float((x[0] - 1) ** 2 + (np.arange(2, len(x) + 1) * (2 * x[1:] ** 2 - x[:-1]) ** 2).sum())]


def powell(point: Point) -> list[float]:
    a, b, c, d = array(point)
    return [float((a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4)]


def exponential_valley(point: Point) -> list[float]:
    along, across, *rest = _turned(array(point) - 0.2, 1)
    return [float(math.expm1(4 * abs(across - 0.5 * along**2)) + along**2 + sum(r**2 for r in rest))]


def steps(point: Point) -> list[float]:
    return [float(np.floor(6 * np.abs(_turned(array(point) - 0.35, 2))).sum())]


_HARTMANN_6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_HARTMANN_6_WEIGHTS = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN_3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_HARTMANN_3_WEIGHTS = np.array([[3, 10, 30], [0.1, 10, 35]] * 2)
_HARTMANN_HEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def hartmann_6(point: Point) -> list[float]:
    """Of the first six coordinates."""
    x = array(point)[:6]
    return [float(3.32236801 - _HARTMANN_HEIGHTS @ np.exp(-(_HARTMANN_6_WEIGHTS * (x - _HARTMANN_6) ** 2).sum(1)))]


def hartmann_3(point: Point) -> list[float]:
    x = array(point)
    return [float(3.86278215 - _HARTMANN_HEIGHTS @ np.exp(-(_HARTMANN_3_WEIGHTS * (x - _HARTMANN_3) ** 2).sum(1)))]


def goldstein_price(point: Point) -> list[float]:
    x, y = array(point)
    first = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
    second = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
    return [float(first * second - 3)]


def ripples(point: Point) -> list[float]:
    u = _turned(array(point) - 0.4, 3)
    return [float((u**2).sum() + 0.15 * (1 - np.cos(6 * math.pi * u)).sum())]


def coating(point: Point) -> list[float]:
    """Layers and a resin that change which temperature is best, and a speed that matters less with more layers."""
    best = {"epoxy": 0.3, "acrylic": 0.6, "silicone": 0.8, "alkyd": 0.45}[point["resin"]]
    price = {"epoxy": 0.15, "acrylic": 0.0, "silicone": 0.1, "alkyd": 0.25}[point["resin"]]
    heat = (point["temperature"] - 60) / 120 - best - 0.03 * (point["layers"] - 4)
    speed = math.log10(point["speed"]) + 0.5
    return [4 * heat**2 + price + 0.05 * abs(point["layers"] - 4) + 0.2 * speed**2 / point["layers"]]


def cake(point: Point) -> list[float]:
    """Two categories that depend on each other."""
    match = 0.0 if (point["flour"] == "spelt") == (point["raising"] == "yeast") else 0.4
    flour = {"wheat": 0.1, "spelt": 0.0, "rye": 0.5}[point["flour"]]
    sugar, minutes = point["sugar"] - 0.35 - 0.2 * (point["flour"] == "rye"), (point["minutes"] - 42) / 30
    return [match + flour + 3 * sugar**2 + minutes**2 + sugar * minutes]


DEVELOPMENT = {
    "schwefel-3": Problem(cube(3, -500.0, 500.0), schwefel),
    "griewank-4": Problem(cube(4, -12.0, 20.0), griewank),
    "michalewicz-5": Problem(cube(5, 0.0, math.pi), michalewicz),
    "shekel-4": Problem(cube(4, 0.0, 10.0), shekel),
    "dixon-price-4": Problem(cube(4, -10.0, 10.0), dixon_price),
    "powell-4": Problem(cube(4, -4.0, 5.0), powell),
    "exponential-valley-3": Problem(cube(3, -1.0, 1.0), exponential_valley),
    "steps-4": Problem(cube(4, 0.0, 1.0), steps),
    "hartmann-6-of-10": Problem(cube(10, 0.0, 1.0), hartmann_6),
    "hartmann-3-noisy": Problem(cube(3, 0.0, 1.0), hartmann_3, noise=0.3),
    "goldstein-price": Problem(cube(2, -2.0, 2.0), goldstein_price),
    "ripples-4": Problem(cube(4, 0.0, 1.0), ripples, noise=0.02),
    "coating": Problem(
        {
            "temperature": sg.Real(60, 180),
            "speed": sg.Real(0.01, 10, log=True),
            "layers": sg.Integer(1, 8),
            "resin": sg.Categorical(["epoxy", "acrylic", "silicone", "alkyd"]),
        },
        coating,
        noise=0.03,
    ),
    "cake": Problem(
        {
            "sugar": sg.Real(0.0, 1.0),
            "minutes": sg.Integer(20, 80),
            "flour": sg.Categorical(["wheat", "spelt", "rye"]),
            "raising": sg.Categorical(["yeast", "powder"]),
        },
        cake,
    ),
}


def zdt1(point: Point) -> list[float]:
    x = array(point)
    g = 1 + 9 * x[1:].mean()
    return [float(x[0]), float(g * (1 - (x[0] / g) ** 0.5))]


def bowls(point: Point) -> list[float]:
    x = array(point)
    return [float(((x - 0.2) ** 2).sum()), float((np.array([1, 2, 1]) * (x - 0.8) ** 2).sum())]


# With two objectives.
TRADE_OFFS = {
    "zdt1-3": Problem(cube(3, 0.0, 1.0), zdt1, num_objectives=2, reference=(1.1, 10.0)),
    "bowls-3": Problem(cube(3, 0.0, 1.0), bowls, num_objectives=2, reference=(2.0, 3.0)),
}


def typical_value(problem: Problem) -> float:
    """The median value of points drawn at random."""
    space: Any = sg.loops.ParameterSpace(problem.space)
    points = space.show(space.design(256, num_initial=1, num_before=0, seed=0))
    return float(np.median([problem.truth(point)[0] for point in points]))


def log_regret(name: str, value: float) -> float:
    """The logarithm of a regret, which stops to fall where it is good enough."""
    return math.log(max(value, 0.0) + _GOOD_ENOUGH * typical_value(DEVELOPMENT[name]))


def ramps(point: Point) -> list[float]:
    """Sum of stairs: plateaus joined by steep ramps, about a point that is no corner."""
    u = 6 * np.abs(array(point) - np.array([0.31, 0.62, 0.45, 0.74, 0.22, 0.55])[: len(point)])
    return [float((np.floor(u) + np.clip(5 * (u - np.floor(u)) - 4, 0, 1)).mean())]


def ramps_turned(point: Point) -> list[float]:
    u = 4 * np.abs(_turned(array(point) - np.array([0.31, 0.62, 0.45, 0.74, 0.22, 0.55]), 4))
    return [float((np.floor(u) + np.clip(5 * (u - np.floor(u)) - 4, 0, 1)).mean())]


def slopes(point: Point) -> list[float]:
    """Plateaus that are not quite flat, joined by two steep ramps for each input, the best of them within the cube."""
    r = np.abs(array(point) - np.array([0.31, 0.62, 0.45, 0.74, 0.22, 0.55])[: len(point)])
    ramps = 1 / (1 + np.exp(-40 * (r - 0.12))) + 1 / (1 + np.exp(-40 * (r - 0.36)))
    return [float((ramps + 0.2 * r).mean())]


def ellipsoid(point: Point) -> list[float]:
    x = _turned(array(point) - 0.4, 5)
    return [float((10 ** np.linspace(0, 4, len(x)) * x**2).sum())]


def needle(point: Point) -> list[float]:
    """A plateau with one wide hole, which few points of a design see."""
    distance = ((array(point) - np.array([0.72, 0.35, 0.6, 0.2])) ** 2).sum()
    return [float(1 - math.exp(-distance / (2 * 0.2**2)))]


def friedman(point: Point) -> list[float]:
    """Five of twenty inputs matter."""
    x = [point[f"x{j}"] for j in range(5)]
    return [10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4] + 10.0]


def cliff(point: Point) -> list[float]:
    """A bowl whose best part touches where evaluations fail."""
    x = array(point)
    return [float((x[0] - 0.8) ** 2 + (x[1] - 0.7) ** 2 + 0.5 * (x[2] - 0.3 * x[0]) ** 2)]


def _is_over_cliff(point: Point) -> bool:
    return point["x0"] + point["x1"] > 1.3


# By these, mechanisms against overconfidence and lost signals are chosen; written down before the first run.
HARD = {
    "ramps-6": Problem(cube(6, 0.0, 1.0), ramps),
    "ramps-turned-6": Problem(cube(6, 0.0, 1.0), ramps_turned),
    "slopes-6": Problem(cube(6, 0.0, 1.0), slopes),  # added when the two before turned out to be easy
    "ellipsoid-10": Problem(cube(10, -1.0, 1.0), ellipsoid),
    "hartmann-6-noise-.2": Problem(cube(6, 0.0, 1.0), hartmann_6, noise=0.2),
    "hartmann-6-noise-.5": Problem(cube(6, 0.0, 1.0), hartmann_6, noise=0.5),
    "needle-4-noisy": Problem(cube(4, 0.0, 1.0), needle, noise=0.1),
    "friedman-20-noisy": Problem(cube(20, 0.0, 1.0), friedman, noise=1.0),
    "cliff-3": Problem(cube(3, 0.0, 1.0), cliff, fails=_is_over_cliff, worst=2.0),
}
