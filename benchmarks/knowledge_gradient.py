"""Knowledge gradient on Hartmann6: OnlineGP beside GPyTorch's fantasies of the same model, and BoTorch's exact GP.

    python benchmarks/knowledge_gradient.py [--quick] [--threads 1] [--seeds 3]

One `optimize_acqf` of qKnowledgeGradient with q = 3 points, 64 fantasies, 10 restarts, 512 raw samples, 200 iterations
and batch limit 5, in double precision. All methods share hyperparameters, those of a fitted sparse GP. Each run has a
process of its own. Reported are:

    ms       median time of one evaluation with its gradient, 5 restarts at once
    s        whole optimization; in brackets, extrapolated: the evaluations of streamgp's run times ms, where the run
             would take hours
    value    the candidates' knowledge gradient by one judge for all: the exact GP by dense algebra, 1024 fantasies,
             each maximized over 4096 points and then by gradient; with the range over seeds
             (streamgp's own exact model, an inducing point at every input, stands for SingleTaskGP where that is too
             slow to optimize: it has the same values)
    MB       peak resident memory (ru_maxrss of the process) above what it was when the model was built
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gpytorch
import torch
from botorch.acquisition import qKnowledgeGradient
from botorch.acquisition.objective import ConstrainedMCObjective
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from botorch.posteriors import GPyTorchPosterior
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Hartmann
from gpytorch.distributions import MultivariateNormal
from rich.console import Console
from rich.table import Table
from torch import Tensor

import streamgp as sg
from streamgp.likelihoods import Gaussian

NUM_DIMS, NUM_POINTS, NUM_FANTASIES, BATCH_LIMIT, NOISE = 6, 3, 64, 5, 0.25
METHODS = ("streamgp", "GPyTorch SVGP", "BoTorch SingleTaskGP", "exact by streamgp")
FULL = {"num_restarts": 10, "raw_samples": 512, "maxiter": 200}
QUICK = {"num_restarts": 2, "raw_samples": 16, "maxiter": 10}
BOUNDS = torch.stack([torch.zeros(NUM_DIMS), torch.ones(NUM_DIMS)]).double()
MOST_MEMORY = 15_000  # megabytes that one evaluation of SingleTaskGP takes at n = 1000, with room
console = Console(width=130)


def hartmann(X: Tensor) -> Tensor:
    return -Hartmann(dim=NUM_DIMS).to(X).evaluate_true(X)


def observations(num_observations: int) -> tuple[Tensor, Tensor]:
    """Uniform inputs, and values with noise of standard deviation 0.5, as in the paper."""
    generator = torch.Generator().manual_seed(num_observations)
    X = torch.rand(num_observations, NUM_DIMS, generator=generator)
    return X, hartmann(X) + math.sqrt(NOISE) * torch.randn(num_observations, generator=generator)


def fitted(X: Tensor, y: Tensor, num_inducing: int) -> sg.SparseGP:
    return sg.fit(X, y, likelihood=Gaussian(NOISE, is_learned=False), num_inducing=num_inducing).gp


class SVGP(gpytorch.models.ApproximateGP):
    """A GPyTorch model with the belief of a sparse GP."""

    def __init__(self, gp: sg.SparseGP) -> None:
        distribution = gpytorch.variational.CholeskyVariationalDistribution(gp.num_inducing)
        strategy = gpytorch.variational.VariationalStrategy(self, gp.inducing_points, distribution)
        super().__init__(strategy)
        self.mean_module, self.covar_module = gp.mean, gp.kernel
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.likelihood.noise = NOISE
        strategy.variational_params_initialized.fill_(1)
        with torch.no_grad():
            distribution.variational_mean.copy_(gp.whitened_mean)
            S = gp.whitened_covariance
            distribution.chol_variational_covar.copy_(torch.linalg.cholesky(S + 1e-12 * torch.eye(len(S))))

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class GPyTorchFantasies(Model):
    """The least around GPyTorch's `get_fantasy_model` that knowledge gradient asks for."""

    num_outputs = 1

    def __init__(self, gp: Any) -> None:
        super().__init__()
        self.gp = gp.eval()

    def posterior(self, X: Tensor, output_indices=None, observation_noise=False, posterior_transform=None):
        with gpytorch.settings.detach_test_caches(False), gpytorch.settings.fast_pred_var():
            latent = self.gp(X)
        return GPyTorchPosterior(self.gp.likelihood(latent) if observation_noise else latent)

    def fantasize(self, X: Tensor, sampler: SobolQMCNormalSampler, **kwargs: Any) -> "GPyTorchFantasies":
        Y = sampler(self.posterior(X, observation_noise=True)).squeeze(-1)
        with gpytorch.settings.detach_test_caches(False):
            return GPyTorchFantasies(self.gp.variational_strategy.get_fantasy_model(X, Y))


