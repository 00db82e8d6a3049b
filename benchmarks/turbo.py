"""Ways to choose a batch in a trust region, on the rover and on Levy's function in 20 dimensions.

    python benchmarks/turbo.py --output FILE [--methods thompson half_means local calibrated] [--problems rover levy]
                               [--seeds 12]

Declared before the first run: the rover with 1000 evaluations in batches of 50; Levy in [-10, 10]^20 with noise of
standard deviation 0.5, 600 evaluations in batches of 20. `sg.TurboOptimizer` with its defaults but for the rule:

- thompson: the default;
- half_means: every second point of a batch is a candidate of largest posterior mean;
- local: draws from a model that was fitted to the half of the run's outcomes that is nearest to the best of them;
- calibrated: deviations of draws from their mean are scaled so that errors of predictions that leave one outcome out
  have the spread that is predicted.

Reported: the largest true value of evaluated points, negated for Levy, paired differences from the default with
t-intervals over seeds, and seconds of one ask, in the median. Finished units are lines of JSON, and are not run again.
"""

import argparse
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from scipy import stats
from torch import Tensor

import streamgp as sg
from paper.problems import Rover
from streamgp.acquisition import AbstractDrawingRule, Thompson
from streamgp.acquisition.context import Context
from streamgp.acquisition.samplers import read_sampler
from streamgp.acquisition.space import CandidateSource, read_candidates
from streamgp.acquisition.thompson import best_of_each

# Scales of draws are kept between these.
LEAST_SCALE, MOST_SCALE = 0.25, 4.0


class Benchmark(NamedTuple):
    """A function to be maximized, its noise, and how often it is evaluated, how many points at a time."""

    bounds: Any
    true: Callable[[Tensor], Tensor]
    noise: float
    budget: int
    q: int


def levy(X: Tensor) -> Tensor:
    w = 1 + (X - 1) / 4
    middle = ((w[:, :-1] - 1).square() * (1 + 10 * torch.sin(math.pi * w[:, :-1] + 1).square())).sum(-1)
    last = (w[:, -1] - 1).square() * (1 + torch.sin(2 * math.pi * w[:, -1]).square())
    return -(torch.sin(math.pi * w[:, 0]).square() + middle + last)


PROBLEMS = {
    "rover": Benchmark(Rover().bounds, Rover(), 0.0, 1000, 50),
    "levy": Benchmark([(-10.0, 10.0)] * 20, levy, 0.5, 600, 20),
}


class Drawing(AbstractDrawingRule):
    """A rule for trust regions only."""

    def propose(self, context: Context, q: int, *, seed: int) -> Tensor:
        raise NotImplementedError


