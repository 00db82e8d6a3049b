"""Several outputs: held-out exchange rates, and the cost of fantasies beside bare torch.

    python benchmarks/outputs.py [fx | speed | fits | tasks]

*fx*: the 13 exchange rates of 2007 with their own gaps; three more gaps are held out as in the literature on
collaborative outputs (days 50 to 99 of CAD, 100 to 149 of JPY, 150 to 199 of AUD), and the standardized mean squared
error on them is printed, for independent and for correlated outputs of several ranks.

*speed*: value and gradient of 64 fantasies of 4 outputs at 5 restarts of 3 points, beside the same formula with the
same kernel matrices and no library around it (d = 6, 4 latent functions with 50 inducing points each, float64).

*fits*: processor seconds and bound of `sg.fit(outputs="lmc")` beside GPyTorch's `LMCVariationalStrategy` with as many
latent functions and inducing points and 1000 steps of Adam, on 200 rows of 3 outputs.

*tasks*: dear evaluations until one is close to the best point of a grid, by expected improvement over that grid from
3 Sobol points, with and without evaluations of a cheap task that is correlated with it; 10 seeds, paired. Declared
before they were run: Currin's exponential function with the cheap version of Xiong, Qian and Wu (2013), and Hartmann's
function of three inputs with the cheapest fidelity of Kandasamy and others (2016), each with 20 cheap evaluations for
each input, until the regret is below 1 % of the range on the grid. The one that the model was made with is Branin's
function with BoTorch's `AugmentedBranin` at fidelity 0.5, whose valleys lie elsewhere, and 24 cheap evaluations, until
the regret is below 0.25.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import gpytorch
import torch
from botorch.test_functions import AugmentedBranin, Hartmann
from gpytorch.kernels import MaternKernel
from rich.console import Console
from rich.table import Table
from torch import Tensor

import streamgp as sg
from paper.datasets.exchange_rates import CURRENCIES
from paper.datasets.tables import read_table
from streamgp.gp.coregionalization import output_rows
from streamgp.models import OnlineMultiTaskGP

HELD_OUT = {"CAD": slice(49, 99), "JPY": slice(99, 149), "AUD": slice(149, 199)}
console = Console()


def exchange_rates() -> tuple[Tensor, Tensor, Tensor]:
    """Days, values with gaps, and values without the held-out gaps."""
    values = read_table("fx/fx2007-processed.csv", columns=list(range(len(CURRENCIES))))
    values = torch.where(values == -1.0, torch.nan, values)
    training = values.clone()
    for name, days in HELD_OUT.items():
        training[days, CURRENCIES.index(name)] = torch.nan
    return torch.arange(len(values), dtype=torch.float64).unsqueeze(-1), values, training


def fx() -> None:
    X, values, training = exchange_rates()
    table = Table("outputs", "rank", *(f"SMSE {name}" for name in HELD_OUT), "mean", "bound", "seconds")
    for outputs, rank in (("independent", None), ("icm", 2), ("lmc", 2)):
        result = sg.fit(X, training, outputs=outputs, rank=rank, num_inducing=30)
        mean = result.gp.predict(X).mean
        console.log(outputs, rank)
        errors = []
        for name, days in HELD_OUT.items():
            j = CURRENCIES.index(name)
            truth = values[days, j]
            errors.append(float((mean[days, j] - truth).square().mean() / truth.var(unbiased=False)))
        table.add_row(
            outputs,
            "" if rank is None else str(rank),
            *(f"{error:.3f}" for error in errors),
            f"{statistics.mean(errors):.3f}",
            f"{result.info.bound:.1f}",
            f"{result.info.seconds:.1f}",
        )
    console.print(table)


def floor(gp: sg.MultiOutputGP) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Conditioning with bare torch, given the kernel as a function of rows."""
    process, kernel = gp.sparse_gp.process, gp.sparse_gp.process.prior.kernel_function.matrix
    L, D, Z, a = process.factor, process.variance_reduction, process.inducing_points, process.mean_weights
    constants, o = gp.sparse_gp.mean.constants, gp.num_outputs

    def value(X: Tensor, Y: Tensor, W: Tensor) -> Tensor:
        rows, wanted, m = output_rows(X, range(o)), output_rows(W, range(o)), len(Z)
        flat = rows.flatten(0, -2)
        Kzx = kernel(Z, flat).unflatten(-1, rows.shape[:-1]).movedim(0, -2)
        phi = torch.linalg.solve_triangular(L, Kzx.movedim(-2, 0).reshape(m, -1), upper=False)
        P = (D @ phi).unflatten(-1, rows.shape[:-1]).movedim(0, -2)
        phi = phi.unflatten(-1, rows.shape[:-1]).movedim(0, -2)
        A = kernel(rows, rows) - phi.mT @ P + 0.01 * torch.eye(rows.shape[-2], dtype=X.dtype)
        L_A = torch.linalg.cholesky(A)
        mean = constants.repeat(X.shape[-2]) + (Kzx.mT @ a)
        alpha = torch.cholesky_solve((Y.flatten(-2) - mean).movedim(0, -1), L_A).movedim(-1, 0)
        B = torch.linalg.solve_triangular(L.mT, P.movedim(-2, 0).reshape(m, -1), upper=True)
        B = B.unflatten(-1, rows.shape[:-1]).movedim(0, -2)
        weights = a - (B @ alpha.movedim(0, -1)).movedim(-1, 0)
        Kwz = kernel(wanted.flatten(0, -2), Z).unflatten(0, wanted.shape[:-1])
        out = constants.repeat(W.shape[-2]) + (Kwz @ weights.unsqueeze(-1)).squeeze(-1)
        return out + (kernel(wanted, rows.expand(*wanted.shape[:-2], *rows.shape[-2:])) @ alpha.unsqueeze(-1)).squeeze(
            -1
        )

    return value