def build(method: str, gp: sg.SparseGP, X: Tensor, y: Tensor) -> Model:
    if method == "streamgp":
        return sg.OnlineGP(gp, Gaussian(NOISE))
    if method == "GPyTorch SVGP":
        return GPyTorchFantasies(SVGP(gp))
    if method == "exact by streamgp":
        start = sg.SparseGP.from_prior(gp.kernel, X, mean=gp.mean)
        return sg.OnlineGP(start.absorb(X, y, noise_variance=NOISE, inducing="keep")[0], Gaussian(NOISE))
    model = SingleTaskGP(X, y.unsqueeze(-1), covar_module=gp.kernel, mean_module=gp.mean, outcome_transform=None).eval()
    model.likelihood.noise = NOISE
    return model


class Counted(qKnowledgeGradient):
    """Knowledge gradient that counts its evaluations."""

    num_calls = 0

    def forward(self, X: Tensor) -> Tensor:
        self.num_calls += 1
        return super().forward(X)


def one_evaluation(function: qKnowledgeGradient) -> float:
    X = torch.rand(BATCH_LIMIT, NUM_POINTS + NUM_FANTASIES, NUM_DIMS).requires_grad_(True)
    start = time.perf_counter()
    torch.autograd.grad(function(X).sum(), X)
    return time.perf_counter() - start


def optimized(function: qKnowledgeGradient, settings: dict[str, int]) -> Tensor:
    options = {"batch_limit": BATCH_LIMIT, "maxiter": settings["maxiter"]}
    restarts, raw = settings["num_restarts"], settings["raw_samples"]
    return optimize_acqf(function, BOUNDS, q=NUM_POINTS, num_restarts=restarts, raw_samples=raw, options=options)[0]


