"""Evidence of any kind: how exact conditioning is, and what areas, signs, grades and bounds are worth.

    python benchmarks/evidence.py [--parts 1 2 3 4 5 6] [--seeds 5]

1. Every pair of kinds of evidence with five kernels, in both precisions, against derivatives by differences in sixty
   digits and explicit inverses (needs a checkout, for tests/support).
2. Optimization with gradients: Levy in 6 and Rosenbrock in 8 dimensions, 8 evaluations with gradients beside 30 of
   values alone, by the defaults.
3. Districts to pixels: maps of three lengthscales, 40 districts of 50 pixels; log density of pixels, beside district
   means and a GP on centroids; counts with populations likewise, beside averages of log rates and the model of the R
   package disaggregation with a Laplace approximation.
4. Monotone regression on 15 noisy rows: signs of slopes, beside isotonic regression and a plain GP.
5. Grades (needs statsmodels): an ordinal GP, beside statsmodels' ordered probit and a Gaussian GP on grades.
6. Detection limits: half of the values below the limit, beside dropping them and half of the limit.

Intervals are 95 % of the t distribution over seeds.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy.optimize
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from rich.console import Console
from rich.table import Table
from scipy import stats
from torch import Tensor

import streamgp as sg

console = Console(width=120)
Scores = dict[str, list[float]]


def interval(values: list[float]) -> str:
    """Mean and half width of the interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.3f} ± {half:.3f}"


def show(title: str, scores: Scores, *, than: str) -> None:
    """Print each method, and how much another is better, paired by seed."""
    table = Table("method", "mean", f"less {than}", title=title)
    for name, values in scores.items():
        gap = [a - b for a, b in zip(values, scores[than], strict=True)]
        table.add_row(name, interval(values), "" if name == than else interval(gap))
    console.print(table)


def log_density(y: Tensor, mean: Tensor, variance: Tensor) -> float:
    """Mean log density of values."""
    density = -0.5 * ((y - mean).square() / variance + (2 * math.pi * variance).log())
    return float(density.mean())


def exactness() -> None:
    """Part 1."""
    from tests.conditioning.test_evidence import KINDS, errors, kinds, make_gp
    from tests.support.dense_evidence import KERNELS, dense_belief

    table = Table(
        "kernel", "float64", "float32", "float32 before", "ratio", title="largest error of mean and covariance"
    )
    for name in KERNELS:
        worst: dict[torch.dtype, float] = {}
        before = 0.0
        for dtype in (torch.float64, torch.float32):
            gp = make_gp(name, dtype)
            dense = dense_belief(gp, name)
            rng = torch.Generator().manual_seed(0)
            evidence, rows = kinds(rng, dtype)
            tests, test_rows = kinds(rng, dtype)
            test = sg.evidence.combine(*(tests[kind] for kind in KINDS))
            every = [row for kind in KINDS for row in rows[kind]]
            wanted = [row for kind in KINDS for row in test_rows[kind]]
            mean, joint = dense.moments(every + wanted)
            n = len(every)
            if dtype == torch.float32:
                before = errors(gp.predict(test), (mean[n:], joint[n:, n:]))
            sizes = [len(rows[kind]) for kind in KINDS]
            starts = dict(zip(KINDS, np.cumsum([0, *sizes[:-1]]), strict=True))
            found = []
            for pair in combinations_with_replacement(KINDS, 2):
                index = np.concatenate([starts[kind] + np.arange(len(rows[kind])) for kind in pair])
                y = torch.randn(len(index), generator=rng, dtype=torch.float64).to(dtype)
                after = gp.condition(sg.evidence.combine(*(evidence[kind] for kind in pair)), y, noise_variance=0.05)
                A = joint[np.ix_(index, index)] + float(torch.tensor(0.05, dtype=dtype)) * np.eye(len(index))
                gain = joint[n:, index] @ np.linalg.inv(A)
                moved = mean[n:] + gain @ (y.double().numpy() - mean[index])
                found.append(errors(after.predict(test), (moved, joint[n:, n:] - gain @ joint[index, n:])))
            worst[dtype] = max(found)
        double, single = worst[torch.float64], worst[torch.float32]
        table.add_row(name, f"{double:.1e}", f"{single:.1e}", f"{before:.1e}", f"{single / before:.1f}")
    console.print(table)


