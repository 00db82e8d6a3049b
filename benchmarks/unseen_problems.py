"""Twenty problems that no choice was made by: written down before the first run, and in no other table of ours.

All are to be minimized. Functions of the literature stand beside simulations and made problems of a laboratory: heavy
tails, counts, categories, failures, constraints, two objectives. They are run by `defaults.py --unseen` with 40
evaluations, one at a time, defaults throughout.
"""

import math
from typing import Any

import numpy as np
from default_problems import Point, Problem, array, cube

import streamgp as sg

__all__ = ["UNSEEN"]


def wing_weight(point: Point) -> list[float]:
    """Weight of the wing of a light aircraft, by Forrester's ten inputs."""
    area, fuel, ratio, sweep, pressure, taper, thickness, load, gross, paint = (
        low + (high - low) * u
        for u, (low, high) in zip(
            array(point),
            [
                (150, 200),
                (220, 300),
                (6, 10),
                (-10, 10),
                (16, 45),
                (0.5, 1),
                (0.08, 0.18),
                (2.5, 6),
                (1700, 2500),
                (0.025, 0.08),
            ],
            strict=True,
        )
    )
    cosine = math.cos(math.radians(sweep))
    weight = 0.036 * area**0.758 * fuel**0.0035 * (ratio / cosine**2) ** 0.6 * pressure**0.006 * taper**0.04
    return [weight * (100 * thickness / cosine) ** -0.3 * (load * gross) ** 0.49 + area * paint]


def robot_arm(point: Point) -> list[float]:
    """Distance of the hand of an arm of four joints from a cup."""
    u = np.array([point[f"x{j}"] for j in range(8)])
    angles, lengths = np.cumsum(2 * math.pi * u[:4]), u[4:]
    return [float(math.hypot((lengths * np.cos(angles)).sum() - 1.3, (lengths * np.sin(angles)).sum() + 0.6))]


_PLACES, _TIMES = np.array([0.0, 1.0, 2.5])[:, None], np.array([15.0, 30.0, 45.0, 60.0])[None, :]


def _spill(mass: float, diffusion: float, place: float, time: float) -> np.ndarray:
    """Concentration after two spills into a channel."""
    first = mass / np.sqrt(4 * math.pi * diffusion * _TIMES) * np.exp(-(_PLACES**2) / (4 * diffusion * _TIMES))
    later = np.maximum(_TIMES - time, 1e-9)
    second = (
        mass / np.sqrt(4 * math.pi * diffusion * later) * np.exp(-((_PLACES - place) ** 2) / (4 * diffusion * later))
    )
    return first + np.where(time < _TIMES, second, 0.0)


def environment(point: Point) -> list[float]:
    """Squared errors of a model of pollution, by Bliznyuk and others."""
    u = array(point)
    found = _spill(7 + 6 * u[0], 0.02 + 0.1 * u[1], 0.01 + 2.99 * u[2], 30.01 + 0.285 * u[3])
    return [float(((found - _spill(10, 0.07, 1.505, 30.1525)) ** 2).sum())]


def salomon(point: Point) -> list[float]:
    r = float(np.sqrt((array(point) ** 2).sum()))
    return [1 - math.cos(2 * math.pi * r) + 0.1 * r]


def brown(point: Point) -> list[float]:
    s = array(point) ** 2
    return [float((s[:-1] ** (s[1:] + 1) + s[1:] ** (s[:-1] + 1)).sum())]


def qing(point: Point) -> list[float]:
    x = array(point)
    return [float(((x**2 - np.arange(1, len(x) + 1)) ** 2).sum())]


def controller(point: Point) -> list[float]:
    """Integrated absolute error of a slow plant with a delay under a controller of three gains, to 20 s."""
    step, delay, total = 0.05, 10, 0.0
    y = v = integral = 0.0
    before, inputs = 1.0, [0.0] * delay
    for k in range(400):
        error = 1.0 - y
        integral = min(max(integral + step * error, -20.0), 20.0)
        inputs.append(
            min(max(point["p"] * error + point["i"] * integral + point["d"] * (error - before) / step, -10.0), 10.0)
        )
        before = error
        v += step * (inputs[k] - 1.4 * v - y)
        y += step * v
        total += step * min(abs(error), 10.0)
    return [total]


def bioreactor(point: Point) -> list[float]:
    """The negated product of a fed batch whose feed is set in four phases."""
    biomass, sugar, product, volume = 0.1, 5.0, 0.0, 1.0
    for k in range(400):
        feed = point[f"x{k // 100}"]
        growth = 0.5 * sugar / (0.3 + sugar + sugar**2 / 8)
        making = 0.08 * sugar / (0.1 + sugar + sugar**2 / 2)
        biomass, sugar, product, volume = (
            biomass + 0.05 * (growth * biomass - feed / volume * biomass),
            max(sugar + 0.05 * (-growth * biomass / 0.5 - making * biomass + feed / volume * (20 - sugar)), 0.0),
            product + 0.05 * (making * biomass - 0.01 * product - feed / volume * product),
            volume + 0.05 * feed,
        )
    return [-product * min(volume, 4.0)]