def peak_memory() -> float:
    """Peak resident memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def available_memory() -> float:
    """Memory that is free for use in megabytes; without limit where the system does not tell."""
    path = Path("/proc/meminfo")
    lines = path.read_text().splitlines() if path.exists() else []
    found = [float(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable")]
    return found[0] if found else math.inf


def work(task: dict[str, Any]) -> dict[str, Any]:
    """Build a model, time evaluations, and optimize, in one process."""
    X, y = observations(task["n"])
    gp = sg.load(task["model"])
    torch.manual_seed(task["seed"])
    function = Counted(build(task["method"], gp, X, y), NUM_FANTASIES)
    before = peak_memory()
    times = [one_evaluation(function) for _ in range(task["num_evaluations"])]
    result: dict[str, Any] = {"ms": 1e3 * sorted(times)[len(times) // 2]}
    function.num_calls = 0
    if task["settings"] is not None:
        start = time.perf_counter()
        result["candidates"] = optimized(function, task["settings"]).tolist()
        result |= {"s": time.perf_counter() - start, "num_calls": function.num_calls}
    return result | {"MB": peak_memory() - before}


def in_process(task: dict[str, Any], num_threads: int) -> dict[str, Any]:
    environment = os.environ | {"OMP_NUM_THREADS": str(num_threads), "MKL_NUM_THREADS": str(num_threads)}
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


class Judge:
    """Knowledge gradient of given candidates under the exact GP, by dense algebra on plain tensors."""

    def __init__(self, gp: sg.SparseGP, X: Tensor, y: Tensor) -> None:
        self.kernel, self.mean, self.X = gp.kernel, gp.mean, X
        self.L = torch.linalg.cholesky(self.k(X, X) + NOISE * torch.eye(len(X)))
        self.alpha = torch.cholesky_solve((y - self.mean(X)).unsqueeze(-1), self.L)
        engine = torch.quasirandom.SobolEngine(NUM_POINTS, scramble=True, seed=0)
        self.eps = torch.special.ndtri(engine.draw(1024, dtype=torch.float64).clamp(1e-9, 1 - 1e-9))
        self.W = torch.quasirandom.SobolEngine(NUM_DIMS, scramble=True, seed=1).draw(4096, dtype=torch.float64)

    def k(self, first: Tensor, second: Tensor) -> Tensor:
        return self.kernel(first, second).to_dense()

    def expected(self, W: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        r"""The mean at W, and the matrix B with which a fantasy of whitened outcome e has mean $\mu(W) + B e$."""
        V, VW = (torch.linalg.solve_triangular(self.L, self.k(self.X, P), upper=False) for P in (candidates, W))
        A = self.k(candidates, candidates) - V.mT @ V + NOISE * torch.eye(NUM_POINTS)
        cross = self.k(W, candidates) - VW.mT @ V
        B = torch.linalg.solve_triangular(torch.linalg.cholesky(A), cross.mT, upper=False).mT
        return self.mean(W) + (self.k(W, self.X) @ self.alpha).squeeze(-1), B

    def best(self, weights: Tensor, candidates: Tensor) -> Tensor:
        """The largest mean of each fantasy, over a grid and then by gradient."""
        with torch.no_grad():
            mean, B = self.expected(self.W, candidates)
            start = self.W[(mean.unsqueeze(-1) + B @ weights.mT).argmax(0)]
        raw = torch.logit(start.clamp(1e-4, 1 - 1e-4)).requires_grad_(True)
        search = torch.optim.LBFGS([raw], max_iter=60, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            search.zero_grad()
            mean, B = self.expected(torch.sigmoid(raw), candidates)
            total = -(mean + (B * weights).sum(-1)).sum()
            total.backward()
            return total

        search.step(loss)
        with torch.no_grad():
            mean, B = self.expected(torch.sigmoid(raw), candidates)
            return mean + (B * weights).sum(-1)

    def value(self, candidates: Tensor) -> float:
        now = self.best(torch.zeros(1, NUM_POINTS), candidates)
        return float(self.best(self.eps, candidates).mean() - now.max())


def compare(n: int, p: int, plan: dict[str, Any], *, arguments: Any, table: Table, folder: Path) -> None:
    X, y = observations(n)
    gp, path = fitted(X, y, p), folder / f"model-{n}.sgp"
    gp.save(path)
    judge = Judge(gp, X, y)
    ours: dict[str, Any] = {}
    for method in METHODS:
        num_evaluations, is_whole = plan[method]
        if method == "BoTorch SingleTaskGP" and n > 500 and available_memory() < MOST_MEMORY:
            table.add_row(str(n), str(p), method, "skipped", "", "", f"needs {MOST_MEMORY / 1024:.0f} GB", "")
            continue
        seeds = range(arguments.seeds if is_whole else 1)
        runs = []
        for seed in seeds:
            task = {"method": method, "n": n, "model": str(path), "seed": seed, "num_evaluations": num_evaluations}
            task["settings"] = (QUICK if arguments.quick else FULL) if is_whole else None
            runs.append(in_process(task, arguments.threads))
        if "error" in runs[0]:
            table.add_row(str(n), str(p), method, "failed", "", "", runs[0]["error"][:40], "")
            continue
        ms = sum(run["ms"] for run in runs) / len(runs)
        ours = runs[0] | {"ms": ms} if method == "streamgp" else ours
        values = [judge.value(torch.tensor(run["candidates"])) for run in runs if "candidates" in run]
        seconds = (
            f"{sum(run['s'] for run in runs) / len(runs):.1f}" if is_whole else f"({ours['num_calls'] * ms / 1e3:.0f})"
        )
        shown = f"{sum(values) / len(values):.4f} [{min(values):.4f}, {max(values):.4f}]" if values else "-"
        memory = max(run["MB"] for run in runs)
        faster = f"{ms / ours['ms']:.0f}"
        table.add_row(str(n), str(p), method, f"{ms:.1f}", faster, seconds, shown, f"{memory:.0f}")


def constrained_step(is_quick: bool) -> float:
    """Seconds of a step of the paper's loop at its end: fit objective and constraint, optimize knowledge gradient."""
    X, y = observations(160)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    slack = X.sum(-1) - 3.0 + math.sqrt(NOISE) * torch.randn(len(X), generator=generator)
    start = time.perf_counter()
    model = sg.OnlineGP.fit(
        X,
        torch.stack([y, slack], dim=-1),
        likelihood=Gaussian(NOISE, is_learned=False),
        num_inducing=25,
        input_transform=None,
        outcome_transform=None,
    )
    objective = ConstrainedMCObjective(lambda Y, X=None: Y[..., 0], [lambda Y: Y[..., 1]])
    optimized(qKnowledgeGradient(model, NUM_FANTASIES, objective=objective), QUICK if is_quick else FULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="tiny optimizations, and only streamgp at n = 1000")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3, help="optimizations of each method that is not extrapolated")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    warnings.filterwarnings("ignore")
    if arguments.task:
        print(json.dumps(work(json.loads(arguments.task))))
        return
    torch.set_num_threads(arguments.threads)
    table = Table(title="qKnowledgeGradient on Hartmann6, q = 3, 64 fantasies")
    for column in ("n", "p", "method", "ms", "x streamgp", "s", "value [range]", "MB"):
        table.add_column(column, justify="left" if column == "method" else "right")
    # How many evaluations are timed, and whether the whole optimization runs.
    few = dict(zip(METHODS, [(20, True), (5, True), (3, True), (20, True)], strict=True))
    many = dict(zip(METHODS, [(20, True), (2, True), (1, False), (5, True)], strict=True))
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"streamgp-kg-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    compare(160, 25, few, arguments=arguments, table=table, folder=folder)
    if not arguments.quick:
        compare(1000, 100, many, arguments=arguments, table=table, folder=folder)
    console.print(table)
    print(f"A step of the constrained loop (n = 160, two models fitted): {constrained_step(arguments.quick):.1f} s")


if __name__ == "__main__":
    main()
