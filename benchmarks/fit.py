"""Fitting a sparse GP: ours beside GPyTorch's SVGP under Adam and BoTorch's exact GP, in one run.

    python benchmarks/fit.py [--quick] [--only NAME ...] [--threads N] [--no-exact] [--rows N]

Each problem is fitted by `streamgp.fit`, by GPyTorch's SVGP (Adam, rate 0.1, 1000 steps, with the same starting kernel,
priors, number of inducing points and starting points), and, up to 1000 observations, by BoTorch's `SingleTaskGP` with
`fit_gpytorch_mll`. Then ours is refitted after 10 new observations, from the result without them.

Columns: `objective` is the bound with the log density of the priors, evaluated for both by one function at each one's
hyperparameters and inducing points with the best belief for them (so GPyTorch gets a better belief than Adam found);
`own bound` is what each one's own belief reaches. NLPD and RMSE are held out, on standardized targets.

With --quick GPyTorch takes 100 steps only: the time of the last 90 is extrapolated and marked with ~, and its other
columns are those after 100 steps, marked with *. --rows N adds one pass over N rows in minibatches at p = 256. The data
sets come from `paper.datasets`.
"""

import argparse
import math
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.test_functions import Hartmann
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from rich.console import Console
from rich.table import Table
from tests.support.gpytorch_models import SVGP
from torch import Tensor

import streamgp as sg
from paper.datasets import load_bananas, read_table
from streamgp.training import FitResult, Minibatches
from streamgp.training.arguments import Options
from streamgp.training.features import Observed
from streamgp.training.full_batch import evaluate
from streamgp.training.inducing import kmeans_points
from streamgp.training.parameters import Hyperparameters

NUM_STEPS, NUM_QUICK_STEPS, NUM_FIRST_STEPS, NUM_NEW = 1000, 100, 10, 10
console = Console(width=150)


@dataclass(frozen=True)
class Problem:
    """Training and held-out data, and the likelihood in both libraries."""

    X: Tensor
    y: Tensor
    X_test: Tensor
    y_test: Tensor
    num_inducing: int
    likelihood: sg.likelihoods.AbstractLikelihood
    gpytorch_likelihood: Callable[[], Any]

    @property
    def is_gaussian(self) -> bool:
        return isinstance(self.likelihood, sg.likelihoods.Gaussian)


class PoissonLikelihood(gpytorch.likelihoods._OneDimensionalLikelihood):
    """Counts with a logarithmic link, which GPyTorch does not bring."""

    def forward(self, f: Tensor, **_: Any) -> torch.distributions.Poisson:
        return torch.distributions.Poisson(rate=f.exp())


def gaussian() -> dict[str, Any]:
    return {
        "likelihood": sg.likelihoods.Gaussian(0.05),
        "gpytorch_likelihood": lambda: gpytorch.likelihoods.GaussianLikelihood(noise_prior=LogNormalPrior(-4.0, 1.0)),
    }


