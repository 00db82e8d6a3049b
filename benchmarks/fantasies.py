"""Fantasies of a sparse GP: ours beside GPyTorch, BoTorch and bare torch, in one run, with each one's error.

    python benchmarks/fantasies.py [--quick] [--exact 160 1000]

The task is the inner loop of one-shot look-ahead optimization: condition on q = 3 points in 5 restarts with 64
fantasized outcomes each, evaluate the conditioned mean at each fantasy's own point, and differentiate in all points
(d = 6, double precision, 2 threads). Times are medians of interleaved repeats, fewer for the slow rivals.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import botorch
import gpytorch
import torch
from botorch.models import SingleTaskGP
from gpytorch.distributions import MultivariateNormal
from rich.console import Console
from rich.table import Table
from tests.support.reference import condition_dense, exact_gp
from torch import Tensor

import streamgp as sg

NUM_DIMS, NUM_POINTS, NUM_RESTARTS, NUM_FANTASIES, NOISE = 6, 3, 5, 64, 0.01
console = Console()


class SVGP(gpytorch.models.ApproximateGP):
    """The GPyTorch model whose fantasies are measured."""

    def __init__(self, inducing_points: Tensor, kernel: gpytorch.kernels.Kernel, mean: gpytorch.means.Mean) -> None:
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing_points))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing_points, distribution))
        self.mean_module, self.covar_module = mean, kernel
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()
        self.likelihood.noise = NOISE

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def trained_model(num_inducing: int, generator: torch.Generator) -> SVGP:
    """An SVGP at its optimum for 1000 observations of a smooth function."""
    X = torch.rand(1000, NUM_DIMS, generator=generator)
    y = (3 * X).sin().sum(-1) + math.sqrt(NOISE) * torch.randn(1000, generator=generator)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=NUM_DIMS))
    kernel.outputscale, kernel.base_kernel.lengthscale = 2.0, torch.full((NUM_DIMS,), 0.8)
    mean = gpytorch.means.ConstantMean()
    mean.initialize(constant=4.0)
    start = SVGP(X[:num_inducing].clone(), kernel, mean)
    start.variational_strategy._variational_distribution.mean_init_std = 0.0
    optimal, _ = sg.from_gpytorch(start).absorb(X, y, noise_variance=NOISE, inducing="keep")
    distribution = start.variational_strategy._variational_distribution
    with torch.no_grad():
        distribution.variational_mean.copy_(optimal.whitened_mean)
        distribution.chol_variational_covar.copy_(torch.linalg.cholesky(optimal.whitened_covariance))
    return start.eval()


def ours(gp: sg.SparseGP, X: Tensor, y: Tensor, w: Tensor) -> Tensor:
    return gp.condition(X, y, noise_variance=NOISE).predict(w).mean


def floor(gp: sg.SparseGP) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Our formula with a hand-written kernel, and no library around it."""
    lengthscale, outputscale = gp.kernel.base_kernel.lengthscale, gp.kernel.outputscale
    constant = gp.mean.constant
    L, D, m = gp.process.factor, gp.process.variance_reduction, gp.whitened_mean
    Z = gp.inducing_points / lengthscale
    a = torch.linalg.solve_triangular(L.mT, m.unsqueeze(-1), upper=True).squeeze(-1)

    def matern(x: Tensor, z: Tensor) -> Tensor:
        s = math.sqrt(5) * torch.cdist(x, z, compute_mode="donot_use_mm_for_euclid_dist")
        return outputscale * (1 + s + s * s / 3) * torch.exp(-s)

    def mean(X: Tensor, y: Tensor, w: Tensor) -> Tensor:
        X, w = X / lengthscale, w / lengthscale
        r, q, _ = X.shape
        phi = torch.linalg.solve_triangular(L, matern(Z, X.reshape(r * q, -1)), upper=False)
        P = D @ phi
        B = torch.linalg.solve_triangular(L.mT, P, upper=True).reshape(-1, r, q).transpose(0, 1)
        columns, weighted = phi.reshape(-1, r, q).transpose(0, 1), P.reshape(-1, r, q).transpose(0, 1)
        A = matern(X, X) - columns.mT @ weighted + NOISE * torch.eye(q)
        residual = (y - constant - (columns.mT @ m)).permute(1, 2, 0)
        alpha = torch.cholesky_solve(residual, torch.linalg.cholesky(A))
        weights = (a.unsqueeze(-1) - B @ alpha).permute(2, 0, 1)
        at_inducing = matern(w.reshape(-1, w.shape[-1]), Z).reshape(*weights.shape)
        at_inputs = matern(w, X).squeeze(-2)
        return (constant + (at_inducing * weights).sum(-1) + (at_inputs * alpha.permute(2, 0, 1)).sum(-1)).unsqueeze(-1)

    return mean


