"""Sites: how close does filtering with each rule come to the batch solution, and what does it cost?

    python benchmarks/sites.py [--quick]

Bananas, count and binomial streams from a known function, and the volatility of simulated returns. Hyperparameters are
fixed, except for the volatility model, whose are trained on the first returns.
"""

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from rich.console import Console
from rich.table import Table
from torch import Tensor

import streamgp as sg
from paper.datasets import load_bananas
from streamgp.likelihoods import AbstractLikelihood, Bernoulli, Binomial, Poisson, Volatility
from streamgp.linalg import pivoted_cholesky

RULES = ("variational", "laplace", "paper")
console = Console()


def scaled_kernel(base: MaternKernel | RBFKernel, lengthscale: float, variance: float) -> ScaleKernel:
    kernel = ScaleKernel(base).double()
    kernel.outputscale, base.lengthscale = variance, lengthscale
    return kernel


def start(kernel: ScaleKernel, X: Tensor, num_inducing: int) -> sg.SparseGP:
    """The prior, with inducing points chosen among inputs."""
    variance = kernel(X, diag=True).detach()
    chosen = pivoted_cholesky(lambda a, b: kernel(a, b).to_dense().detach(), X, num_inducing, variance=variance)
    return sg.SparseGP.from_prior(kernel, X[chosen.pivots])


def nlpd(gp: sg.SparseGP, likelihood: AbstractLikelihood, X: Tensor, y: Tensor) -> float:
    prediction = gp.predict(X)
    return -likelihood.log_predictive_density(prediction.mean, prediction.variance, y).mean().item()


def error_rate(gp: sg.SparseGP, X: Tensor, y: Tensor) -> float:
    return ((gp.predict(X).mean > 0) != (y > 0.5)).double().mean().item()


def stream_bananas(num_seeds: int) -> None:
    data = load_bananas()
    X, y, test = data.X_train, data.y_train, (data.X_test, data.y_test)
    kernel, likelihood = scaled_kernel(MaternKernel(2.5), 0.6, 6.0), Bernoulli()
    for p in (25, 50):
        batch, _ = start(kernel, X, p).absorb(X, y, likelihood=likelihood, inducing="keep")
        reference = nlpd(batch, likelihood, *test)
        table = Table(
            title=f"Bananas, p = {p}: batch fit on all 400: NLPD {reference:.4f}, error {error_rate(batch, *test):.4f}"
        )
        for column in ("order", "batch size", "rule", "NLPD", "less batch", "worst seed", "error"):
            table.add_column(column, justify="left" if column in ("order", "rule") else "right")
        orders = {"random": [torch.randperm(400, generator=torch.Generator().manual_seed(i)) for i in range(num_seeds)]}
        orders["sorted"] = [X[:, 0].argsort()]
        for order, permutations in orders.items():
            for size in (100, 10, 1):
                for rule in RULES:
                    results = [filter_once(kernel, X[i], y[i], p, size, rule) for i in permutations]
                    values = [nlpd(gp, likelihood, *test) for gp in results]
                    mean, worst = sum(values) / len(values), max(values, key=lambda value: abs(value - reference))
                    error = sum(error_rate(gp, *test) for gp in results) / len(results)
                    row = (
                        order,
                        str(size),
                        rule,
                        f"{mean:.4f}",
                        f"{mean - reference:+.4f}",
                        f"{worst - reference:+.4f}",
                    )
                    table.add_row(*row, f"{error:.4f}")
        console.print(table)


def filter_once(kernel: ScaleKernel, X: Tensor, y: Tensor, p: int, size: int, rule: str) -> sg.SparseGP:
    """Fit the first 100 at once, then filter the rest."""
    likelihood = Bernoulli()
    gp, _ = start(kernel, X[:100], p).absorb(X[:100], y[:100], likelihood=likelihood, inducing="keep")
    batches = list(zip(X[100:].split(size), y[100:].split(size), strict=True))
    for batch in batches:
        gp, _ = gp.absorb(*batch, likelihood=likelihood, sites=rule)
    return gp


