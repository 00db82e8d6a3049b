"""Sources with a cost: what the best point costs with cheap sources, and without.

    python benchmarks/sources.py --output FILE [--problems ...] [--methods ...] [--seeds 3]

Five problems to be maximized: augmented Branin and Hartmann6, whose last input is the fidelity, at fidelity 0 and 1;
Currin's function beside its smoothed one; and two made families, drawn anew for each seed: functions whose cheap
sources are off by a little, and functions whose cheap source has nothing to do with them. A method spends the cost of
15 measurements of the target. Recorded, about twice for each cost of the target: what was spent, and the regret of the
point that the method recommends.

streamgp   `sg.Optimizer(sources=...)`
alone      `sg.Optimizer` on the target
botorch    `SingleTaskMultiFidelityGP` and `qMultiFidelityKnowledgeGradient` with inverse costs, as the tutorial has it

Reported: the cost at which each method stays at the goal, which is the median of what `alone` ends with, on average
over seeds; runs that never do count as the whole budget. Finished units are lines of JSON, and are not run again.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.interpolate import RBFInterpolator
from scipy.optimize import minimize
from torch import Tensor

import streamgp as sg

NUM_TARGETS = 15
METHODS = ("streamgp", "alone", "botorch")


@dataclass(frozen=True)
class Case:
    """A function of the unit cube by source, the last of which is the target; with its largest value."""

    num_dims: int
    costs: dict[str, float]
    value: Callable[[np.ndarray, str], float]
    largest: float


def branin(seed: int) -> Case:
    def value(u: np.ndarray, source: str) -> float:
        x, y, fidelity = 15 * u[0] - 5, 15 * u[1], float(source == "target")
        b = 5.1 / (4 * math.pi**2) - 0.1 * (1 - fidelity)
        wave = 10 * (1 - 1 / (8 * math.pi)) * math.cos(x)
        return -((y - b * x**2 + 5 * x / math.pi - 6) ** 2 + wave + 10)

    return Case(2, {"cheap": 1.0, "target": 10.0}, value, -0.397887)


_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(seed: int) -> Case:
    def value(u: np.ndarray, source: str) -> float:
        heights = np.array([1.0 - 0.1 * (source != "target"), 1.2, 3.0, 3.2])
        return float(heights @ np.exp(-(_A * (u - _P) ** 2).sum(1)))

    return Case(6, {"cheap": 1.0, "target": 10.0}, value, 3.32237)


def _currin(x: float, y: float) -> float:
    factor = 1 - math.exp(-1 / (2 * max(y, 1e-9)))
    return factor * (2300 * x**3 + 1900 * x**2 + 2092 * x + 60) / (100 * x**3 + 500 * x**2 + 4 * x + 20)


def currin(seed: int) -> Case:
    def value(u: np.ndarray, source: str) -> float:
        if source == "target":
            return _currin(*u)
        near = [(u[0] + 0.05, u[1] + 0.05), (u[0] + 0.05, max(u[1] - 0.05, 0)), (u[0] - 0.05, u[1] + 0.05)]
        return 0.25 * sum(_currin(*one) for one in [*near, (u[0] - 0.05, max(u[1] - 0.05, 0))])

    return Case(2, {"cheap": 1.0, "target": 10.0}, value, 13.7987)


def _drawn(seed: int, number: int) -> Callable[[np.ndarray], float]:
    """A smooth function of four inputs with some bumps."""
    rng = np.random.default_rng([seed, number])
    function = RBFInterpolator(
        rng.random((60, 4)), rng.standard_normal(60), kernel="gaussian", epsilon=1.6, smoothing=0.3
    )
    return lambda u: float(function(u[None])[0])


def made(seed: int, *, is_good: bool) -> Case:
    truth, other = _drawn(seed, 0), _drawn(seed, 1)
    points = np.random.default_rng(0).random((4000, 4))
    found = np.array([truth(one) for one in points])
    best = max(-minimize(lambda u: -truth(u), points[i], bounds=[(0, 1)] * 4).fun for i in found.argsort()[-5:])
    spread = float(found.std())
    off = float(np.std([other(one) for one in points[:500]]))

    def value(u: np.ndarray, source: str) -> float:
        if source == "target":
            return truth(u)
        share = {"rough": 0.4, "fine": 0.15}.get(source)
        return other(u) if share is None else truth(u) + share * spread / off * other(u)

    costs = {"rough": 1.0, "fine": 5.0, "target": 30.0} if is_good else {"lying": 5.0, "target": 30.0}
    return Case(4, costs, value, float(best))


CASES: dict[str, Callable[[int], Case]] = {
    "branin": branin,
    "hartmann-6": hartmann,
    "currin": currin,
    "good": lambda seed: made(seed, is_good=True),
    "lying": lambda seed: made(seed, is_good=False),
}


def _point(setting: Any, num_dims: int) -> np.ndarray:
    return np.array([setting[f"x{j}"] for j in range(num_dims)])


def run_streamgp(case: Case, seed: int, *, is_alone: bool) -> dict[str, Any]:
    space = {f"x{j}": sg.Real(0.0, 1.0) for j in range(case.num_dims)}
    options: dict[str, Any] = {} if is_alone else {"sources": case.costs, "target": "target"}
    optimizer = sg.Optimizer(space, seed=seed, **options)
    spent, shown, trace, seconds = 0.0, 0.0, [], []
    while True:
        began = time.perf_counter()
        (setting,) = optimizer.ask()
        seconds.append(time.perf_counter() - began)
        source = setting.get("source", "target")
        if spent + case.costs[source] > NUM_TARGETS * case.costs["target"]:
            break
        optimizer.tell([setting], [case.value(_point(setting, case.num_dims), source)])
        spent += case.costs[source]
        if spent >= shown + 0.5 * case.costs["target"]:
            shown = spent
            regret = case.largest - case.value(_point(optimizer.best().X, case.num_dims), "target")
            trace.append((round(spent, 3), regret))
    return {"trace": trace, "seconds": float(np.median(seconds[len(seconds) // 2 :]))}


def run_botorch(case: Case, seed: int) -> dict[str, Any]:
    from botorch.acquisition import PosteriorMean
    from botorch.acquisition.cost_aware import InverseCostWeightedUtility
    from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
    from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
    from botorch.acquisition.utils import project_to_target_fidelity
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskMultiFidelityGP
    from botorch.models.cost import AffineFidelityCostModel
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim import optimize_acqf
    from botorch.optim.optimize import optimize_acqf_mixed
    from gpytorch.mlls import ExactMarginalLogLikelihood
    from torch.quasirandom import SobolEngine

    torch.manual_seed(seed)
    d, names = case.num_dims, list(case.costs)
    levels = np.linspace(0.0, 1.0, len(names)).tolist()
    low, high = case.costs[names[0]], case.costs["target"]
    cost_model = AffineFidelityCostModel(fidelity_weights={d: high - low}, fixed_cost=low)
    utility = InverseCostWeightedUtility(cost_model=cost_model)
    bounds = torch.tensor([[0.0] * (d + 1), [1.0] * (d + 1)], dtype=torch.float64)

    def project(X: Tensor) -> Tensor:
        return project_to_target_fidelity(X, target_fidelities={d: 1.0})

    settings = SobolEngine(d, scramble=True, seed=seed).draw(2 * (d + 1), dtype=torch.float64)
    rows = [[*one, level] for j, one in enumerate(settings.tolist()) for level in levels if level < 1 or j <= d]
    spent, trace, seconds, X, y = 0.0, [], [], torch.empty(0, d + 1, dtype=torch.float64), []
    while True:
        if rows:
            row = rows.pop(0)
        else:
            began = time.perf_counter()
            model = SingleTaskMultiFidelityGP(
                X,
                torch.tensor(y, dtype=torch.float64).unsqueeze(-1),
                outcome_transform=Standardize(1),
                data_fidelities=[d],
            )
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            at_target = FixedFeatureAcquisitionFunction(PosteriorMean(model), d=d + 1, columns=[d], values=[1.0])
            best, value = optimize_acqf(at_target, bounds[:, :-1], q=1, num_restarts=5, raw_samples=128)
            if len(trace) or spent:
                regret = case.largest - case.value(best[0].numpy(), "target")
                trace.append((round(spent, 3), regret))
            function = qMultiFidelityKnowledgeGradient(
                model, num_fantasies=32, current_value=value, cost_aware_utility=utility, project=project
            )
            fixed = [{d: level} for level in levels]
            found, _ = optimize_acqf_mixed(
                function,
                bounds,
                q=1,
                fixed_features_list=fixed,
                num_restarts=3,
                raw_samples=64,
                options={"batch_limit": 3, "maxiter": 60},
            )
            row = found[0].tolist()
            seconds.append(time.perf_counter() - began)
        source = names[int(np.argmin([abs(row[-1] - level) for level in levels]))]
        if spent + case.costs[source] > NUM_TARGETS * case.costs["target"]:
            break
        spent += case.costs[source]
        X = torch.cat([X, torch.tensor([row], dtype=torch.float64)])
        y.append(case.value(np.array(row[:-1]), source))
    return {"trace": trace, "seconds": float(np.median(seconds)) if seconds else math.nan}


def cost_to_reach(trace: list[tuple[float, float]], goal: float, budget: float) -> float:
    """Cost from which on the regret stays at the goal or below."""
    above = [spent for spent, regret in trace if regret > goal]
    after = [spent for spent, _ in trace if not above or spent > above[-1]]
    return after[0] if after else budget


def report(lines: list[dict[str, Any]]) -> None:
    for problem in CASES:
        runs = {m: [one for one in lines if (one["problem"], one["method"]) == (problem, m)] for m in METHODS}
        if not runs["alone"]:
            continue
        goal = float(np.median([one["trace"][-1][1] for one in runs["alone"]]))
        budget = NUM_TARGETS * CASES[problem](0).costs["target"]
        costs = {m: [cost_to_reach(one["trace"], goal, budget) for one in each] for m, each in runs.items() if each}
        print(f"{problem}: goal {goal:.3g}, budget {budget:g}")
        for method, found in costs.items():
            final = np.median([one["trace"][-1][1] for one in runs[method]])
            share = np.mean(found) / np.mean(costs["alone"])
            seconds = np.median([one["seconds"] for one in runs[method]])
            print(
                f"  {method:9s} cost {np.mean(found):7.1f}, {share:5.2f} of alone ({len(found)} seeds), "
                f"final regret {final:.3g}, {seconds:.2f} s per ask"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/sources.jsonl"))
    parser.add_argument("--problems", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="only report what is there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(row) for row in options.output.read_text().splitlines()] if options.output.exists() else []
    done = {(one["problem"], one["method"], one["seed"]) for one in lines}
    for seed in range(0 if options.report else options.seeds):
        for method in options.methods:
            for problem in options.problems:
                if (problem, method, seed) in done:
                    continue
                case = CASES[problem](seed)
                if method == "botorch":
                    result = run_botorch(case, seed)
                else:
                    result = run_streamgp(case, seed, is_alone=method == "alone")
                lines.append({"problem": problem, "method": method, "seed": seed, **result})
                with options.output.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
                print(problem, method, seed, f"{result['trace'][-1][1]:.4g}", f"{result['seconds']:.2f} s", flush=True)
    report(lines)


if __name__ == "__main__":
    main()