@final
@dataclass(frozen=True)
class HalfMeans(Drawing):
    """Draws, and points of largest mean."""

    def draw(
        self, context: Context, candidates: CandidateSource, q: int, *, num_candidates: int, generator: torch.Generator
    ) -> Tensor:
        C = read_candidates(candidates, num_candidates, at_least=q)
        with torch.no_grad():
            value = context.objective.value(context.model.posterior(C))
        is_best = torch.zeros(len(C), dtype=torch.bool)
        is_best[value.topk(q // 2).indices] = True
        drawn = Thompson().draw(context, C[~is_best], q - q // 2, num_candidates=num_candidates, generator=generator)
        return torch.cat([drawn, C[is_best]])


@final
@dataclass(frozen=True)
class Local(Drawing):
    """Draws from a model of the nearest outcomes."""

    def draw(
        self, context: Context, candidates: CandidateSource, q: int, *, num_candidates: int, generator: torch.Generator
    ) -> Tensor:
        X, y = context.baseline, context.observed
        num = max(len(X) // 2, min(len(X), 2 * X.shape[-1]))
        near = (X - X[y.argmax()]).square().sum(-1).topk(num, largest=False).indices
        model = sg.OnlineGP.fit(X[near], y[near].unsqueeze(-1), num_inducing=500)
        C = read_candidates(candidates, num_candidates, at_least=q)
        samples = read_sampler(model, "auto", maximize=True).sample(C[:0], C, num_samples=q, generator=generator)
        return C[best_of_each(samples.at_candidates)]


@final
@dataclass(frozen=True)
class Calibrated(Drawing):
    """Draws as wide as errors of predictions are."""

    def draw(
        self, context: Context, candidates: CandidateSource, q: int, *, num_candidates: int, generator: torch.Generator
    ) -> Tensor:
        model: Any = context.model
        sampler = read_sampler(model, "auto", maximize=bool(context.objective.weights[0] > 0))
        C = read_candidates(candidates, num_candidates, at_least=q)
        drawn = sampler.sample(C[:0], C, num_samples=q, generator=generator).at_candidates
        with torch.no_grad():
            X = model.transform_inputs(context.baseline)
            y = context.observed * math.copysign(1.0, context.objective.weights[0])
            gp, noise = model.gps[0], torch.as_tensor(model.likelihoods[0].noise_variance)
            out = gp.leave_one_out(X, y, noise_variance=noise.expand(len(y)))
            scale = ((y - out.mean).square() / (out.variance + noise)).mean().sqrt().clamp(LEAST_SCALE, MOST_SCALE)
            mean = gp.process.mean(model.transform_inputs(C)) * math.copysign(1.0, context.objective.weights[0])
        return C[best_of_each(mean + scale * (drawn - mean))]


METHODS: dict[str, Callable[[], AbstractDrawingRule]] = {
    "thompson": Thompson,
    "half_means": HalfMeans,
    "local": Local,
    "calibrated": Calibrated,
}


def run(problem: str, method: str, seed: int) -> dict[str, Any]:
    one = PROBLEMS[problem]
    generator, seconds = torch.Generator().manual_seed(seed), []
    optimizer = sg.TurboOptimizer(one.bounds, acquisition=METHODS[method](), seed=seed)
    best: list[float] = []
    while len(best) < one.budget:
        began = time.perf_counter()
        points = optimizer.ask(min(one.q, one.budget - len(best)))
        seconds.append(time.perf_counter() - began)
        values = one.true(points)
        optimizer.tell(points, values + one.noise * torch.randn(len(values), generator=generator, dtype=values.dtype))
        best += (
            torch.tensor([*best[-1:], *values.tolist()], dtype=values.dtype).cummax(0).values[-len(values) :].tolist()
        )
    line = {"problem": problem, "method": method, "seed": seed, "value": best[-1]}
    return {**line, "best": best[one.q - 1 :: one.q], "seconds": statistics.median(seconds)}


def report(lines: list[dict[str, Any]]) -> None:
    for problem in PROBLEMS:
        found = {(one["method"], one["seed"]): one for one in lines if one["problem"] == problem}
        for method in METHODS:
            rows = [one for (name, _), one in found.items() if name == method]
            if not rows:
                continue
            seeds = [one["seed"] for one in rows if ("thompson", one["seed"]) in found]
            gains = [found[method, seed]["value"] - found["thompson", seed]["value"] for seed in seeds]
            n = len(gains)
            half = stats.t.ppf(0.975, n - 1) * statistics.stdev(gains) / n**0.5 if n > 1 else float("nan")
            mean = statistics.mean(one["value"] for one in rows)
            spent = statistics.median(one["seconds"] for one in rows)
            paired = f"{statistics.mean(gains):+.2f} ± {half:.2f} ({n} seeds)" if gains else ""
            print(f"{problem:6s} {method:12s} {mean:8.2f}  {paired}  {spent:.2f} s per ask")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="file of finished units")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--seeds", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.loads(row) for row in options.output.read_text().splitlines()] if options.output.exists() else []
    done = {(one["problem"], one["method"], one["seed"]) for one in lines}
    for seed in range(options.seeds):
        for problem in options.problems:
            for method in options.methods:
                if (problem, method, seed) not in done:
                    lines.append(run(problem, method, seed))
                    with options.output.open("a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
                    print(
                        problem, method, seed, f"{lines[-1]['value']:.3f}", f"{lines[-1]['seconds']:.2f} s", flush=True
                    )
    report(lines)


if __name__ == "__main__":
    main()