def gpytorch_fantasies(model: SVGP, X: Tensor, y: Tensor, w: Tensor) -> Tensor:
    with gpytorch.settings.detach_test_caches(False):
        fantasy = model.variational_strategy.get_fantasy_model(X, y)
        fantasy.eval()
        return fantasy(w).mean


def botorch_fantasies(model: SingleTaskGP, X: Tensor, y: Tensor, w: Tensor) -> Tensor:
    with botorch.settings.propagate_grads(True), gpytorch.settings.detach_test_caches(False):
        conditioned = model.condition_on_observations(X, y.unsqueeze(-1))
        return conditioned.posterior(w).mean.squeeze(-1)


def exact_model(num_observations: int, generator: torch.Generator) -> SingleTaskGP:
    X = torch.rand(num_observations, NUM_DIMS, generator=generator)
    y = (3 * X).sin().sum(-1, keepdim=True)
    model = SingleTaskGP(X, y, outcome_transform=None).eval()
    model.likelihood.noise = NOISE
    model.posterior(X[:1])  # fill the caches that conditioning starts from
    return model


def value_and_gradient(mean: Callable[[Tensor, Tensor, Tensor], Tensor], X: Tensor, y: Tensor, w: Tensor) -> Tensor:
    X, w = X.clone().requires_grad_(True), w.clone().requires_grad_(True)
    value = mean(X, y, w)
    value.sum().backward()
    return value.detach()


def interleaved_medians(
    tasks: dict[str, Callable[[], Tensor]], repeats: dict[str, int]
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Median seconds of each task, the tasks taking turns after one round to warm up, and each one's result."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    results = {name: task() for name, task in tasks.items()}
    for turn in range(max(repeats.values())):
        for name, task in tasks.items():
            if turn < repeats[name]:
                start = time.perf_counter()
                task()
                times[name].append(time.perf_counter() - start)
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}, results