def speed() -> None:
    rng = torch.Generator().manual_seed(0)
    torch.set_default_dtype(torch.float64)
    Z = torch.rand(50, 6, generator=rng)
    gp = sg.MultiOutputGP.from_prior(
        [MaternKernel(2.5) for _ in range(4)], Z, mixing=torch.randn(4, 4, generator=rng), mean=torch.zeros(4)
    )
    data = torch.rand(200, 6, generator=rng)
    gp, _ = gp.absorb(data, torch.randn(200, 4, generator=rng), noise_variance=0.1, inducing="keep")
    X, Y = torch.rand(5, 3, 6, generator=rng), torch.randn(64, 5, 3, 4, generator=rng)
    W = torch.rand(64, 5, 1, 6, generator=rng)
    bare = floor(gp)
    methods = {
        "MultiOutputGP": lambda X, Y, W: gp.condition(X, Y, noise_variance=0.01).predict(W).mean.flatten(-2),
        "bare torch": bare,
    }
    times: dict[str, list[float]] = {name: [] for name in methods}
    values = {}
    for _ in range(12):
        for name, method in methods.items():
            x, w = X.clone().requires_grad_(True), W.clone().requires_grad_(True)
            began = time.perf_counter()
            value = method(x, Y, w)
            value.sum().backward()
            times[name].append(time.perf_counter() - began)
            values[name] = value.detach()
    best = {name: statistics.median(each) for name, each in times.items()}
    error = float((values["MultiOutputGP"] - values["bare torch"]).abs().max())
    ratio = best["MultiOutputGP"] / best["bare torch"]
    console.print({name: f"{1e3 * seconds:.1f} ms" for name, seconds in best.items()}, f"ratio {ratio:.2f}", error)


def fits() -> None:
    rng = torch.Generator().manual_seed(0)
    X = torch.rand(200, 1, generator=rng, dtype=torch.float64)
    shared = torch.stack([(9.0 * X).sin(), (14.0 * X).cos()], dim=-1).squeeze(-2)
    Y = shared @ torch.tensor([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]], dtype=torch.float64)
    Y = Y + 0.1 * torch.randn(200, 3, generator=rng, dtype=torch.float64)
    began = time.process_time()
    result = sg.fit(X, Y, outputs="lmc", rank=2, num_inducing=20)
    spent = time.process_time() - began
    bound, seconds = adam(X, Y, num_latents=5, num_inducing=20, num_steps=1000)
    console.print(
        f"streamgp: bound {result.info.bound:.2f}, {spent:.2f} s, {result.info.reason}; GPyTorch, 1000 "
        f"steps of Adam: {bound:.2f}, {seconds:.2f} s"
    )


def adam(X: Tensor, Y: Tensor, *, num_latents: int, num_inducing: int, num_steps: int) -> tuple[float, float]:
    """The bound that GPyTorch reaches, and the processor seconds it takes."""
    batch = torch.Size([num_latents])

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self) -> None:
            Z = X[:: len(X) // num_inducing][:num_inducing].expand(num_latents, num_inducing, 1).clone()
            q = gpytorch.variational.CholeskyVariationalDistribution(num_inducing, batch_shape=batch)
            base = gpytorch.variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True)
            super().__init__(
                gpytorch.variational.LMCVariationalStrategy(
                    base, num_tasks=Y.shape[-1], num_latents=num_latents, latent_dim=-1
                )
            )
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=batch)
            self.covar_module = gpytorch.kernels.ScaleKernel(MaternKernel(2.5, batch_shape=batch), batch_shape=batch)

        def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    torch.manual_seed(0)
    model = Model().double()
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=Y.shape[-1]).double()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(X))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.02)
    began = time.process_time()
    for _ in range(num_steps):
        optimizer.zero_grad()
        loss = -objective(model(X), Y)
        loss.backward()
        optimizer.step()
    seconds = time.process_time() - began
    return float(objective(model(X), Y).detach()) * len(X), seconds


class TaskProblem(NamedTuple):
    """A dear function to be minimized, a cheap one that resembles it, and when to stop.

    Attributes:
        dear: Function of inputs in the unit cube.
        cheap: The other.
        num_dims: Number of inputs.
        num_steps: Steps of the grid in each dimension.
        num_cheap: Evaluations of the cheap function.
        regret: Where the search ends; a share of the range on the grid if None.
    """

    dear: Callable[[Tensor], Tensor]
    cheap: Callable[[Tensor], Tensor]
    num_dims: int
    num_steps: int
    num_cheap: int
    regret: float | None = None


