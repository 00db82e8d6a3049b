"""Level sets from yes/no answers: three problems of Letham et al. (2022), and a Gaussian one on a pool.

Each run begins with 10 quasi-random trials and asks one at a time, or four. Scores on 4096 quasi-random points of the
box are written at 100, 250, 500 and 740 trials:

- brier: mean of 2 (1{p(x) <= threshold} - P(f(x) <= threshold))^2. The factor 2 is that of the published numbers.
- volume: |expected volume above - true volume|.
- seconds: wall time of the latest ask, beside that of the latest tell; cpu: processor time of that ask.

A run is one (problem, rule, q, seed); finished ones are passed over, so that the benchmark can be stopped at any time.

    python benchmarks/level_sets.py --problems hartmann6 --rules uncertainty_reduction random --seeds 5 --trials 250

References:
    Letham, Guan, Tymms, Bakshy, Shvartsman (2022), Look-ahead acquisition functions for Bernoulli level set estimation.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

import streamgp as sg
from streamgp.acquisition import AbstractRule, Context
from streamgp.likelihoods import Bernoulli
from streamgp.seeds import seeded, sobol_points
from streamgp.storage import register

CHECKPOINTS = (100, 250, 500, 740, 750)
NUM_TEST = 4096


@final
@dataclass(frozen=True)
class Problem:
    """A latent function over a box, and the probability whose level set is looked for."""

    bounds: tuple[tuple[float, float], ...]
    latent: Callable[[Tensor], Tensor]
    level: float

    def truth(self, X: Tensor) -> Tensor:
        """Which points are above the level."""
        return torch.special.ndtr(self.latent(X)) > self.level


def hartmann6(X: Tensor) -> Tensor:
    """1 - 30 h(x), with the weights of the modified Hartmann function."""
    weights = X.new_tensor([0.2, 0.22, 0.28, 0.3])
    steepness = X.new_tensor(
        [
            [8.0, 3.0, 10.0, 3.5, 1.7, 6.0],
            [0.5, 8.0, 10.0, 1.0, 6.0, 9.0],
            [3.0, 3.5, 1.7, 8.0, 10.0, 6.0],
            [10.0, 6.0, 0.5, 8.0, 1.0, 9.0],
        ]
    )
    centers = 1e-4 * X.new_tensor(
        [
            [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
            [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
            [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
            [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
        ]
    )
    distance = (steepness * (X.unsqueeze(-2) - centers).square()).sum(-1)
    return 1.0 - 30.0 * torch.exp(-distance) @ weights


def discrimination(X: Tensor) -> Tensor:
    """A threshold that is a curve of a second stimulus, at chance where there is no intensity."""
    frequency, amplitude = X.unbind(-1)
    return (amplitude + 1.0) / (0.05 + 0.4 * ((0.2 * frequency - 1.0) * frequency).square())


def discrimination8(X: Tensor) -> Tensor:
    """The same of eight parameters, with a probability between one half and one."""
    amplitude, frequency, scale, shift, width, asymmetry, phase, period = X.unbind(-1)
    wave = 0.6 * math.pi * period * frequency
    rise = 0.5 * scale * (1.0 - torch.cos(wave + phase)) + shift
    curve = rise * (2.0 - asymmetry * (1.0 + torch.sin(0.5 * wave + phase))) - 1.0
    chance = 0.5 + 0.5 * torch.special.ndtr((amplitude - curve) / (width * (2.0 + curve)))
    return torch.special.ndtri(chance.clamp(0.5, 1.0 - 1e-5))


PROBLEMS = {
    "hartmann6": Problem(((0.0, 1.0),) * 6, hartmann6, 0.5),
    "discrimination2": Problem(((-1.0, 1.0),) * 2, discrimination, 0.75),
    "discrimination8": Problem(
        ((-1.0, 1.0), (-1.0, 1.0), (0.5, 1.5), (0.05, 0.15), (0.05, 0.2), (0.0, 0.9), (0.0, 1.57), (0.5, 2.0)),
        discrimination8,
        0.75,
    ),
}


@register
@final
@dataclass(frozen=True)
class Straddle(AbstractRule):
    """Uncertainty near the level, at one place alone: 1.96 s(x) - |m(x) - level|."""

    edge: float

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        """Choose the best of candidates."""
        points = context.space.scatter(2000, num_before=0, seed=seed, ask=0)
        with torch.no_grad():
            posterior: Any = context.model.posterior(context.space.inputs(points))
        mean, std = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1).sqrt()
        return points[(1.96 * std - (mean - self.edge).abs()).topk(q).indices]


def make_learner(problem: Problem, rule: str, seed: int) -> sg.Learner:
    """A learner with a rule by name."""
    likelihood, goal = Bernoulli("probit"), sg.LevelSet(problem.level)
    edge = float(likelihood.inverse_response(torch.tensor(problem.level, dtype=torch.float64)))
    chosen: str | AbstractRule = Straddle(edge) if rule == "straddle" else rule
    return sg.Learner(list(problem.bounds), likelihood=likelihood, goal=goal, acquisition=chosen, seed=seed)


def scores(learner: sg.Learner, problem: Problem, X: Tensor) -> dict[str, float]:
    """Brier score with its factor, and error of the volume."""
    above, truth = learner.probability_above(X), problem.truth(X).double()
    volume = float((above.mean() - truth.mean()).abs())
    return {"brier": float(2.0 * (truth - above).square().mean()), "volume": volume}


def run(name: str, rule: str, q: int, seed: int, *, num_trials: int, folder: Path) -> list[dict[str, Any]]:
    """One run, taken up where it was stopped."""
    problem, rows, file = PROBLEMS[name], [], folder / f"{name}-{rule}-{q}-{seed}.streamgp"
    lower, upper = torch.tensor(problem.bounds, dtype=torch.float64).T
    X_test = lower + (upper - lower) * sobol_points(NUM_TEST, len(lower), seed=12345)
    learner = sg.Learner.load(file) if file.exists() else make_learner(problem, rule, seed)
    kept = file.with_suffix(".json")
    rows = json.loads(kept.read_text()) if kept.exists() else []
    while (n := len(learner.y)) < num_trials:
        start, cpu = time.perf_counter(), time.process_time()
        X = learner.ask(min(q, num_trials - n))
        asked, cpu = time.perf_counter(), time.process_time() - cpu
        chance = torch.special.ndtr(problem.latent(X))
        drawn = torch.stack(
            [torch.rand((), generator=seeded(seed, 7, n + i), dtype=torch.float64) for i in range(len(X))]
        )
        learner.tell(X, (drawn < chance).double())
        told = time.perf_counter()
        for mark in CHECKPOINTS:
            if n < mark <= n + len(X):
                row = {"problem": name, "rule": rule, "q": q, "seed": seed, "trials": mark}
                times = {"seconds": asked - start, "cpu": cpu, "tell": told - asked}
                rows.append(row | scores(learner, problem, X_test) | times)
                print(json.dumps(rows[-1]), flush=True)
                learner.save(file)
                kept.write_text(json.dumps(rows))
    learner.save(file)
    return rows


def pool_error(seed: int, *, rule: str | None, num_told: int = 40) -> float:
    """Share of 625 places on the wrong side of a level after some observations with noise."""
    axis = torch.linspace(0.0, 1.0, 25, dtype=torch.float64)
    X = torch.cartesian_prod(axis, axis)
    truth = torch.sin(5.0 * X[:, 0]) + torch.cos(4.0 * X[:, 1]) * X[:, 0]
    learner = sg.Learner(X, goal=sg.LevelSet(0.5), acquisition=rule, seed=seed)
    generator = seeded(seed, 8)
    for _ in range(num_told):
        index = learner.ask()
        learner.tell(index, truth[index] + 0.1 * torch.randn(1, generator=generator, dtype=torch.float64))
    return float(((learner.probability_above() > 0.5) != (truth > 0.5)).double().mean())


def main() -> None:
    """Run what is asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", default=["hartmann6"], choices=list(PROBLEMS))
    parser.add_argument("--rules", nargs="*", default=["uncertainty_reduction", "mutual_information", "random"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--trials", type=int, default=250)
    parser.add_argument("--q", type=int, default=1)
    parser.add_argument("--pool", action="store_true", help="The Gaussian level set on 625 places instead.")
    parser.add_argument("--output", type=Path, default=Path("level_sets"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.output.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for rule in options.rules:
            if options.pool:
                print(json.dumps({"pool": rule, "seed": seed, "wrong": pool_error(seed, rule=rule)}), flush=True)
                continue
            for name in options.problems:
                run(name, rule, options.q, seed, num_trials=options.trials, folder=options.output)


if __name__ == "__main__":
    main()
