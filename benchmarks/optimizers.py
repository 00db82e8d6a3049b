"""Optimizers side by side: noisy and counted Hartmann6 after 60 evaluations, and rover to 2000.

    python benchmarks/optimizers.py --output FILE [--problems hartmann poisson rover step] [--methods ...]
                                    [--seeds 10] [--jobs 2] [--quick]

A unit is a problem, a method and a seed. Finished units are lines of JSON in the file, and are not run again: stop at
any time, and go on with the same command. A unit that fails is shown, and left for the next time. Each has one thread.

hartmann   Hartmann6, Gaussian noise of standard deviation 0.5, no constraint; 12 shared initial points of a scrambled
           Sobol sequence with shared outcomes, then 16 batches of 3
poisson    the same with counts of rate exp(f)
rover      d = 60; TuRBO with 200 initial points and batches of 100, to 2000 evaluations
step       one TuRBO step (fit and ask for 100 points) on 2000 evaluations of rover, from the hyperparameters of 500

Reported, as median with a 95 % interval from order statistics over seeds (ranks of the binomial distribution; the whole
range where there are fewer than six seeds):

    recommended   true value of the point that the method recommends: the evaluated point of best posterior mean; the
                  best observed one for Optuna, random search and TuRBO
    evaluated     largest true value of all evaluated points
    seconds       of one step, fit and suggestion together; the median of a run's steps
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import binom
from torch import Tensor
from torch.quasirandom import SobolEngine

import streamgp as sg
from paper.problems import Hartmann6, PoissonHartmann6, Rover
from paper.problems.base import AbstractProblem

NUM_INITIAL, BATCH, BUDGET = 12, 3, 60
TURBO_INITIAL, TURBO_BATCH, TURBO_BUDGET = 200, 100, 2000
SMALL = ("qkg", "lookahead_thompson", "botorch", "tpe", "gpsampler", "random")
TURBO = ("thompson-sparse", "lookahead_thompson-sparse", "thompson-exact", "lookahead_thompson-exact")
METHODS = {"hartmann": SMALL, "poisson": (*SMALL, "botorch-log"), "rover": TURBO, "step": TURBO}
PROBLEMS: dict[str, AbstractProblem] = {
    "hartmann": Hartmann6(is_constrained=False),
    "poisson": PoissonHartmann6(is_constrained=False),
    "rover": Rover(),
    "step": Rover(),
}
# What a method sees: points, their outcomes, and a way to recommend; `Suggest` takes the data so far.
Suggest = Callable[[Tensor, Tensor], Tensor]
Recommend = Callable[[Tensor, Tensor], Tensor]
console = Console(width=110)


def initial_design(problem: AbstractProblem, seed: int) -> Tensor:
    return SobolEngine(problem.dim, scramble=True, seed=seed).draw(NUM_INITIAL, dtype=torch.float64)


def best_observed(X: Tensor, y: Tensor) -> Tensor:
    return X[y.argmax()]


def streamgp_method(name: str, problem_name: str, seed: int) -> tuple[Suggest, Recommend]:
    likelihood = "poisson" if problem_name == "poisson" else "gaussian"
    bounds = PROBLEMS[problem_name].bounds
    optimizer = sg.Optimizer(bounds, acquisition=name, likelihood=likelihood, num_initial=NUM_INITIAL, seed=seed)
    told = 0

    def catch_up(X: Tensor, y: Tensor) -> None:
        nonlocal told
        optimizer.tell(X[told:], y[told:])
        told = len(X)

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        catch_up(X, y)
        return optimizer.ask(BATCH)

    def recommend(X: Tensor, y: Tensor) -> Tensor:
        catch_up(X, y)
        return optimizer.best().X

    return suggest, recommend


def botorch_method(problem_name: str, seed: int, *, is_logarithmic: bool) -> tuple[Suggest, Recommend]:
    """The rival as its documentation has it: an exact GP, and noisy expected improvement by its logarithm."""
    from botorch.acquisition import qLogNoisyExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    bounds = PROBLEMS[problem_name].bounds
    torch.manual_seed(seed)

    def fitted(X: Tensor, y: Tensor) -> SingleTaskGP:
        model = SingleTaskGP(X, (y.log1p() if is_logarithmic else y).unsqueeze(-1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        acquisition = qLogNoisyExpectedImprovement(fitted(X, y), X)
        return optimize_acqf(acquisition, bounds, q=BATCH, num_restarts=10, raw_samples=512, sequential=True)[0]

    def recommend(X: Tensor, y: Tensor) -> Tensor:
        return X[fitted(X, y).posterior(X).mean.detach().argmax()]

    return suggest, recommend


def optuna_method(name: str, problem_name: str, seed: int) -> tuple[Suggest, Recommend]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    problem = PROBLEMS[problem_name]
    sampler = optuna.samplers.TPESampler(seed=seed) if name == "tpe" else optuna.samplers.GPSampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    names = [f"x{j}" for j in range(problem.dim)]
    space: Any = {one: optuna.distributions.FloatDistribution(0.0, 1.0) for one in names}
    waiting: list[optuna.Trial] = []

    def suggest(X: Tensor, y: Tensor) -> Tensor:
        if not study.trials:
            for x, value in zip(X.tolist(), y.tolist(), strict=True):
                params = dict(zip(names, x, strict=True))
                study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=value))
        for trial, value in zip(waiting, y[len(y) - len(waiting) :].tolist(), strict=True):
            study.tell(trial, value)
        waiting[:] = [study.ask(space) for _ in range(BATCH)]
        return torch.tensor([[trial.params[one] for one in names] for trial in waiting], dtype=torch.float64)

    return suggest, best_observed


def random_method(problem_name: str, seed: int) -> tuple[Suggest, Recommend]:
    generator, d = torch.Generator().manual_seed(seed), PROBLEMS[problem_name].dim
    return lambda X, y: torch.rand(BATCH, d, generator=generator, dtype=torch.float64), best_observed


def make(method: str, problem_name: str, seed: int) -> tuple[Suggest, Recommend]:
    if method in ("tpe", "gpsampler"):
        return optuna_method(method, problem_name, seed)
    if method == "random":
        return random_method(problem_name, seed)
    if method.startswith("botorch"):
        return botorch_method(problem_name, seed, is_logarithmic=method == "botorch-log")
    return streamgp_method(method, problem_name, seed)


def run_small(problem_name: str, method: str, seed: int, *, budget: int) -> dict[str, Any]:
    problem, generator = PROBLEMS[problem_name], torch.Generator().manual_seed(seed)
    suggest, recommend = make(method, problem_name, seed)
    X = initial_design(problem, seed)
    y = problem.observe(X, generator)
    seconds = []
    while len(X) < budget:
        began = time.perf_counter()
        new = suggest(X, y)
        seconds.append(time.perf_counter() - began)
        X, y = torch.cat([X, new]), torch.cat([y, problem.observe(new, generator)])
    recommended = float(problem(recommend(X, y).unsqueeze(0)))
    return {"recommended": recommended, "evaluated": float(problem(X).max()), "seconds": seconds}


def turbo(method: str, seed: int, num_initial: int) -> sg.TurboOptimizer:
    acquisition, model = method.split("-")
    bounds = PROBLEMS["rover"].bounds
    return sg.TurboOptimizer(bounds, acquisition=acquisition, model=model, num_initial=num_initial, seed=seed)


def run_rover(method: str, seed: int, *, budget: int) -> dict[str, Any]:
    problem, generator = PROBLEMS["rover"], torch.Generator().manual_seed(seed)
    optimizer = turbo(method, seed, TURBO_INITIAL)
    seconds, best = [], []
    while len(optimizer.y) < budget:
        began = time.perf_counter()
        X = optimizer.ask(TURBO_BATCH)
        if len(optimizer.y) >= TURBO_INITIAL:
            seconds.append(time.perf_counter() - began)
        optimizer.tell(X, problem.observe(X, generator))
        best.append(float(optimizer.y.max()))
    recommended = float(problem(optimizer.best().X.unsqueeze(0)))
    evaluated = float(problem(optimizer.X).max())
    # Where all evaluations were steps without a new run, the last step had the whole budget to learn from.
    runs = {"num_runs": optimizer.num_runs, "last_seconds": seconds[-1] if seconds else None, "best": best}
    return {"recommended": recommended, "evaluated": evaluated, "seconds": seconds, **runs}


def run_step(method: str, seed: int, *, budget: int) -> dict[str, Any]:
    """Time one step on given data, half of it near the best of the other half, as in a trust region."""
    problem, generator = PROBLEMS["step"], torch.Generator().manual_seed(seed)
    first = budget // 4
    X = torch.rand(budget, problem.dim, generator=generator, dtype=torch.float64)
    center = X[problem(X[:first]).argmax()]
    near = center + 0.1 * torch.randn(budget // 2, problem.dim, generator=generator, dtype=torch.float64)
    X[budget // 2 :] = near.clamp(0.0, 1.0)
    y = problem.observe(X, generator)
    optimizer = turbo(method, seed, first)
    optimizer.tell(X[:first], y[:first])
    optimizer.ask(1)
    optimizer.tell(X[first:], y[first:])
    began = time.perf_counter()
    optimizer.ask(TURBO_BATCH)
    return {"seconds": [time.perf_counter() - began]}


def run(problem_name: str, method: str, seed: int, is_quick: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if problem_name in ("hartmann", "poisson"):
        result = run_small(problem_name, method, seed, budget=18 if is_quick else BUDGET)
    elif problem_name == "rover":
        result = run_rover(method, seed, budget=400 if is_quick else TURBO_BUDGET)
    else:
        result = run_step(method, seed, budget=400 if is_quick else TURBO_BUDGET)
    return {"problem": problem_name, "method": method, "seed": seed, "is_quick": is_quick, **result}


def finished(output: Path, is_quick: bool) -> list[dict[str, Any]]:
    lines = output.read_text().splitlines() if output.exists() else []
    return [result for line in lines if (result := json.loads(line))["is_quick"] == is_quick]


def units(arguments: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Seed by seed, so that a table of few seeds is there early."""
    done = {(r["problem"], r["method"], r["seed"]) for r in finished(arguments.output, arguments.quick)}
    for seed in range(arguments.seeds):
        for problem in arguments.problems:
            for method in METHODS[problem]:
                is_asked = arguments.methods is None or method in arguments.methods
                if is_asked and (problem, method, seed) not in done:
                    yield problem, method, seed


