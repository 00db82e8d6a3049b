"""Level sets from yes/no answers: problems of Letham et al. (2022), contrast sensitivity, and Gaussian ones on a pool.

Each run begins with 10 quasi-random trials and asks one at a time, or four. Scores on 4096 quasi-random points of the
box are written at 100, 250, 500 and 740 trials (490 in two dimensions), by the defaults or, with --setting theirs, by
the priors and the 100 inducing points of the publication:

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
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from torch import Tensor

import streamgp as sg
from streamgp.acquisition import AbstractRule, Context
from streamgp.likelihoods import Bernoulli
from streamgp.seeds import seeded, sobol_points
from streamgp.storage import register

CHECKPOINTS = (50, 100, 250, 490, 500, 740, 750)
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


def contrast(X: Tensor) -> Tensor:
    """Discrimination of a grating: log contrast beside a log pedestal, two frequencies, size and eccentricity.

    Written for this benchmark, in the six dimensions of the publication, whose own function is a model of data that are
    not ours. The threshold is the least contrast of a sensitivity that falls off with frequencies and eccentricity and
    rises with size, added to a pedestal that masks by a power law; more contrast is always easier.
    """
    log_pedestal, log_contrast, temporal, spatial, size, eccentricity = X.unbind(-1)
    octaves = (spatial / (3.0 / (1.0 + 0.15 * eccentricity))).log2()
    sensitivity = 2.0 - 0.35 * octaves.square() - 0.004 * (temporal - 5.0).square() - 0.06 * eccentricity
    log_least = -(sensitivity + 0.5 * (size / (1.0 + size)).log10())
    masked = (10 ** (2.0 * log_least) + 0.04 * 10 ** (1.2 * log_pedestal)).sqrt().log10()
    rise = 3.0 * (log_contrast - masked)
    return torch.special.ndtri((0.5 + 0.5 * torch.special.ndtr(rise)).clamp(0.5, 1.0 - 1e-5))


PROBLEMS = {
    "hartmann6": Problem(((0.0, 1.0),) * 6, hartmann6, 0.5),
    "discrimination2": Problem(((-1.0, 1.0),) * 2, discrimination, 0.75),
    "discrimination8": Problem(
        ((-1.0, 1.0), (-1.0, 1.0), (0.5, 1.5), (0.05, 0.15), (0.05, 0.2), (0.0, 0.9), (0.0, 1.57), (0.5, 2.0)),
        discrimination8,
        0.75,
    ),
    "contrast": Problem(((-1.5, 0.0), (-1.5, 0.0), (0.0, 20.0), (0.5, 7.0), (1.0, 10.0), (0.0, 10.0)), contrast, 0.75),
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


def published_kernel(num_dims: int) -> ScaleKernel:
    """The kernel of the publication, with its priors."""
    base = RBFKernel(ard_num_dims=num_dims, lengthscale_prior=GammaPrior(3.0, 6.0))
    kernel = ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15)).double()
    base.lengthscale, kernel.outputscale = 0.5, 1.0
    return kernel


def model_options(problem: Problem, setting: str) -> dict[str, Any]:
    """Options of the model: none, or those of the publication."""
    return {} if setting == "ours" else {"kernel": published_kernel(len(problem.bounds)), "num_inducing": 100}


def make_learner(problem: Problem, rule: str, seed: int, *, setting: str) -> sg.Learner:
    """A learner with a rule by name."""
    likelihood, goal = Bernoulli("probit"), sg.LevelSet(problem.level)
    edge = float(likelihood.inverse_response(torch.tensor(problem.level, dtype=torch.float64)))
    chosen: str | AbstractRule = Straddle(edge) if rule == "straddle" else rule
    options = model_options(problem, setting)
    return sg.Learner(list(problem.bounds), likelihood=likelihood, goal=goal, acquisition=chosen, seed=seed, **options)


def scores(learner: sg.Learner, problem: Problem, X: Tensor) -> dict[str, float]:
    """Brier score with its factor, and error of the volume."""
    above, truth = learner.probability_above(X), problem.truth(X).double()
    volume = float((above.mean() - truth.mean()).abs())
    return {"brier": float(2.0 * (truth - above).square().mean()), "volume": volume}


def run(
    name: str, rule: str, q: int, seed: int, *, num_trials: int, folder: Path, setting: str
) -> list[dict[str, Any]]:
    """One run, taken up where it was stopped."""
    problem, rows, file = PROBLEMS[name], [], folder / f"{name}-{rule}-{q}-{setting}-{seed}.streamgp"
    lower, upper = torch.tensor(problem.bounds, dtype=torch.float64).T
    X_test = lower + (upper - lower) * sobol_points(NUM_TEST, len(lower), seed=12345)
    if file.exists():
        learner = sg.Learner.load(file, kernel=model_options(problem, setting).get("kernel"))
    else:
        learner = make_learner(problem, rule, seed, setting=setting)
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
                row = {"problem": name, "rule": rule, "q": q, "setting": setting, "seed": seed, "trials": mark}
                times = {"seconds": asked - start, "cpu": cpu, "tell": told - asked}
                rows.append(row | scores(learner, problem, X_test) | times)
                print(json.dumps(rows[-1]), flush=True)
                learner.save(file)
                kept.write_text(json.dumps(rows))
    learner.save(file)
    return rows


# Functions of two inputs, and their level.
MAPS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], float]] = {
    "waves": (lambda x, y: torch.sin(5.0 * x) + torch.cos(4.0 * y) * x, 0.5),
    "ridge": (lambda x, y: torch.exp(-20.0 * (y - 0.5 - 0.3 * torch.sin(4.0 * x)).square()), 0.5),
    "islands": (lambda x, y: torch.sin(3.0 * math.pi * x) * torch.sin(2.0 * math.pi * y), 0.4),
    "cliff": (lambda x, y: torch.sigmoid(15.0 * (x + 0.5 * y.square() - 0.8)), 0.5),
}


def pool_error(name: str, seed: int, *, rule: str | None, num_told: int = 40) -> float:
    """Share of 625 places on the wrong side of a level after some observations with noise."""
    axis = torch.linspace(0.0, 1.0, 25, dtype=torch.float64)
    X, (function, level) = torch.cartesian_prod(axis, axis), MAPS[name]
    truth = function(X[:, 0], X[:, 1])
    learner = sg.Learner(X, goal=sg.LevelSet(level), acquisition=rule, seed=seed)
    generator = seeded(seed, 8)
    for _ in range(num_told):
        index = learner.ask()
        learner.tell(index, truth[index] + 0.1 * torch.randn(1, generator=generator, dtype=torch.float64))
    return float(((learner.probability_above() > 0.5) != (truth > level)).double().mean())


def main() -> None:
    """Run what is asked for, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="*", default=["hartmann6"], choices=list(PROBLEMS))
    parser.add_argument("--rules", nargs="*", default=["uncertainty_reduction", "mutual_information", "random"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--trials", type=int, default=250)
    parser.add_argument("--q", type=int, default=1)
    parser.add_argument("--setting", default="ours", choices=["ours", "theirs"])
    parser.add_argument("--pool", action="store_true", help="Gaussian level sets on 625 places instead.")
    parser.add_argument("--output", type=Path, default=Path("level_sets"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.output.mkdir(parents=True, exist_ok=True)
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for rule in options.rules:
            if options.pool:
                for name in MAPS:
                    wrong = pool_error(name, seed, rule=rule)
                    print(json.dumps({"map": name, "rule": rule, "seed": seed, "wrong": wrong}), flush=True)
                continue
            for name in options.problems:
                trials = min(options.trials, 500) if len(PROBLEMS[name].bounds) == 2 else options.trials
                run(name, rule, options.q, seed, num_trials=trials, folder=options.output, setting=options.setting)


if __name__ == "__main__":
    main()
