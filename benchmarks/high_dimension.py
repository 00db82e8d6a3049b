"""Kernels in 60 dimensions: the rover, 30 initial points and then batches of 10.

    python benchmarks/high_dimension.py --output FILE [--methods spherical_linear rbf matern botorch] [--seeds 3]
                                        [--budget 1000]

`sg.Optimizer` with a kernel by name and else its defaults, and BoTorch's `SingleTaskGP` with qLogEI, one point of a
batch after the other. All start from the same points of a scrambled Sobol sequence. Reported, of each (method, seed):
the largest true reward of evaluated points, and seconds of one ask, in the median. Finished units are lines of JSON,
and are not run again.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from scipy import stats
from torch import Tensor
from torch.quasirandom import SobolEngine

import streamgp as sg
from paper.problems import Rover

NUM_INITIAL, BATCH = 30, 10
KERNELS = ("spherical_linear", "rbf", "matern")
METHODS = (*KERNELS, "botorch")
Suggest = Callable[[Tensor, Tensor], Tensor]


def streamgp_method(kernel: str, problem: Any, seed: int) -> Suggest:
    optimizer = sg.Optimizer(problem.bounds, kernel=kernel, num_initial=NUM_INITIAL, seed=seed)
    told = 0

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        nonlocal told
        optimizer.tell(X[told:], y[told:])
        told = len(X)
        points: Tensor = optimizer.ask(BATCH)
        return points

    return suggest


def botorch_method(problem: Any, seed: int) -> Suggest:
    from botorch.acquisition.logei import qLogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        model = SingleTaskGP(X, y.unsqueeze(-1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        function = qLogExpectedImprovement(model, y.max())
        return optimize_acqf(function, problem.bounds, q=BATCH, num_restarts=5, raw_samples=128, sequential=True)[0]

    return suggest


def run(method: str, seed: int, budget: int) -> dict[str, Any]:
    problem, generator = Rover(), torch.Generator().manual_seed(seed)
    suggest = botorch_method(problem, seed) if method == "botorch" else streamgp_method(method, problem, seed)
    X = SobolEngine(problem.dim, scramble=True, seed=seed).draw(NUM_INITIAL, dtype=torch.float64)
    y = problem.observe(X, generator)
    seconds = []
    while len(X) < budget:
        began = time.perf_counter()
        new = suggest(X, y)
        seconds.append(time.perf_counter() - began)
        X, y = torch.cat([X, new]), torch.cat([y, problem.observe(new, generator)])
    best = problem(X).cummax(0).values[NUM_INITIAL - 1 :: BATCH]
    line = {"method": method, "seed": seed, "budget": budget, "reward": float(best[-1])}
    return {**line, "best": best.tolist(), "seconds": statistics.median(seconds)}


def report(lines: list[dict[str, Any]], budget: int) -> None:
    for method in METHODS:
        rows = [one for one in lines if one["method"] == method and one["budget"] == budget]
        if rows:
            rewards, n = [one["reward"] for one in rows], len(rows)
            half = stats.t.ppf(0.975, n - 1) * statistics.stdev(rewards) / n**0.5 if n > 1 else float("nan")
            spent = statistics.median(one["seconds"] for one in rows)
            print(f"{method:18s} {statistics.mean(rewards):6.2f} ± {half:.2f} ({n} seeds)  {spent:.2f} s per ask")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="file of finished units")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(row) for row in options.output.read_text().splitlines()] if options.output.exists() else []
    done = {(one["method"], one["seed"], one["budget"]) for one in lines}
    for seed in range(options.seeds):
        for method in options.methods:
            if (method, seed, options.budget) not in done:
                lines.append(run(method, seed, options.budget))
                with options.output.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
                print(method, seed, f"{lines[-1]['reward']:.3f}", f"{lines[-1]['seconds']:.2f} s", flush=True)
    report(lines, options.budget)


if __name__ == "__main__":
    main()