def interval(values: list[float]) -> str:
    """The median, and the order statistics between which it lies with a probability of 95 %."""
    ordered, n = sorted(values), len(values)
    below = int(binom.ppf(0.025, n, 0.5)) if n >= 6 else 1
    low, high = ordered[max(below, 1) - 1], ordered[n - max(below, 1)]
    return f"{statistics.median(ordered):.3g} [{low:.3g}, {high:.3g}]"


def show(results: list[dict[str, Any]]) -> None:
    for problem in METHODS:
        table = Table("method", "seeds", "recommended", "evaluated", "seconds", title=problem)
        for method in METHODS[problem]:
            rows = [r for r in results if (r["problem"], r["method"]) == (problem, method)]
            if rows:
                keys = ("recommended", "evaluated")
                values = [interval([r[key] for r in rows]) if key in rows[0] else "" for key in keys]
                seconds = interval([statistics.median(r["seconds"]) for r in rows])
                table.add_row(method, str(len(rows)), *values, seconds)
        if table.rows:
            console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("benchmarks/results/optimizers.jsonl"),
        help="file of finished units, a line of JSON each",
    )
    parser.add_argument("--problems", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--quick", action="store_true", help="a few evaluations, to see that everything runs")
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # for the processes
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.jobs, mp_context=context) as pool:
        waiting = {pool.submit(run, *unit, arguments.quick): unit for unit in units(arguments)}
        for number, future in enumerate(as_completed(waiting), start=1):
            label = f"{number} of {len(waiting)}: {waiting[future]}"
            error = future.exception()
            if error is not None:
                console.print(f"{label} failed: {type(error).__name__}: {error}", markup=False)
                continue
            with arguments.output.open("a") as file:
                file.write(json.dumps(future.result()) + "\n")
            console.print(label, markup=False)
    show(finished(arguments.output, arguments.quick))


if __name__ == "__main__":
    main()
