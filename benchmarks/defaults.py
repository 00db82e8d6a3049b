"""Defaults against defaults: what a user gets who sets nothing.

The problems are declared here before the first run, and nothing is tuned on them. Each method proposes points one at a
time or in fours, and is judged by the true value at the point that it recommends: the best evaluated one by its own
means. Results are lines of JSON, one for each (problem, method, q, seed), so that a run can be taken up anywhere:

    python benchmarks/defaults.py --output defaults.jsonl --seeds 20
    python benchmarks/defaults.py --output defaults.jsonl --report
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

import streamgp as sg

BUDGETS = {1: 50, 4: 60}
METHODS = ("streamgp", "botorch", "tpe", "gpsampler", "random")
Point = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """A function to be minimised, and how it is observed.

    Attributes:
        space: Parameters by name.
        truth: The values without noise: objectives, and then constraints, which are kept at zero or below.
        num_objectives: How many of them are objectives.
        noise: Standard deviation of Gaussian noise on the objectives.
        is_count: Whether the objective is observed as a Poisson count.
        reference: Of the hypervolume, where there are two objectives.
    """

    space: dict[str, Any]
    truth: Callable[[Point], list[float]]
    num_objectives: int = 1
    noise: float = 0.0
    is_count: bool = False
    reference: tuple[float, float] | None = None

    def observe(self, point: Point, generator: np.random.Generator) -> list[float]:
        """Evaluate with noise."""
        values = self.truth(point)
        if self.is_count:
            return [float(generator.poisson(values[0]))]
        noise = self.noise * generator.standard_normal(self.num_objectives)
        return [*(v + e for v, e in zip(values, noise, strict=False)), *values[self.num_objectives :]]


def cube(num_dims: int, low: float, high: float) -> dict[str, Any]:
    return {f"x{j}": sg.Real(low, high) for j in range(num_dims)}


def array(point: Point) -> np.ndarray:
    return np.array([point[name] for name in sorted(point) if name.startswith("x")], dtype=float)


def levy(point: Point) -> list[float]:
    w = 1 + (array(point) - 1) / 4
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)).sum()
    end = (w[-1] - 1) ** 2 * (1 + np.sin(2 * math.pi * w[-1]) ** 2)
    return [float(np.sin(math.pi * w[0]) ** 2 + middle + end)]


def rosenbrock(point: Point) -> list[float]:
    x = array(point)
    return [float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())]


def ackley(point: Point) -> list[float]:
    x = array(point)
    far, wave = np.exp(-0.2 * np.sqrt((x**2).mean())), np.exp(np.cos(2 * math.pi * x).mean())
    return [float(20 + math.e - 20 * far - wave)]


def rastrigin(point: Point) -> list[float]:
    x = array(point)
    return [float(10 * len(x) + (x**2 - 10 * np.cos(2 * math.pi * x)).sum())]


def quadratic(point: Point) -> list[float]:
    x = array(point)
    return [float((np.arange(1, len(x) + 1) * (x - 0.3) ** 2).sum())]


def styblinski(point: Point) -> list[float]:
    x = array(point)
    return [float(0.5 * (x**4 - 16 * x**2 + 5 * x).sum() + 39.16617 * len(x))]


def rate(point: Point) -> list[float]:
    x = array(point)
    return [2 + 30 * (1 - math.exp(-4 * float(((x - 0.6) ** 2).sum())))]


def reactor(point: Point) -> list[float]:
    heat = ((point["temperature"] - 135) / 40) ** 2
    loading = (math.log10(point["loading"]) + 1.5) ** 2
    solvent = {"water": 1.0, "ethanol": 0.0, "toluene": 0.6}[point["solvent"]]
    return [heat + 0.3 * loading + solvent + 0.1 * abs(point["stirrers"] - 3)]


def forest(point: Point) -> list[float]:
    depth, trees = (point["depth"] - 7) / 5, math.log10(point["trees"]) - 2.3
    rule = {"gini": 0.05, "entropy": 0.0}[point["rule"]]
    return [0.1 + 0.2 * depth**2 + 0.1 * trees**2 + rule + 0.3 * (point["share"] - 0.4) ** 2 * (1 + depth**2)]


def constrained(point: Point) -> list[float]:
    x, y = point["x0"], point["x1"]
    first = 1.5 - x - 2 * y - 0.5 * math.sin(2 * math.pi * (x**2 - 2 * y))
    return [x + y, first, x**2 + y**2 - 1.5]


def branin_currin(point: Point) -> list[float]:
    a, b = 15 * point["x0"] - 5, 15 * point["x1"]
    branin = (b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6) ** 2
    branin += 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10
    x, y = point["x0"], max(point["x1"], 1e-9)
    currin = (1 - math.exp(-1 / (2 * y))) * (2300 * x**3 + 1900 * x**2 + 2092 * x + 60)
    return [branin, currin / (100 * x**3 + 500 * x**2 + 4 * x + 20)]


def zdt2(point: Point) -> list[float]:
    x = array(point)
    g = 1 + 9 * x[1:].mean()
    return [float(x[0]), float(g * (1 - (x[0] / g) ** 2))]


PROBLEMS = {
    "quadratic-6": Problem(cube(6, 0.0, 1.0), quadratic),  # smooth, without noise
    "levy-4": Problem(cube(4, -10.0, 10.0), levy),
    "styblinski-3": Problem(cube(3, -5.0, 5.0), styblinski),
    "rosenbrock-4": Problem(cube(4, -5.0, 10.0), rosenbrock),  # a valley
    "rastrigin-3": Problem(cube(3, -5.12, 5.12), rastrigin),  # rugged
    "ackley-5-noisy": Problem(cube(5, -10.0, 10.0), ackley, noise=0.5),
    "quadratic-3-noisy": Problem(cube(3, 0.0, 1.0), quadratic, noise=0.3),
    "counts": Problem(cube(3, 0.0, 1.0), rate, is_count=True),
    "reactor": Problem(
        {
            "temperature": sg.Real(80, 180),
            "loading": sg.Real(1e-4, 1, log=True),
            "stirrers": sg.Integer(1, 4),
            "solvent": sg.Categorical(["water", "ethanol", "toluene"]),
        },
        reactor,
        noise=0.05,
    ),
    "forest": Problem(
        {
            "depth": sg.Integer(1, 20),
            "trees": sg.Integer(10, 1000, log=True),
            "share": sg.Real(0.05, 1.0),
            "rule": sg.Categorical(["gini", "entropy"]),
        },
        forest,
    ),
    "constrained": Problem(cube(2, 0.0, 1.0), constrained),
    "branin-currin": Problem(cube(2, 0.0, 1.0), branin_currin, num_objectives=2, reference=(150.0, 10.0)),
    "zdt2": Problem(cube(4, 0.0, 1.0), zdt2, num_objectives=2, reference=(1.1, 10.0)),
}


def judge(problem: Problem, points: Sequence[Point]) -> float:
    """The true value of a recommended point, infinite where it is not feasible; or the negated hypervolume of a set."""
    values = [problem.truth(point) for point in points]
    k = problem.num_objectives
    kept = [v[:k] for v in values if all(c <= 1e-9 for c in v[k:])]
    if problem.reference is None:
        return min((v[0] for v in kept), default=math.inf)
    r0, r1 = problem.reference
    front, area, height = sorted(v for v in kept if v[0] < r0 and v[1] < r1), 0.0, r1
    for first, second in front:
        if second < height:
            area += (r0 - first) * (height - second)
            height = second
    return -area


def pick(problem: Problem, points: Sequence[Point], observed: Sequence[Sequence[float]]) -> list[Point]:
    """The best observed feasible point, which methods recommend that have no means of their own; or all of them."""
    k = problem.num_objectives
    if k > 1:
        return list(points)
    feasible = [i for i, y in enumerate(observed) if all(c <= 0 for c in y[k:])]
    best = min(feasible or range(len(points)), key=lambda i: observed[i][0])
    return [points[best]]


def run_streamgp(problem: Problem, q: int, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    likelihood = "poisson" if problem.is_count else "gaussian"
    num_constraints = len(problem.truth(sg.loops.ParameterSpace(problem.space).show(_first(problem))[0]))
    constraints = [sg.Constraint(upper=0.0)] * (num_constraints - problem.num_objectives)
    options: dict[str, Any] = {"maximize": False, "likelihood": likelihood}
    if problem.num_objectives > 1:
        options = {"objectives": [sg.Objective(f"f{j}", maximize=False) for j in range(problem.num_objectives)]}
    optimizer = sg.Optimizer(problem.space, constraints=constraints, seed=seed, **options)
    seconds: list[float] = []
    while len(optimizer.y) < BUDGETS[q]:
        began = time.perf_counter()
        points = optimizer.ask(q)
        seconds.append(time.perf_counter() - began)
        optimizer.tell(points, [problem.observe(point, generator) for point in points])
    best = optimizer.best()
    chosen = list(best.X) if problem.num_objectives > 1 else [best.X]
    return {"value": judge(problem, chosen), "evaluated": judge(problem, optimizer.X), "seconds": seconds}


def _first(problem: Problem) -> Tensor:
    return sg.loops.ParameterSpace(problem.space).design(1, num_initial=1, num_before=0, seed=0)


def run_botorch(problem: Problem, q: int, seed: int) -> dict[str, Any]:
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import SumMarginalLogLikelihood

    torch.manual_seed(seed)
    space, generator = sg.loops.ParameterSpace(problem.space), np.random.default_rng(seed)
    d, k = space.num_dims, problem.num_objectives
    box = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    X = space.design(min(2 * (d + 1), 30), num_initial=1, num_before=0, seed=seed)
    observed = [problem.observe(point, generator) for point in space.show(X)]
    seconds: list[float] = []
    while len(X) < BUDGETS[q]:
        began = time.perf_counter()
        Y = -torch.tensor(observed, dtype=torch.float64)
        model = ModelListGP(*(SingleTaskGP(X, Y[:, j : j + 1]) for j in range(Y.shape[-1])))
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        # Y is negated, so that a constraint, kept at zero or below, is negative where minus its output is.
        limits = [lambda s, j=j: -s[..., j] for j in range(k, Y.shape[-1])] or None
        if k == 1:
            objective = GenericMCObjective(lambda s, X=None: s[..., 0])
            function: Any = qLogNoisyExpectedImprovement(model, X, objective=objective, constraints=limits)
        else:
            objective = GenericMCMultiOutputObjective(lambda s, X=None: s[..., :k])
            reference = [-r for r in problem.reference or ()]
            function = qLogNoisyExpectedHypervolumeImprovement(
                model, reference, X, objective=objective, constraints=limits, prune_baseline=True
            )
        new, _ = optimize_acqf(function, box, q=q, num_restarts=5, raw_samples=128, sequential=True)
        new = space.inputs(new)
        seconds.append(time.perf_counter() - began)
        observed += [problem.observe(point, generator) for point in space.show(new)]
        X = torch.cat([X, new])
    points = space.show(X)
    chosen = pick(problem, points, observed)
    return {"value": judge(problem, chosen), "evaluated": judge(problem, points), "seconds": seconds}


def run_optuna(problem: Problem, q: int, seed: int, *, method: str) -> dict[str, Any]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    generator, k = np.random.default_rng(seed), problem.num_objectives

    def constraints(trial: Any) -> Sequence[float]:
        return trial.user_attrs["constraints"]

    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, constraints_func=constraints),
        "gpsampler": lambda: optuna.samplers.GPSampler(seed=seed, constraints_func=constraints),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    study = optuna.create_study(directions=["minimize"] * k, sampler=samplers[method]())
    points: list[Point] = []
    observed: list[list[float]] = []
    seconds: list[float] = []
    while len(points) < BUDGETS[q]:
        began = time.perf_counter()
        trials = [study.ask() for _ in range(q)]
        asked = [{name: _suggest(trial, name, one) for name, one in problem.space.items()} for trial in trials]
        seconds.append(time.perf_counter() - began)
        for trial, point in zip(trials, asked, strict=True):
            y = problem.observe(point, generator)
            trial.set_user_attr("constraints", y[k:])
            study.tell(trial, y[:k])
            points.append(point)
            observed.append(y)
    chosen = pick(problem, points, observed)
    return {"value": judge(problem, chosen), "evaluated": judge(problem, points), "seconds": seconds}


def _suggest(trial: Any, name: str, one: Any) -> Any:
    if isinstance(one, sg.Categorical):
        return trial.suggest_categorical(name, list(one.choices))
    if isinstance(one, sg.Integer):
        return trial.suggest_int(name, one.low, one.high, log=one.log)
    return trial.suggest_float(name, one.low, one.high, log=one.log)


def run(problem: str, method: str, q: int, seed: int) -> dict[str, Any]:
    if method == "streamgp":
        return run_streamgp(PROBLEMS[problem], q, seed)
    if method == "botorch":
        return run_botorch(PROBLEMS[problem], q, seed)
    return run_optuna(PROBLEMS[problem], q, seed, method=method)


def report(lines: Sequence[dict[str, Any]]) -> None:
    """Print mean values and seconds, and mean ranks over problems with intervals from the t distribution over seeds."""
    cells: dict[tuple[str, int, int], dict[str, float]] = {}
    for line in lines:
        cells.setdefault((line["problem"], line["q"], line["seed"]), {})[line["method"]] = line["value"]
    for (problem, q), method in ((pq, m) for pq in sorted({key[:2] for key in cells}) for m in METHODS):
        found = [one[method] for key, one in cells.items() if key[:2] == (problem, q) and method in one]
        spent = [
            np.median(line["seconds"][len(line["seconds"]) // 2 :])
            for line in lines
            if (line["problem"], line["q"], line["method"]) == (problem, q, method)
        ]
        if found:
            error = np.std(found, ddof=1) / len(found) ** 0.5 if len(found) > 1 else math.nan
            print(
                f"{problem:20s} q={q} {method:10s} {np.mean(found):12.4g} ± {error:.2g}  {np.mean(spent):.3f} s per ask"
            )
    ranks: dict[str, dict[int, list[float]]] = {method: {} for method in METHODS}
    for (_, _, seed), one in cells.items():
        if set(one) == set(METHODS):
            for method, rank in zip(METHODS, stats.rankdata([one[m] for m in METHODS]), strict=True):
                ranks[method].setdefault(seed, []).append(float(rank))
    for method, by_seed in ranks.items():
        means = [float(np.mean(values)) for values in by_seed.values()]
        if len(means) > 1:
            half = stats.t.ppf(0.975, len(means) - 1) * np.std(means, ddof=1) / len(means) ** 0.5
            print(f"mean rank of {method:10s} {np.mean(means):.2f} ± {half:.2f} ({len(means)} seeds)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("defaults.jsonl"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--batches", default="1,4")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = options.output.read_text().splitlines() if options.output.exists() else []
    lines = [json.loads(line) for line in text]
    if options.report:
        report(lines)
        return
    done = {(line["problem"], line["method"], line["q"], line["seed"]) for line in lines}
    for seed in range(options.seeds):
        for q in map(int, options.batches.split(",")):
            for problem in options.problems.split(","):
                for method in options.methods.split(","):
                    if (problem, method, q, seed) in done:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        outcome = run(problem, method, q, seed)
                    line = {"problem": problem, "method": method, "q": q, "seed": seed, **outcome}
                    with options.output.open("a") as file:
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