def _epidemic(rate: float, recovery: float, start: float) -> np.ndarray:
    sick, well, found = start, 1.0 - start, []
    for day in range(240):
        new = 0.25 * rate * sick * well
        well, sick = well - new, sick + new - 0.25 * recovery * sick
        if day % 20 == 19:
            found.append(math.log(max(sick, 1e-12)))
    return np.array(found)


def epidemic(point: Point) -> list[float]:
    """Misfit of three rates, all by their logarithm, to twelve reports of an epidemic."""
    error = _epidemic(point["rate"], point["recovery"], point["start"]) - _epidemic(0.5, 0.13, 2e-3)
    return [float((error**2).mean())]


def antenna(point: Point) -> list[float]:
    """The highest side lobe, in decibels, of an array whose five gaps are set."""
    places = np.concatenate([[0.0], np.cumsum(0.3 + 0.7 * array(point))])
    sines = np.linspace(-1.0, 1.0, 801)
    power = np.abs(np.exp(2j * math.pi * np.outer(sines, places)).mean(1)) ** 2
    return [float(10 * np.log10(power[np.abs(sines) > 0.28].max()))]


def townsend(point: Point) -> list[float]:
    """A ripple inside a heart-shaped region."""
    x, y = point["x0"], point["x1"]
    t = math.atan2(x, y)
    edge = 2 * math.cos(t) - 0.5 * math.cos(2 * t) - 0.25 * math.cos(3 * t) - 0.125 * math.cos(4 * t)
    return [-(math.cos((x - 0.1) * y) ** 2) - x * math.sin(3 * x + y), x**2 + y**2 - edge**2 - (2 * math.sin(t)) ** 2]


def keane(point: Point) -> list[float]:
    """Bumps whose best one is where a product is at its limit."""
    x = array(point)
    cosines = np.cos(x) ** 2
    bump = abs((cosines**2).sum() - 2 * cosines.prod()) / math.sqrt((np.arange(1, len(x) + 1) * x**2).sum() + 1e-9)
    return [float(-bump), float(0.75 - x.prod()), float(x.sum() - 7.5 * len(x))]


def fonseca(point: Point) -> list[float]:
    x = array(point)
    root = 1 / math.sqrt(len(x))
    return [float(1 - math.exp(-((x - root) ** 2).sum())), float(1 - math.exp(-((x + root) ** 2).sum()))]


def poloni(point: Point) -> list[float]:
    def parts(x: float, y: float) -> tuple[float, float]:
        first = 0.5 * math.sin(x) - 2 * math.cos(x) + math.sin(y) - 1.5 * math.cos(y)
        return first, 1.5 * math.sin(x) - math.cos(x) + 2 * math.sin(y) - 0.5 * math.cos(y)

    (a, b), (wanted_a, wanted_b) = parts(point["x0"], point["x1"]), parts(1.0, 2.0)
    second = (point["x0"] + 3) ** 2 + (point["x1"] + 1) ** 2
    return [1 + (wanted_a - a) ** 2 + (wanted_b - b) ** 2, second]


def catalyst(point: Point) -> list[float]:
    """Loss of yield; the best temperature depends on the metal, and the solvents on each other's base."""
    heat = {"nickel": 95, "palladium": 70, "copper": 120}[point["metal"]]
    price = {"nickel": 0.1, "palladium": 0.0, "copper": 0.25}[point["metal"]]
    match = {("water", "none"): 0.5, ("water", "amine"): 0.1, ("dioxane", "none"): 0.2, ("dioxane", "amine"): 0.0}
    excess = math.log10(point["loading"]) + 1.7
    return [
        price + match[point["solvent"], point["base"]] + ((point["temperature"] - heat) / 45) ** 2 + 0.3 * excess**2
    ]


def network(point: Point) -> list[float]:
    """Validation loss of a made network: rates that are too high diverge, and depth needs smaller ones."""
    rate, decay = math.log10(point["rate"]), math.log10(point["decay"])
    best = {"relu": -2.6, "tanh": -2.2, "gelu": -2.8}[point["activation"]] - 0.12 * point["layers"]
    over = rate - best
    base = {"relu": 0.02, "tanh": 0.08, "gelu": 0.0}[point["activation"]]
    width = 0.1 / math.sqrt(point["width"] / 32) + 0.0002 * point["width"] * point["layers"] / 10
    return [0.2 + base + width + 0.05 * over**2 + 1.5 / (1 + math.exp(-8 * (over - 0.6))) + 0.01 * (decay + 4) ** 2]