def fantasies(num_inducing: int, num_repeats: int, exact: dict[str, SingleTaskGP], table: Table) -> None:
    generator = torch.Generator().manual_seed(num_inducing)
    model = trained_model(num_inducing, generator)
    gp = sg.from_gpytorch(model)
    X = torch.rand(NUM_RESTARTS, NUM_POINTS, NUM_DIMS, generator=generator)
    y = (3 * X).sin().sum(-1) + 0.3 * torch.randn(NUM_FANTASIES, NUM_RESTARTS, NUM_POINTS, generator=generator)
    w = torch.rand(NUM_FANTASIES, NUM_RESTARTS, 1, NUM_DIMS, generator=generator)
    means = {
        "bare torch": floor(gp),
        "streamgp": partial(ours, gp),
        "GPyTorch SVGP": partial(gpytorch_fantasies, model),
    }
    means |= {name: partial(botorch_fantasies, exact_gp) for name, exact_gp in exact.items()}
    tasks = {name: partial(value_and_gradient, mean, X, y, w) for name, mean in means.items()}
    repeats = {"bare torch": num_repeats, "streamgp": num_repeats, "GPyTorch SVGP": max(num_repeats // 10, 3)}
    medians, values = interleaved_medians(tasks, repeats | dict.fromkeys(exact, 2))
    for name in means:
        reference = dense_reference(exact.get(name, gp), X, y, w)
        error = (values[name][:4, :, 0] - reference).abs().max().item()
        table.add_row(
            str(num_inducing) if name == "bare torch" else "",
            name,
            f"{1e3 * medians[name]:.2f}",
            f"{medians[name] / medians['bare torch']:.2f}",
            f"{medians[name] / medians['streamgp']:.1f}",
            f"{error:.1e}",
        )


def dense_reference(model: sg.SparseGP | SingleTaskGP, X: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """The conditioned mean of the first four fantasies by dense algebra."""
    rows = []
    for i in range(4):
        for j in range(NUM_RESTARTS):
            if isinstance(model, sg.SparseGP):
                moments = condition_dense(model, X[j], y[i, j], NOISE * torch.eye(NUM_POINTS), w[i, j])
            else:
                inputs = torch.cat([model.train_inputs[0], X[j]])
                targets = torch.cat([model.train_targets, y[i, j]])
                noise = NOISE * torch.eye(len(targets))
                moments = exact_gp(model.covar_module, model.mean_module, inputs, targets, noise, w[i, j])
            rows.append(moments.mean)
    return torch.stack(rows).reshape(4, NUM_RESTARTS)


def other_operations(num_repeats: int) -> Table:
    table = Table(title="Other operations (ms)")
    for column in ("p", "condition alone", "variance at 1000", "absorb keep b=1", "b=16", "b=256"):
        table.add_column(column, justify="right")
    for column in ("pivoted b=1", "b=16", "b=256"):
        table.add_column(column, justify="right")
    for p in (25, 100, 250, 500):
        generator = torch.Generator().manual_seed(p)
        gp = sg.from_gpytorch(trained_model(p, generator))
        X = torch.rand(256, NUM_DIMS, generator=generator)
        y = (3 * X).sin().sum(-1)
        w = torch.rand(1000, NUM_DIMS, generator=generator)
        batches = torch.rand(NUM_RESTARTS, NUM_POINTS, NUM_DIMS, generator=generator)
        outcomes = torch.rand(NUM_FANTASIES, NUM_RESTARTS, NUM_POINTS, generator=generator)
        conditioned = gp.condition(X[:3], y[:3], noise_variance=NOISE)
        tasks: dict[str, Callable[[], Any]] = {
            "condition": lambda gp=gp, X=batches, y=outcomes: gp.condition(X, y, noise_variance=NOISE),
            "variance": lambda gp=conditioned, w=w: gp.predict(w).variance,
        }
        for inducing in ("keep", "pivoted"):
            for b in (1, 16, 256):
                tasks[f"{inducing} {b}"] = lambda gp=gp, X=X[:b], y=y[:b], inducing=inducing: gp.absorb(
                    X, y, noise_variance=NOISE, inducing=inducing
                )
        medians, _ = interleaved_medians(tasks, dict.fromkeys(tasks, num_repeats))
        table.add_row(str(p), *(f"{1e3 * seconds:.2f}" for seconds in medians.values()))
    return table


def long_stream(num_steps: tuple[int, ...]) -> Table:
    """Time and size of one step after short and long streams."""
    table = Table(title="absorb, p = 100, b = 1, inducing points kept: does a step depend on what streamed before?")
    for column in ("steps so far", "ms per step (median of the last 500)", "tensors (bytes)"):
        table.add_column(column, justify="right")
    generator = torch.Generator().manual_seed(0)
    gp = sg.from_gpytorch(trained_model(100, generator))
    times: list[float] = []
    for step in range(1, max(num_steps) + 1):
        X = torch.rand(1, NUM_DIMS, generator=generator)
        y = (3 * X).sin().sum(-1)
        start = time.perf_counter()
        gp, _ = gp.absorb(X, y, noise_variance=NOISE, inducing="keep")
        times.append(time.perf_counter() - start)
        if step in num_steps:
            recent = sorted(times[-500:])
            size = sum(
                t.numel() * t.element_size() for t in (gp.inducing_points, gp.whitened_mean, gp.process.whitened_root)
            )
            table.add_row(f"{step}", f"{1e3 * recent[len(recent) // 2]:.3f}", f"{size}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats and sizes, a short stream")
    parser.add_argument(
        "--exact", type=int, nargs="*", default=[160, 1000], help="sizes of the exact GPs; 1000 takes minutes and 13 GB"
    )
    arguments = parser.parse_args()
    is_quick = arguments.quick
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    warnings.filterwarnings("ignore")
    num_repeats = 20 if is_quick else 100
    table = Table(title="Value and gradient of 64 fantasies x 5 restarts, q = 3, d = 6")
    for column in ("p", "method", "ms", "x bare torch", "x streamgp", "largest error of the mean"):
        table.add_column(column, justify="left" if column == "method" else "right")
    generator = torch.Generator().manual_seed(0)
    # The exact models do not depend on p, and are slow: they take turns with the smallest sparse model only.
    exact = {
        f"BoTorch SingleTaskGP n={n}": exact_model(n, generator) for n in ((160,) if is_quick else arguments.exact)
    }
    for p in (25, 100) if is_quick else (25, 100, 250, 500):
        fantasies(p, num_repeats, exact if p == 25 else {}, table)
    console.print(table)
    console.print(other_operations(5 if is_quick else 30))
    console.print(long_stream((1000, 5000) if is_quick else (1000, 100_000)))


if __name__ == "__main__":
    main()