def known_functions(num_observations: int) -> Table:
    """Streams from a known function: loss against the batch solution, and calibration."""
    table = Table(title=f"Streams of {num_observations} from f(x) = sin(6 x1) + cos(4 x2), p = 50, b = 10")
    for column in ("likelihood", "method", "NLPD", "less batch", "RMSE of f", "90 % intervals cover"):
        table.add_column(column, justify="left" if column in ("likelihood", "method") else "right")
    generator = torch.Generator().manual_seed(0)

    def function(X: Tensor) -> Tensor:
        return (6 * X[:, 0]).sin() + (4 * X[:, 1]).cos()

    kernel = scaled_kernel(MaternKernel(2.5), 0.5, 1.0)
    X, test = (torch.rand(n, 2, generator=generator) for n in (num_observations, 2000))
    for name, likelihood in (("Poisson", Poisson()), ("Binomial(20)", Binomial(20))):
        y, test_y = (likelihood.sample(function(inputs), generator=generator) for inputs in (X, test))

        def row(method: str, gp: sg.SparseGP, reference: float | None) -> float:
            value = nlpd(gp, likelihood, test, test_y)  # noqa: B023
            prediction = gp.predict(test)
            errors = (prediction.mean - function(test)).abs()
            cover = (errors < 1.6449 * prediction.standard_deviation).double().mean().item()
            difference = "" if reference is None else f"{value - reference:+.4f}"
            rmse = errors.square().mean().sqrt().item()
            table.add_row(name, method, f"{value:.4f}", difference, f"{rmse:.4f}", f"{100 * cover:.1f} %")  # noqa: B023
            return value

        batch, _ = start(kernel, X, 50).absorb(X, y, likelihood=likelihood, inducing="keep")
        reference = row("batch", batch, None)
        for rule in RULES:
            gp, _ = start(kernel, X[:100], 50).absorb(X[:100], y[:100], likelihood=likelihood, inducing="keep")
            for batch_X, batch_y in zip(X[100:].split(10), y[100:].split(10), strict=True):
                gp, _ = gp.absorb(batch_X, batch_y, likelihood=likelihood, sites=rule)
            row(rule, gp, reference)
    return table


def sabr_returns() -> Tensor:
    """Returns of the SABR model, scaled so that their standard deviation is the volatility."""
    generator = np.random.default_rng(2019)
    steps, beta, rho, alpha = 400, 0.9, -0.2, 1.5
    dt = 1 / steps
    forward, volatility, returns = 10.0, 0.2, []
    for _ in range(steps - 1):
        dw, other = generator.normal(0, math.sqrt(dt), 2)
        dz = rho * dw + math.sqrt(1 - rho**2) * other
        step = volatility * forward**beta * dw
        returns.append(step / (forward**beta * math.sqrt(dt)))
        forward, volatility = forward + step, volatility + alpha * volatility * dz
    return torch.tensor(returns)


def train_volatility(X: Tensor, y: Tensor, num_steps: int) -> tuple[ScaleKernel, Volatility]:
    """Kernel and scale function by the variational bound, with q(u) at 40 inducing points; Adam."""
    Z = torch.linspace(0, 400, 40).unsqueeze(-1)
    kernel = scaled_kernel(RBFKernel(), 60.0, 1.0)
    start = Volatility()
    values = {name: value.clone().requires_grad_(True) for name, value in start.learnable().items()}
    mean, root = torch.zeros(40, requires_grad=True), torch.eye(40).mul(0.5).requires_grad_(True)
    parameters = [*kernel.parameters(), *values.values(), mean, root]
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    for _ in range(num_steps):
        optimizer.zero_grad()
        L = torch.linalg.cholesky(kernel(Z).to_dense() + 1e-6 * torch.eye(40))
        phi = torch.linalg.solve_triangular(L, kernel(Z, X).to_dense(), upper=False)
        R = root.tril()
        variance = kernel(X, diag=True) - phi.square().sum(0) + (R.T @ phi).square().sum(0)
        likelihood = start.with_learnable(values)
        divergence = 0.5 * (R.square().sum() + mean.square().sum() - 40) - R.diagonal().abs().log().sum()
        loss = divergence - likelihood.expected_log_density(phi.T @ mean, variance, y).sum()
        loss.backward()
        optimizer.step()
    return kernel, start.with_learnable({name: value.detach() for name, value in values.items()})