def melt(point: Point) -> list[float]:
    """Brittleness of a casting, which fails where it is too hot for its speed."""
    heat, speed, dwell = point["x0"], point["x1"], point["x2"]
    return [(1.1 - heat) ** 2 + 0.5 * (speed - 0.6) ** 2 + 0.4 * (dwell - 0.3 - 0.4 * speed) ** 2]


def _is_melt_failed(point: Point) -> bool:
    return point["x0"] + 0.5 * (1 - point["x1"]) ** 2 > 0.85


def defects(point: Point) -> list[float]:
    x = array(point)
    return [float(3 + 40 * abs(x[0] - 0.7) * (0.3 + x[1]) + 15 * (x[2] - 0.2 - 0.5 * x[1]) ** 2 + 6 * x[3])]


def assay(point: Point) -> list[float]:
    x = array(point)
    return [float(-math.exp(-6 * ((x - np.array([0.3, 0.75, 0.5, 0.2])) ** 2 * np.array([1, 2, 0.5, 1])).sum()))]


def welch(point: Point) -> list[float]:
    """Twenty inputs, some of which do nothing, by Welch and others."""
    x = array(point)  # by name: x0, x1, x10, ..., which is an order as good as any
    rest = 5 * x[11] / (1 + x[0]) + 5 * (x[3] - x[19]) ** 2 + x[4] + 40 * x[18] ** 3 - 5 * x[18]
    more = 0.05 * x[1] + 0.08 * x[2] - 0.03 * x[5] + 0.03 * x[6] - 0.09 * x[8] - 0.01 * x[9] - 0.07 * x[10]
    return [float(rest + more + 0.25 * x[12] ** 2 - 0.04 * x[13] + 0.06 * x[14] - 0.01 * x[16] - 0.03 * x[17])]


def _loguniform(**ranges: tuple[float, float]) -> dict[str, Any]:
    return {name: sg.Real(low, high, log=True) for name, (low, high) in ranges.items()}


UNSEEN = {
    "wing-weight-10": Problem(cube(10, 0.0, 1.0), wing_weight),
    "robot-arm-8": Problem(cube(8, 0.0, 1.0), robot_arm),
    "environment-4": Problem(cube(4, 0.0, 1.0), environment),
    "salomon-5": Problem(cube(5, -8.0, 12.0), salomon),
    "brown-5": Problem(cube(5, -1.0, 4.0), brown),
    "qing-5": Problem(cube(5, -5.0, 5.0), qing),
    "controller-3": Problem(_loguniform(p=(0.01, 10), i=(0.01, 10), d=(0.01, 10)), controller),
    "bioreactor-4": Problem(cube(4, 0.0, 0.4), bioreactor),
    "epidemic-3": Problem(_loguniform(rate=(0.05, 5), recovery=(0.02, 2), start=(1e-5, 0.1)), epidemic),
    "antenna-5": Problem(cube(5, 0.0, 1.0), antenna),
    "townsend-2": Problem(
        {"x0": sg.Real(-2.25, 2.5), "x1": sg.Real(-2.5, 1.75)}, townsend, num_constraints=1, worst=3.0
    ),
    "keane-4": Problem(cube(4, 0.0, 10.0), keane, num_constraints=2, worst=0.0),
    "fonseca-3": Problem(cube(3, -4.0, 4.0), fonseca, num_objectives=2, reference=(1.0, 1.0)),
    "poloni-2": Problem(cube(2, -math.pi, math.pi), poloni, num_objectives=2, reference=(60.0, 50.0)),
    "catalyst": Problem(
        {
            "temperature": sg.Real(40, 160),
            "loading": sg.Real(1e-3, 1, log=True),
            "metal": sg.Categorical(["nickel", "palladium", "copper"]),
            "solvent": sg.Categorical(["water", "dioxane"]),
            "base": sg.Categorical(["none", "amine"]),
        },
        catalyst,
        noise=0.05,
    ),
    "network": Problem(
        {
            "rate": sg.Real(1e-5, 1, log=True),
            "decay": sg.Real(1e-7, 1e-1, log=True),
            "width": sg.Integer(8, 512, log=True),
            "layers": sg.Integer(1, 8),
            "activation": sg.Categorical(["relu", "tanh", "gelu"]),
        },
        network,
        noise=0.01,
    ),
    "melt-3": Problem(cube(3, 0.0, 1.0), melt, noise=0.01, fails=_is_melt_failed, worst=1.5),
    "defects-4": Problem(cube(4, 0.0, 1.0), defects, is_count=True),
    "assay-4": Problem(cube(4, 0.0, 1.0), assay, noise=0.05, degrees=2.5),
    "welch-20": Problem(cube(20, -0.5, 0.5), welch, noise=0.5),
}