def levy(X: Tensor) -> Tensor:
    """Least at one, with many other minima, on -10 … 10."""
    w = 1.0 + (X - 1.0) / 4.0
    first, last = (torch.pi * w[..., 0]).sin().square(), w[..., -1]
    middle = (w[..., :-1] - 1.0).square() * (1.0 + 10.0 * (torch.pi * w[..., :-1] + 1.0).sin().square())
    return first + middle.sum(-1) + (last - 1.0).square() * (1.0 + (2.0 * torch.pi * last).sin().square())


def rosenbrock(X: Tensor) -> Tensor:
    """Least at one, along a bent valley, on -5 … 10."""
    valley = 100.0 * (X[..., 1:] - X[..., :-1].square()).square()
    return (valley + (X[..., :-1] - 1.0).square()).sum(-1)


def optimum_with_gradients(num_seeds: int, first_seed: int = 0) -> None:
    """Part 2."""
    problems: dict[str, tuple[Callable[[Tensor], Tensor], list[tuple[float, float]]]] = {
        "Levy-6": (levy, [(-10.0, 10.0)] * 6),
        "Rosenbrock-8": (rosenbrock, [(-5.0, 10.0)] * 8),
    }
    for name, (function, bounds) in problems.items():
        scores: Scores = {"8 gradients": [], "8 values": [], "30 values": []}
        for seed in range(first_seed, first_seed + num_seeds):
            for num_evaluations, has_gradients in ((8, True), (30, False)):
                optimizer = sg.Optimizer(bounds, maximize=False, seed=seed)
                for _ in range(num_evaluations):
                    X = optimizer.ask().requires_grad_()
                    y = function(X)
                    (slopes,) = torch.autograd.grad(y.sum(), X)
                    optimizer.tell(X.detach(), y.detach(), gradient=slopes if has_gradients else None)
                best = optimizer.y[:, 0].log10().cummin(0).values
                if has_gradients:
                    scores["8 gradients"].append(float(best[-1]))
                else:
                    scores["8 values"].append(float(best[7]))
                    scores["30 values"].append(float(best[-1]))
        console.print({key: [round(one, 2) for one in values] for key, values in scores.items()})
        show(f"{name}: logarithm to base ten of the least value", scores, than="8 gradients")