def volatility(num_steps: int) -> Table:
    table = Table(
        title="Volatility of SABR returns: 250 first, then 119 of 149 new ones; log density of the 30 held out"
    )
    for column in ("method", "log predictive density", "less refit", "sites bounded at zero"):
        table.add_column(column, justify="left" if column == "method" else "right")
    y = sabr_returns()
    X = torch.arange(len(y), dtype=torch.float64).unsqueeze(-1)
    is_held_out = torch.zeros(len(y), dtype=torch.bool)
    is_held_out[252::5] = True
    new = ~is_held_out & (torch.arange(len(y)) >= 250)
    kernel, likelihood = train_volatility(X[:250], y[:250], num_steps)
    seen = ~is_held_out
    refit_kernel, refit_likelihood = train_volatility(X[seen], y[seen], num_steps)
    Z = torch.linspace(0, 400, 40).unsqueeze(-1)

    def density(gp: sg.SparseGP | sg.ConditionedGP, likelihood: Volatility) -> float:
        prediction = gp.predict(X[is_held_out])
        values = likelihood.log_predictive_density(prediction.mean, prediction.variance, y[is_held_out])
        return values.mean().item()

    refit, _ = sg.SparseGP.from_prior(refit_kernel, Z).absorb(
        X[seen], y[seen], likelihood=refit_likelihood, inducing="keep"
    )
    reference = density(refit, refit_likelihood)
    table.add_row("refit of everything on all 369", f"{reference:.4f}", "", "")
    together, _ = sg.SparseGP.from_prior(kernel, Z).absorb(X[seen], y[seen], likelihood=likelihood, inducing="keep")
    table.add_row(
        "all 369 at once, first kernel",
        f"{density(together, likelihood):.4f}",
        f"{density(together, likelihood) - reference:+.4f}",
        "",
    )
    first, _ = sg.SparseGP.from_prior(kernel, Z).absorb(X[:250], y[:250], likelihood=likelihood, inducing="keep")
    table.add_row(
        "the 250 only", f"{density(first, likelihood):.4f}", f"{density(first, likelihood) - reference:+.4f}", ""
    )
    for rule in RULES:
        conditioned = first.condition(X[new], y[new], likelihood=likelihood, sites=rule)
        value, info = density(conditioned, likelihood), conditioned.site_info
        bounded = "" if info is None else str(info.num_negative)
        table.add_row(f"conditioned on the 119, {rule}", f"{value:.4f}", f"{value - reference:+.4f}", bounded)
    return table


def cost(num_repeats: int) -> Table:
    """Conditioning through sites, in units of conditioning on Gaussian observations."""
    table = Table(
        title="Cost of the sites of b = 100 observations, p = 100, in Gaussian condition calls (interleaved medians)"
    )
    for column in ("likelihood", "rule", "iterations", "Gaussian (ms)", "with sites (ms)", "ratio"):
        table.add_column(column, justify="left" if column in ("likelihood", "rule") else "right")
    generator = torch.Generator().manual_seed(0)
    kernel = scaled_kernel(MaternKernel(2.5), 0.5, 1.0)
    X = torch.rand(1000, 2, generator=generator)
    f = (6 * X[:, 0]).sin() + (4 * X[:, 1]).cos()
    for likelihood in (Bernoulli(), Poisson(), Binomial(20)):
        y = likelihood.sample(f, generator=generator)
        gp, _ = start(kernel, X, 100).absorb(X[:900], y[:900], likelihood=likelihood, inducing="keep")
        for rule in RULES:
            new = X[900:], y[900:]
            tasks: dict[str, Callable[[], object]] = {
                "gaussian": lambda new=new, gp=gp: gp.condition(*new, noise_variance=1.0),
                "sites": lambda new=new, gp=gp, rule=rule, lik=likelihood: gp.condition(
                    *new, likelihood=lik, sites=rule
                ),
            }
            times: dict[str, list[float]] = {name: [] for name in tasks}
            for _ in range(num_repeats):
                for name, task in tasks.items():
                    began = time.perf_counter()
                    task()
                    times[name].append(time.perf_counter() - began)
            gaussian, sites = (1e3 * sorted(values)[num_repeats // 2] for values in times.values())
            info = gp.condition(*new, likelihood=likelihood, sites=rule).site_info
            iterations = "" if info is None else str(info.num_iterations)
            row = (type(likelihood).__name__, rule, iterations, f"{gaussian:.2f}", f"{sites:.2f}")
            table.add_row(*row, f"{sites / gaussian:.1f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds, steps and repeats")
    is_quick = parser.parse_args().quick
    torch.set_default_dtype(torch.float64)
    console.print(cost(11 if is_quick else 51))
    torch.set_num_threads(1)  # small matrices: a second thread only waits
    console.print(known_functions(400 if is_quick else 2000))
    console.print(volatility(100 if is_quick else 600))
    stream_bananas(1 if is_quick else 5)


if __name__ == "__main__":
    main()
