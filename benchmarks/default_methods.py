"""The methods whose defaults are compared, each with the recommendation that is its own."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from default_problems import Point, Problem, judge
from torch import Tensor

import streamgp as sg

__all__ = ["METHODS", "num_initial", "run_method"]


def num_initial(num_parameters: int) -> int:
    return min(2 * (num_parameters + 1), max(num_parameters + 2, 10), 30)


@dataclass
class Run:
    """Record of a method so far."""

    problem: Problem
    seed: int
    points: list[Point] = field(default_factory=list)
    observed: list[list[float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.seed)

    def evaluate(self, points: Sequence[Point]) -> list[list[float]]:
        new = [self.problem.observe(point, self.generator) for point in points]
        self.points += points
        self.observed += new
        return new

    def best(self, scores: Sequence[float] | None = None) -> list[Point]:
        """The feasible point of the best score, the outcome by default; all points where there are two objectives."""
        k = self.problem.num_objectives
        if k > 1:
            return self.points
        scores = [y[0] for y in self.observed] if scores is None else scores
        known = [i for i, y in enumerate(self.observed) if not math.isnan(y[0])]
        feasible = [i for i in known if all(c <= 0 for c in self.observed[i][k:])]
        return [self.points[min(feasible or known, key=lambda i: scores[i])]]

    def result(self, recommended: Sequence[Point]) -> dict[str, Any]:
        """The true value of what is recommended, that of the best point evaluated, and seconds of each ask."""
        return {
            "value": judge(self.problem, recommended),
            "evaluated": judge(self.problem, self.points),
            "seconds": [round(one, 4) for one in self.seconds],
        }


def run_streamgp(problem: Problem, q: int, budget: int, seed: int) -> dict[str, Any]:
    """`best()`: the best mean, or the best outcome where the model finds no noise; the Pareto set of two objectives."""
    run, constraints = Run(problem, seed), [sg.Constraint(upper=0.0)] * problem.num_constraints
    options: dict[str, Any] = {"maximize": False, "likelihood": "poisson" if problem.is_count else "gaussian"}
    if problem.num_objectives > 1:
        options = {"objectives": [sg.Objective(f"f{j}", maximize=False) for j in range(problem.num_objectives)]}
    optimizer = sg.Optimizer(problem.space, constraints=constraints, seed=seed, **options)
    while len(run.points) < budget:
        began = time.perf_counter()
        points = optimizer.ask(q)
        run.seconds.append(time.perf_counter() - began)
        optimizer.tell(points, run.evaluate(points))
    best = optimizer.best()
    return run.result(list(best.X) if problem.num_objectives > 1 else [best.X])


def run_botorch(problem: Problem, q: int, budget: int, seed: int, *, is_log: bool = True) -> dict[str, Any]:
    """The best posterior mean of evaluated points where there is noise, the best outcome where there is none.

    `SingleTaskGP` and `qLogNoisyExpectedImprovement`, or `qLogNoisyExpectedHypervolumeImprovement`, with their
    defaults; `MixedSingleTaskGP` and `optimize_acqf_mixed` over all categories in mixed spaces, where integers are
    rounded (`optimize_acqf_mixed_alternating` took 14 s for a suggestion). The initial design is ours.
    Counts are standardized as log(1 + y), or as they are.
    """
    torch.manual_seed(seed)
    run, columns = Run(problem, seed), Columns(problem.space)
    space = sg.loops.ParameterSpace(problem.space)
    points = space.show(space.design(num_initial(space.num_parameters), num_initial=1, num_before=0, seed=seed))
    run.evaluate(points)

    def outcomes() -> Tensor:
        Y = -torch.tensor(run.observed, dtype=torch.float64)
        return -torch.log1p(-Y) if problem.is_count and is_log else Y

    while len(run.points) < budget:
        began = time.perf_counter()
        X, Y = columns.encode(run.points), outcomes()
        X, Y = X[~Y.isnan().any(-1)], Y[~Y.isnan().any(-1)]
        model = _fit_botorch(X, Y, columns)
        new = columns.decode(_propose_botorch(model, X, problem, columns, q))
        run.seconds.append(time.perf_counter() - began)
        run.evaluate(new)
    if not problem.is_noisy or problem.num_objectives > 1:
        return run.result(run.best())
    X, Y = columns.encode(run.points), outcomes()
    is_known = ~Y.isnan().any(-1)
    mean = _fit_botorch(X[is_known], Y[is_known], columns).posterior(X).mean[:, 0].detach()
    return run.result(run.best((-mean).tolist()))


class Columns:
    """Parameters as BoTorch has them: numbers from 0 to 1, on their scale, and categories by their index."""

    def __init__(self, space: dict[str, Any]) -> None:
        self.space = space
        self.categories = {j: one for j, one in enumerate(space.values()) if isinstance(one, sg.Categorical)}
        upper = [len(one.choices) - 1.0 if isinstance(one, sg.Categorical) else 1.0 for one in space.values()]
        self.bounds = torch.tensor([[0.0] * len(upper), upper], dtype=torch.float64)

    def encode(self, points: Sequence[Point]) -> Tensor:
        rows = [[_unit(one, point[name]) for name, one in self.space.items()] for point in points]
        return torch.tensor(rows, dtype=torch.float64)

    def decode(self, X: Tensor) -> list[Point]:
        named = self.space.items()
        return [{name: _value(one, x) for (name, one), x in zip(named, row, strict=True)} for row in X.tolist()]


def _unit(one: Any, value: Any) -> float:
    if isinstance(one, sg.Categorical):
        return float(one.choices.index(value))
    scale: Callable[[float], float] = math.log if one.log else float
    return (scale(value) - scale(one.low)) / (scale(one.high) - scale(one.low))


def _value(one: Any, x: float) -> Any:
    if isinstance(one, sg.Categorical):
        return one.choices[round(x)]
    value = one.low * (one.high / one.low) ** x if one.log else one.low + (one.high - one.low) * x
    value = min(max(value, one.low), one.high)
    return round(value) if isinstance(one, sg.Integer) else value


def _fit_botorch(X: Tensor, Y: Tensor, columns: Columns) -> Any:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import MixedSingleTaskGP, ModelListGP, SingleTaskGP
    from gpytorch.mlls import SumMarginalLogLikelihood

    def make(j: int) -> Any:
        if columns.categories:
            return MixedSingleTaskGP(X, Y[:, j : j + 1], cat_dims=list(columns.categories))
        return SingleTaskGP(X, Y[:, j : j + 1])

    model = ModelListGP(*(make(j) for j in range(Y.shape[-1])))
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    return model


def _propose_botorch(model: Any, X: Tensor, problem: Problem, columns: Columns, q: int) -> Tensor:
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.optim import optimize_acqf
    from botorch.optim.optimize import optimize_acqf_mixed

    k = problem.num_objectives
    # Outcomes are negated, so that a constraint, kept at zero or below, is negative where minus its output is.
    limits = [lambda s, j=j: -s[..., j] for j in range(k, k + problem.num_constraints)] or None
    if k == 1:
        objective: Any = GenericMCObjective(lambda s, X=None: s[..., 0])
        function: Any = qLogNoisyExpectedImprovement(model, X, objective=objective, constraints=limits)
    else:
        objective = GenericMCMultiOutputObjective(lambda s, X=None: s[..., :k])
        reference = [-r for r in problem.reference or ()]
        function = qLogNoisyExpectedHypervolumeImprovement(
            model, reference, X, objective=objective, constraints=limits, prune_baseline=True
        )
    how: dict[str, Any] = {"q": q, "num_restarts": 5, "raw_samples": 128}
    if columns.categories:
        names = list(columns.categories)
        choices = product(*(range(len(one.choices)) for one in columns.categories.values()))
        fixed = [{j: float(index) for j, index in zip(names, one, strict=True)} for one in choices]
        return optimize_acqf_mixed(function, columns.bounds, fixed_features_list=fixed, **how)[0]
    return optimize_acqf(function, columns.bounds, sequential=q > 1, **how)[0]


def run_optuna(problem: Problem, q: int, budget: int, seed: int, *, method: str) -> dict[str, Any]:
    """The best feasible outcome."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    run, k = Run(problem, seed), problem.num_objectives

    def constraints(trial: Any) -> Sequence[float]:
        found: Sequence[float] = trial.user_attrs["constraints"]
        return found

    limits = {"constraints_func": constraints} if problem.num_constraints else {}
    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, **limits),
        "gpsampler": lambda: optuna.samplers.GPSampler(seed=seed, **limits),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    study = optuna.create_study(directions=["minimize"] * k, sampler=samplers[method]())
    while len(run.points) < budget:
        began = time.perf_counter()
        trials = [study.ask() for _ in range(q)]
        asked = [{name: _suggest(trial, name, one) for name, one in problem.space.items()} for trial in trials]
        run.seconds.append(time.perf_counter() - began)
        for trial, y in zip(trials, run.evaluate(asked), strict=True):
            trial.set_user_attr("constraints", y[k:])
            if math.isnan(y[0]):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, y[:k])
    return run.result(run.best())


def _suggest(trial: Any, name: str, one: Any) -> Any:
    if isinstance(one, sg.Categorical):
        return trial.suggest_categorical(name, list(one.choices))
    if isinstance(one, sg.Integer):
        return trial.suggest_int(name, one.low, one.high, log=one.log)
    return trial.suggest_float(name, one.low, one.high, log=one.log)


METHODS: dict[str, Callable[[Problem, int, int, int], dict[str, Any]]] = {
    "streamgp": run_streamgp,
    "botorch": run_botorch,
    "tpe": lambda *how: run_optuna(*how, method="tpe"),
    "gpsampler": lambda *how: run_optuna(*how, method="gpsampler"),
    "random": lambda *how: run_optuna(*how, method="random"),
}


def run_method(method: str, problem: Problem, q: int, budget: int, seed: int) -> dict[str, Any]:
    return METHODS[method](problem, q, budget, seed)