def branin(unit: Tensor, fidelity: float) -> Tensor:
    low, high = torch.tensor([[-5.0, 0.0], [10.0, 15.0]], dtype=torch.float64)
    inputs = torch.cat([low + (high - low) * unit, unit.new_full((len(unit), 1), fidelity)], dim=-1)
    return AugmentedBranin()(inputs)


def currin(unit: Tensor) -> Tensor:
    """Minus Currin's function, which has its largest value at (0.217, 0)."""
    x, y = unit.unbind(-1)
    bend = torch.where(y > 0, 1.0 - torch.exp(-0.5 / y.clamp_min(1e-12)), 1.0)
    return -bend * (2300.0 * x**3 + 1900.0 * x**2 + 2092.0 * x + 60.0) / (100.0 * x**3 + 500.0 * x**2 + 4.0 * x + 20.0)


def cheap_currin(unit: Tensor) -> Tensor:
    """The mean of four neighbors, as in Xiong, Qian and Wu (2013)."""
    x, y = unit.unbind(-1)
    below = (y - 0.05).clamp_min(0.0)
    corners = [(x + 0.05, y + 0.05), (x + 0.05, below), (x - 0.05, y + 0.05), (x - 0.05, below)]
    return torch.stack([currin(torch.stack(corner, dim=-1)) for corner in corners]).mean(0)


def hartmann(unit: Tensor, change: float) -> Tensor:
    """Hartmann's function of three inputs, with the heights of its bumps changed as in Kandasamy and others (2016)."""
    heights = torch.tensor([1.0, 1.2, 3.0, 3.2]) + change * torch.tensor([0.01, -0.01, -0.1, 0.1])
    function = Hartmann(dim=3)
    squared = function.A * (unit.unsqueeze(-2) - 1e-4 * function.P).square()
    return -(heights * torch.exp(-squared.sum(-1))).sum(-1)


TASKS = {
    "currin": TaskProblem(currin, cheap_currin, 2, 61, 40),
    "hartmann": TaskProblem(partial(hartmann, change=0.0), partial(hartmann, change=2.0), 3, 21, 60),
    "branin": TaskProblem(partial(branin, fidelity=1.0), partial(branin, fidelity=0.5), 2, 61, 24, 0.25),
}


def tasks(seeds: Sequence[int] = range(10)) -> None:
    torch.set_default_dtype(torch.float64)
    for name, problem in TASKS.items():
        with_cheap, without = (
            [dear_evaluations(problem, seed, num_cheap=num_cheap) for seed in seeds]
            for num_cheap in (problem.num_cheap, 0)
        )
        console.print(
            f"{name}: dear evaluations with the cheap task: median {statistics.median(with_cheap):g}, {with_cheap}; "
            f"without: median {statistics.median(without):g}, {without}"
        )


def dear_evaluations(problem: TaskProblem, seed: int, *, num_cheap: int, most: int = 40) -> int:
    """Count evaluations of the dear task until one is close to the minimum; 3 to start with."""
    steps = torch.linspace(0.0, 1.0, problem.num_steps)
    grid = torch.cartesian_prod(*(steps,) * problem.num_dims)
    truth = problem.dear(grid)
    low, high = float(truth.min()), float(truth.max())
    enough = low + (0.01 * (high - low) if problem.regret is None else problem.regret)

    def with_task(unit: Tensor, task: int) -> Tensor:
        return torch.cat([unit, unit.new_full((len(unit), 1), float(task))], dim=-1)

    sobol = torch.quasirandom.SobolEngine(problem.num_dims, scramble=True, seed=seed)
    first, cheap = sobol.draw(3, dtype=torch.float64), sobol.draw(num_cheap, dtype=torch.float64)
    X, y = torch.cat([with_task(first, 0), with_task(cheap, 1)]), torch.cat([problem.dear(first), problem.cheap(cheap)])
    for count in range(3, most):
        best = float(y[X[:, -1] == 0].min())
        if best < enough:
            return count
        model = OnlineMultiTaskGP.fit(X, y.unsqueeze(-1), num_inducing=len(X), max_iterations=60)
        posterior = model.posterior(grid.unsqueeze(-2))
        deviation = posterior.variance.flatten().clamp_min(1e-12).sqrt()
        z = (best - posterior.mean.flatten()) / deviation
        normal = torch.distributions.Normal(0.0, 1.0)
        improvement = deviation * (z * normal.cdf(z) + normal.log_prob(z).exp())
        x = grid[improvement.argmax()].unsqueeze(0)
        X, y = torch.cat([X, with_task(x, 0)]), torch.cat([y, problem.dear(x)])
    return most


PARTS = {"fx": fx, "speed": speed, "fits": fits, "tasks": tasks}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=tuple(PARTS))
    part = parser.parse_args().part
    for name, run in PARTS.items():
        if part in (None, name):
            run()