def hartmann(n: int, p: int, seed: int = 0) -> Problem:
    """Hartmann6 with noise of standard deviation 0.1, targets standardized."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n + 2000, 6, generator=generator)
    y = -Hartmann()(X) + 0.1 * torch.randn(n + 2000, generator=generator)
    y = (y - y[:n].mean()) / y[:n].std(correction=0)
    return Problem(X[:n], y[:n], X[n:], y[n:], p, **gaussian())


def poisson(n: int, p: int) -> Problem:
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n + 2000, 6, generator=generator)
    y = torch.poisson((-Hartmann()(X)).exp(), generator=generator)
    return Problem(X[:n], y[:n], X[n:], y[n:], p, sg.likelihoods.Poisson(), PoissonLikelihood)


def bananas(p: int) -> Problem:
    data = load_bananas()
    # The link that GPyTorch's likelihood has.
    likelihood = sg.likelihoods.Bernoulli(link="probit")
    return Problem(
        data.X_train,
        data.y_train,
        data.X_test,
        data.y_test,
        p,
        likelihood,
        gpytorch.likelihoods.BernoulliLikelihood,
    )


def uci(name: str, n: int, p: int) -> Problem:
    """Random rows, inputs and targets standardized."""
    rows = read_table(f"uci/{name}_data.csv.gz")
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]
    rows = (rows - rows[:n].mean(0)) / rows[:n].std(0, correction=0).clamp_min(1e-12)
    rest = rows[n : n + 5000]
    return Problem(rows[:n, :-1], rows[:n, -1], rest[:, :-1], rest[:, -1], p, **gaussian())


def borehole(u: Tensor) -> Tensor:
    """Flow of water through a borehole, from eight quantities."""
    low = torch.tensor([0.05, 100.0, 63_070.0, 990.0, 63.1, 700.0, 1120.0, 9855.0])
    high = torch.tensor([0.15, 50_000.0, 115_600.0, 1110.0, 116.0, 820.0, 1680.0, 12_045.0])
    rw, r, Tu, Hu, Tl, Hl, L, Kw = (low + (high - low) * u).unbind(-1)
    span = (r / rw).log()
    return 2.0 * math.pi * Tu * (Hu - Hl) / (span * (1.0 + 2.0 * L * Tu / (span * rw.square() * Kw) + Tu / Tl))


def piston(u: Tensor) -> Tensor:
    """Seconds of one cycle of a piston, from seven quantities."""
    low = torch.tensor([30.0, 0.005, 0.002, 1000.0, 90_000.0, 290.0, 340.0])
    high = torch.tensor([60.0, 0.020, 0.010, 5000.0, 110_000.0, 296.0, 360.0])
    M, S, V0, k, P0, Ta, T0 = (low + (high - low) * u).unbind(-1)
    A, gas = P0 * S + 19.62 * M - k * V0 / S, P0 * V0 * Ta / T0
    V = S / (2.0 * k) * ((A.square() + 4.0 * k * gas).sqrt() - A)
    return 2.0 * math.pi * (M / (k + S.square() * gas / V.square())).sqrt()


def robot_arm(u: Tensor) -> Tensor:
    """Distance from the shoulder to the end of an arm with four joints."""
    angles, lengths = 2.0 * math.pi * u[:, :4].cumsum(-1), u[:, 4:]
    return torch.hypot((lengths * angles.cos()).sum(-1), (lengths * angles.sin()).sum(-1))


def amplifier(u: Tensor) -> Tensor:
    """Voltage in the middle of a push-pull circuit, from six quantities."""
    low = torch.tensor([50.0, 25.0, 0.5, 1.2, 0.25, 50.0])
    high = torch.tensor([150.0, 70.0, 3.0, 2.5, 1.2, 300.0])
    Rb1, Rb2, Rf, Rc1, Rc2, gain = (low + (high - low) * u).unbind(-1)
    base, load = 12.0 * Rb2 / (Rb1 + Rb2), gain * (Rc2 + 9.0)
    return ((base + 0.74) * load + 11.35 * Rf + 0.74 * Rf * load / Rc1) / (load + Rf)


def untuned(function: Callable[[Tensor], Tensor], d: int, n: int, p: int, outcome: str = "gaussian") -> Problem:
    """A function that no setting of the library was chosen on: noisy, as a rate, or as a probability."""
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n + 2000, d, generator=generator)
    f = function(X)
    f = (f - f[:n].mean()) / f[:n].std(correction=0)
    libraries: dict[str, Any]
    if outcome == "counts":
        y = torch.poisson((f + 1.0).exp(), generator=generator)
        libraries = {"likelihood": sg.likelihoods.Poisson(), "gpytorch_likelihood": PoissonLikelihood}
    elif outcome == "classes":
        y = torch.bernoulli(torch.special.ndtr(2.0 * f), generator=generator)
        libraries = {
            "likelihood": sg.likelihoods.Bernoulli(link="probit"),
            "gpytorch_likelihood": gpytorch.likelihoods.BernoulliLikelihood,
        }
    else:
        y, libraries = f + 0.1 * torch.randn(len(f), generator=generator), gaussian()
    return Problem(X[:n], y[:n], X[n:], y[n:], p, **libraries)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "hartmann-160": lambda: hartmann(160, 25),
    "hartmann-1000": lambda: hartmann(1000, 100),
    "protein-5000": lambda: uci("protein", 5000, 200),
    "elevators-16000": lambda: uci("elevators", 16_000, 256),
    "bananas-400": lambda: bananas(25),
    "poisson-500": lambda: poisson(500, 50),
    # Declared before they were first run; no setting was chosen on them.
    "borehole-500": lambda: untuned(borehole, 8, 500, 50),
    "piston-1000": lambda: untuned(piston, 7, 1000, 100),
    "robot-arm-500": lambda: untuned(robot_arm, 8, 500, 50),
    "counts-500": lambda: untuned(amplifier, 6, 500, 50, "counts"),
    "classes-500": lambda: untuned(robot_arm, 8, 500, 50, "classes"),
}


def starting_kernel(problem: Problem) -> Any:
    d = problem.X.shape[-1]
    lengthscale_prior = LogNormalPrior(math.sqrt(2.0) + 0.5 * math.log(d), math.sqrt(3.0))
    kernel = ScaleKernel(
        MaternKernel(2.5, ard_num_dims=d, lengthscale_prior=lengthscale_prior),
        outputscale_prior=LogNormalPrior(1.0, 1.0),
    )
    kernel.base_kernel.lengthscale, kernel.outputscale = math.sqrt(d) * problem.X.std(0), 1.0
    return kernel


@dataclass(frozen=True)
class Outcome:
    """Result of a method, and its time."""

    seconds: float
    nlpd: float
    rmse: float
    objective: float = math.nan
    own_bound: float = math.nan
    is_scaled: bool = False
    note: str = ""


def held_out(problem: Problem, mean: Tensor, variance: Tensor, likelihood: Any) -> tuple[float, float]:
    density = likelihood.log_predictive_density(mean, variance, problem.y_test).mean()
    error = (likelihood.predictive_mean(mean, variance) - problem.y_test).square().mean().sqrt()
    return -float(density), float(error)


def objective_at(problem: Problem, gp: sg.SparseGP, likelihood: Any) -> float:
    """The bound with priors, at the best belief for given hyperparameters and inducing points."""
    kernel, mean = (deepcopy(module).requires_grad_(True) for module in (gp.kernel, gp.mean))
    setting = Hyperparameters(kernel, mean, likelihood, gp.inducing_points, {})
    trained = evaluate(setting, Observed(problem.X, problem.y), Options(priors="dim_scaled"))
    return trained.bound + trained.log_prior


def ours(problem: Problem, Z: Tensor, start: FitResult | None = None) -> tuple[FitResult, Outcome]:
    began = time.perf_counter()
    result = sg.fit(
        problem.X,
        problem.y,
        likelihood=problem.likelihood if start is None else None,
        kernel=starting_kernel(problem) if start is None else None,
        num_inducing=problem.num_inducing,
        inducing=Z if start is None else "kmeans",
        start=start,
    )
    seconds = time.perf_counter() - began
    with torch.no_grad():
        prediction = result.predict(problem.X_test)
        nlpd, rmse = held_out(problem, prediction.mean, prediction.variance, result.likelihood)
    return result, Outcome(
        seconds,
        nlpd,
        rmse,
        objective_at(problem, result.gp, result.likelihood),
        result.info.bound + result.info.log_prior,
        note=f"{result.info.num_evaluations} evaluations",
    )


def svgp(problem: Problem, Z: Tensor, num_steps: int) -> Outcome:
    n = len(problem.y)
    began = time.perf_counter()
    model, likelihood = SVGP(Z.clone(), kernel=starting_kernel(problem)), problem.gpytorch_likelihood()
    elbo = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=n)
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.1)
    for step in range(num_steps):
        if step == NUM_FIRST_STEPS and num_steps < NUM_STEPS:
            began = time.perf_counter()
        optimizer.zero_grad()
        loss = -elbo(model(problem.X), problem.y)
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - began
    if num_steps < NUM_STEPS:
        seconds *= NUM_STEPS / (num_steps - NUM_FIRST_STEPS)
    with torch.no_grad():
        own = n * float(elbo(model(problem.X), problem.y))
        gp = sg.from_gpytorch(model)
        ours = sg.likelihoods.Gaussian(float(likelihood.noise)) if problem.is_gaussian else problem.likelihood
        prediction = gp.predict(problem.X_test)
        nlpd, rmse = held_out(problem, prediction.mean, prediction.variance, ours)
    return Outcome(
        seconds, nlpd, rmse, objective_at(problem, gp, ours), own, num_steps < NUM_STEPS, f"{num_steps} steps"
    )


def exact(problem: Problem) -> Outcome:
    began = time.perf_counter()
    model = SingleTaskGP(problem.X, problem.y.unsqueeze(-1), outcome_transform=None)
    fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
    seconds = time.perf_counter() - began
    with torch.no_grad():
        posterior = model.posterior(problem.X_test)
        likelihood = sg.likelihoods.Gaussian(float(model.likelihood.noise))
        nlpd, rmse = held_out(problem, posterior.mean.squeeze(-1), posterior.variance.squeeze(-1), likelihood)
    return Outcome(seconds, nlpd, rmse, note="its own kernel (RBF)")


def run(name: str, problem: Problem, num_steps: int, *, is_exact: bool) -> None:
    Z = kmeans_points(
        starting_kernel(problem), problem.X, problem.num_inducing, generator=torch.Generator().manual_seed(0)
    )
    short = replace(problem, X=problem.X[:-NUM_NEW], y=problem.y[:-NUM_NEW])
    outcomes = {}
    _, outcomes["streamgp"] = ours(problem, Z)
    before, _ = ours(short, Z)
    _, outcomes[f"streamgp, warm after {NUM_NEW} more"] = ours(problem, Z, before)
    outcomes["GPyTorch SVGP, Adam"] = svgp(problem, Z, num_steps)
    if is_exact and problem.is_gaussian and len(problem.y) <= 1000:
        outcomes["BoTorch SingleTaskGP"] = exact(problem)
    columns = ("method", "s", "x ours", "objective", "own bound", "NLPD", "RMSE", "note")
    table = Table(title=f"{name}, {torch.get_num_threads()} threads")
    for column in columns:
        table.add_column(column, justify="left" if column in ("method", "note") else "right")
    for method, outcome in outcomes.items():
        mark = "*" if outcome.is_scaled else ""
        table.add_row(
            method,
            f"{'~' if outcome.is_scaled else ''}{outcome.seconds:.2f}",
            f"{outcome.seconds / outcomes['streamgp'].seconds:.2f}",
            f"{outcome.objective:.2f}{mark}",
            f"{outcome.own_bound:.2f}{mark}",
            f"{outcome.nlpd:.4f}{mark}",
            f"{outcome.rmse:.4f}{mark}",
            outcome.note,
        )
    console.print(table)


def stream(num_rows: int, table: Table) -> None:
    """One pass in minibatches over rows that are made when they are asked for."""

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        generator = torch.Generator().manual_seed(0)
        for _ in range(num_rows // 1024):
            X = torch.rand(1024, 6, generator=generator)
            yield X, -Hartmann()(X) + 0.1 * torch.randn(1024, generator=generator)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = sg.fit(batches(), num_inducing=256, minibatches=Minibatches(num_data=num_rows), max_iterations=20)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X = torch.rand(2000, 6, generator=torch.Generator().manual_seed(1))
    rmse = (result.predict(X).mean + Hartmann()(X)).square().mean().sqrt()
    table.add_row(
        f"{num_rows}", f"{result.info.seconds:.1f}", f"{before / 1024:.0f}", f"{after / 1024:.0f}", f"{rmse:.4f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 steps of Adam, their time extrapolated")
    parser.add_argument("--only", nargs="+", choices=tuple(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-exact", action="store_true", help="leave out BoTorch's exact GP")
    parser.add_argument("--rows", type=int, nargs="*", default=[], help="passes over so many rows in minibatches")
    arguments = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)  # GPyTorch starts its belief at random
    torch.set_num_threads(arguments.threads)
    warnings.filterwarnings("ignore")
    sg.fit(torch.rand(20, 2), torch.rand(20), num_inducing=5)  # what is loaded on first use is not counted
    for name in [] if arguments.rows else arguments.only:
        num_steps = NUM_QUICK_STEPS if arguments.quick else NUM_STEPS
        run(name, PROBLEMS[name](), num_steps, is_exact=not arguments.no_exact)
    if arguments.rows:
        table = Table(title="One pass in minibatches of 1024, p = 256, d = 6")
        for column in ("rows", "s", "MB before", "MB at the peak", "RMSE of the function"):
            table.add_column(column, justify="right")
        for num_rows in arguments.rows:
            stream(num_rows, table)
        console.print(table)


if __name__ == "__main__":
    main()