def pixels() -> tuple[Tensor, Tensor]:
    """Centers of 2000 pixels of the unit square, and their districts, 40 of 50."""
    x, y = torch.meshgrid(torch.arange(50), torch.arange(40), indexing="ij")
    X = torch.stack([(x.flatten() + 0.5) / 50, (y.flatten() + 0.5) / 40], dim=-1).double()
    return X, (x // 10 + 5 * (y // 5)).flatten()


def centroids(X: Tensor, districts: Tensor) -> Tensor:
    """Mean inputs of districts."""
    return torch.stack([X[districts == g].mean(0) for g in range(40)])


def districts_to_pixels(num_seeds: int) -> None:
    """Part 3, of averages with Gaussian noise."""
    X, districts = pixels()
    for lengthscale in (0.15, 0.3, 0.6):
        scores: Scores = {"areas": [], "centroids": [], "district means": []}
        seconds = []
        for seed in range(num_seeds):
            rng = torch.Generator().manual_seed(seed)
            f = draw(X, lengthscale, rng)
            areas = sg.evidence.average(X, districts)
            y = areas.sums(f[areas_order(districts)]) + 0.1 * torch.randn(40, generator=rng, dtype=torch.float64)
            result = sg.fit(areas, y, num_inducing=60)
            by_center = sg.fit(centroids(X, districts), y, num_inducing=40)
            for name, fitted in (("areas", result), ("centroids", by_center)):
                prediction = fitted.predict(X)
                scores[name].append(log_density(f, prediction.mean, prediction.variance + 1e-6))
            spread = y.var().expand(len(X))
            scores["district means"].append(log_density(f, y[districts], spread))
            held, _ = result.gp.absorb(areas.select(torch.arange(39)), y[:39], noise_variance=0.01, inducing="keep")
            began = time.perf_counter()
            held.absorb(areas.select(torch.tensor([39])), y[39:], noise_variance=0.01, inducing="keep")
            seconds.append(time.perf_counter() - began)
        title = f"log density of pixels, lengthscale {lengthscale}; a new district takes {1e3 * min(seconds):.1f} ms"
        show(title, scores, than="areas")


def areas_order(districts: Tensor) -> Tensor:
    """The order in which groups hold their inputs."""
    return torch.argsort(districts, stable=True)


def draw(X: Tensor, lengthscale: float, rng: torch.Generator) -> Tensor:
    """A function of unit variance."""
    kernel = MaternKernel(2.5).double()
    kernel.lengthscale = lengthscale
    with torch.no_grad():
        K = kernel(X).to_dense() + 1e-8 * torch.eye(len(X), dtype=torch.float64)
        return torch.linalg.cholesky(K) @ torch.randn(len(X), generator=rng, dtype=torch.float64)


def rates_of_pixels(num_seeds: int) -> None:
    """Part 3, of counts of districts with a population in each pixel."""
    X, districts = pixels()
    order = areas_order(districts)
    for lengthscale in (0.15, 0.3, 0.6):
        scores: Scores = {"rates": [], "averages": [], "centroids": [], "Laplace": []}
        seconds: Scores = {"rates": [], "Laplace": []}
        for seed in range(num_seeds):
            rng = torch.Generator().manual_seed(seed)
            f = draw(X, lengthscale, rng)
            people = 0.1 + torch.rand(len(X), generator=rng, dtype=torch.float64)
            areas = sg.evidence.total(X, districts, people)
            y = torch.poisson(areas.sums((f - 1.0).exp()[order]), generator=rng)
            population = areas.sums(torch.ones(len(X), dtype=torch.float64))
            counts = sg.likelihoods.Poisson(population)
            rates = sg.evidence.average(X, districts, people, rates=True)
            result = sg.fit(rates, y, likelihood=counts, num_inducing=60)
            prior = sg.SparseGP.from_prior(result.gp.kernel, result.gp.inducing_points, mean=result.gp.mean)
            first, last = torch.arange(39), torch.tensor([39])
            held, _ = prior.absorb(
                rates.select(first), y[:39], likelihood=sg.likelihoods.Poisson(population[:39]), inducing="keep"
            )
            began = time.perf_counter()
            held.absorb(rates.select(last), y[39:], likelihood=sg.likelihoods.Poisson(population[39:]), inducing="keep")
            seconds["rates"].append(time.perf_counter() - began)
            fits = {
                "rates": result,
                "averages": sg.fit(sg.evidence.average(X, districts, people), y, likelihood=counts, num_inducing=60),
                "centroids": sg.fit(centroids(X, districts), y, likelihood=counts, num_inducing=40),
            }
            for name, one in fits.items():
                prediction = one.predict(X)
                scores[name].append(log_density(f - 1.0, prediction.mean, prediction.variance + 1e-6))
            *moments, taken = laplace_of_districts(X, rates, y, population, result.gp.inducing_points)
            seconds["Laplace"].append(taken)
            scores["Laplace"].append(log_density(f - 1.0, moments[0], moments[1] + 1e-6))
        update = ", ".join(f"{name} {1e3 * min(values):.1f} ms" for name, values in seconds.items())
        title = f"log density of log rates of pixels, lengthscale {lengthscale}; one district more takes {update}"
        show(title, scores, than="rates")


def laplace_of_districts(X: Tensor, rows: sg.evidence.Evidence, y: Tensor, population: Tensor, Z: Tensor) -> Any:
    """The model of the R package disaggregation, fitted by its own method: counts of districts from a field at nodes.

    The mode of the field is found by L-BFGS, its hyperparameters by L-BFGS on Laplace's approximation of the evidence,
    with slopes by differences, under the default's priors of no more than weak information.

    Returns:
        Mean and variance of log rates of pixels, and the seconds that the mode takes once more.
    """
    kernel = ScaleKernel(MaternKernel(2.5)).double()
    state = {"u": torch.zeros(len(Z) + 1, dtype=torch.float64)}

    def field(theta: np.ndarray, inputs: Tensor) -> Tensor:
        kernel.base_kernel.lengthscale, kernel.outputscale = math.exp(theta[0]), math.exp(theta[1])
        K = kernel(Z).to_dense() + 1e-8 * torch.eye(len(Z), dtype=torch.float64)
        phi = torch.linalg.solve_triangular(torch.linalg.cholesky(K), kernel(Z, inputs).to_dense(), upper=False)
        return torch.cat([phi.mT, 3.0 * torch.ones(len(inputs), 1, dtype=torch.float64)], -1).detach()

    def loss(u: Tensor, A: Tensor) -> Tensor:
        rate = population * rows.sums((A @ u).exp())
        return (rate - y * rate.log()).sum() + 0.5 * u.square().sum()

    def mode(A: Tensor) -> Tensor:
        u = state["u"].clone().requires_grad_()
        search = torch.optim.LBFGS([u], max_iter=60, line_search_fn="strong_wolfe", tolerance_grad=1e-6)

        def closure() -> Tensor:
            search.zero_grad()
            value = loss(u, A)
            value.backward()
            return value

        search.step(closure)
        state["u"] = u.detach()
        return state["u"]

    def precision(u: Tensor, A: Tensor) -> Tensor:
        found: Tensor = torch.autograd.functional.hessian(lambda each: loss(each, A), u)
        return found

    def objective(theta: np.ndarray) -> float:
        with torch.no_grad():
            A = field(theta, rows.points)
        u = mode(A)
        prior = 0.5 * float(((theta - np.array([-1.0, 0.0])) ** 2).sum())
        return float(loss(u, A) + 0.5 * torch.logdet(precision(u, A))) + prior

    start = np.array([math.log(0.3), 0.0])
    found = scipy.optimize.minimize(objective, start, method="L-BFGS-B", options={"maxiter": 12, "eps": 1e-3})
    with torch.no_grad():
        A, B = field(found.x, rows.points), field(found.x, X)
    state["u"] = state["u"] * 0.9
    began = time.perf_counter()
    u = mode(A)
    factor = torch.linalg.cholesky(precision(u, A))
    seconds = time.perf_counter() - began
    spread = torch.linalg.solve_triangular(factor, B.mT, upper=False).square().sum(0)
    return B @ u, spread, seconds


def monotone(num_seeds: int) -> None:
    """Part 4."""
    from sklearn.isotonic import IsotonicRegression

    grid = torch.linspace(0.0, 1.0, 201, dtype=torch.float64).unsqueeze(-1)
    truths: dict[str, Callable[[Tensor], Tensor]] = {
        "step": lambda x: torch.sigmoid(20 * (x - 0.5)),
        "root": lambda x: x.sqrt(),
        "plateaus": lambda x: x + (4 * math.pi * x).sin() / (4 * math.pi),
    }
    for title, truth in truths.items():
        scores: Scores = {"signs": [], "plain GP": [], "isotonic": []}
        falls: dict[str, float] = {}
        for seed in range(num_seeds):
            rng = torch.Generator().manual_seed(seed)
            X = torch.rand(15, 1, generator=rng, dtype=torch.float64)
            y = truth(X[:, 0]) + 0.1 * torch.randn(15, generator=rng, dtype=torch.float64)
            plain = sg.fit(X, y, kernel=ScaleKernel(RBFKernel()), num_inducing=15)
            noise = float(plain.likelihood.noise_variance)
            points = torch.linspace(-0.1, 1.1, 30, dtype=torch.float64).unsqueeze(-1)
            start = sg.SparseGP.from_prior(plain.gp.kernel, points, mean=plain.gp.mean)
            held, _ = start.absorb(X, y, noise_variance=noise, inducing="keep")
            signs = held.condition_increasing(grid, along=[1.0])
            fitted = {"signs": signs.predict(grid).mean, "plain GP": plain.predict(grid).mean}
            steps = IsotonicRegression(out_of_bounds="clip").fit(X[:, 0].numpy(), y.numpy())
            fitted["isotonic"] = torch.from_numpy(steps.predict(grid[:, 0].numpy()))
            for name, values in fitted.items():
                scores[name].append(float((values - truth(grid[:, 0])).square().mean().sqrt()))
                fall = float((values.cummax(0).values - values).max() / (values.max() - values.min()).clamp_min(1e-9))
                falls[name] = max(falls.get(name, 0.0), fall)
        worst = ", ".join(f"{name} {100 * fall:.2f} %" for name, fall in falls.items())
        show(f"RMSE, {title}; largest fall within the range: {worst}", scores, than="signs")


def grades(num_seeds: int) -> None:
    """Part 5."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    scores: Scores = {"ordinal GP": [], "ordered probit": [], "Gaussian GP": []}
    for seed in range(num_seeds):
        rng = torch.Generator().manual_seed(seed)
        X = torch.rand(500, 3, generator=rng, dtype=torch.float64)
        latent = 2.5 * (5 * X[:, 0]).sin() + 2 * X[:, 1] + torch.randn(500, generator=rng, dtype=torch.float64)
        y = (latent.unsqueeze(-1) > torch.tensor([-1.0, 0.0, 0.5, 3.0])).sum(-1)
        train, test = slice(0, 250), slice(250, 500)
        fitted = sg.fit(X[train], y[train], likelihood=sg.likelihoods.Ordinal.of(5), num_inducing=40)
        p = fitted.predict(X[test])
        density = fitted.likelihood.log_predictive_density(p.mean, p.variance, y[test].double())
        scores["ordinal GP"].append(float(density.mean()))
        linear = OrderedModel(y[train].numpy(), X[train].numpy(), distr="probit").fit(method="bfgs", disp=False)
        shares = np.asarray(linear.predict(X[test].numpy()))
        scores["ordered probit"].append(float(np.log(shares[np.arange(250), y[test].numpy()]).mean()))
        plain = sg.fit(X[train], y[train].double(), num_inducing=40)
        p = plain.predict(X[test])
        deviation = (p.variance + plain.likelihood.noise_variance).sqrt()
        edges = torch.tensor([-math.inf, 0.5, 1.5, 2.5, 3.5, math.inf], dtype=torch.float64)
        cumulative = torch.special.ndtr((edges - p.mean.unsqueeze(-1)) / deviation.unsqueeze(-1))
        mass = cumulative.diff(dim=-1).gather(-1, y[test].unsqueeze(-1)).clamp_min(1e-9)
        scores["Gaussian GP"].append(float(mass.log().mean()))
    show("log probability of grades", scores, than="ordinal GP")


def limits(num_seeds: int) -> None:
    """Part 6."""
    scores: Scores = {"censored": [], "dropped": [], "half the limit": []}
    for seed in range(num_seeds):
        rng = torch.Generator().manual_seed(seed)
        X = torch.rand(200, 2, generator=rng, dtype=torch.float64)
        f = 1.0 + (6 * X[:, 0]).sin() + X[:, 1]
        y = f + 0.2 * torch.randn(200, generator=rng, dtype=torch.float64)
        limit = float(y[:100].median())
        seen, test = y[:100].clamp_min(limit), slice(100, 200)
        above = seen > limit
        censored = sg.fit(X[:100], seen, likelihood=sg.likelihoods.Censored(0.1, lower=limit), num_inducing=30)
        dropped = sg.fit(X[:100][above], seen[above], num_inducing=30)
        halved = sg.fit(X[:100], torch.where(above, seen, 0.5 * limit), num_inducing=30)
        for name, one in (("censored", censored), ("dropped", dropped), ("half the limit", halved)):
            p = one.predict(X[test])
            scores[name].append(log_density(y[test], p.mean, p.variance + one.likelihood.noise_variance))
    show("log density of values that were not cut off", scores, than="censored")


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0, help="Of part 2.")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    parts: dict[int, list[Callable[[], None]]] = {
        1: [exactness],
        2: [lambda: optimum_with_gradients(arguments.seeds, arguments.first_seed)],
        3: [lambda: districts_to_pixels(arguments.seeds), lambda: rates_of_pixels(arguments.seeds)],
        4: [lambda: monotone(arguments.seeds)],
        5: [lambda: grades(arguments.seeds)],
        6: [lambda: limits(arguments.seeds)],
    }
    for part in arguments.parts:
        for run in parts[part]:
            run()


if __name__ == "__main__":
    main()
