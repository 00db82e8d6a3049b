"""Steps: what does it cost to learn from a stream row by row, in units of the bare update?

    python benchmarks/steps.py [--quick]

The floor is the same update at fixed inducing points in bare torch: kernel vector, triangular solve, rank-one update of
mean and root, nothing checked and nothing reported. All tasks take the rows of one drifting stream in turn, each with a
state of its own, so that inducing points are really exchanged and disturbances of the machine hit all alike.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from rich.console import Console
from rich.table import Table
from torch import Tensor

import streamgp as sg
from streamgp.conditioning.observation import Observation
from streamgp.conditioning.selection import choose_inducing_points
from streamgp.likelihoods import AbstractLikelihood, Bernoulli, NegativeBinomial, Poisson

NUM_DIMS, NOISE, LENGTHSCALE, NUM_BEFORE = 8, 0.1, 3.0, 500
NUM_CLASSES = 4
console = Console()

# Takes a row of inputs and the latent value there; returns whether an inducing point was exchanged.
Step = Callable[[Tensor, Tensor], bool]


@dataclass
class Task:
    """A way to learn from a row, and what it took."""

    step: Step
    seconds: list[float] = field(default_factory=list)
    exchanged: list[bool] = field(default_factory=list)

    def take(self, x: Tensor, f: Tensor) -> None:
        began = time.perf_counter()
        is_exchanged = self.step(x, f)
        self.seconds.append(time.perf_counter() - began)
        self.exchanged.append(is_exchanged)


def stream(num_rows: int) -> tuple[Tensor, Tensor]:
    """Inputs around a center that wanders off, and a smooth function of them."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(num_rows, NUM_DIMS, generator=generator)
    X = X + 0.001 * torch.arange(num_rows).clamp_min(NUM_BEFORE).sub(NUM_BEFORE).unsqueeze(-1)
    return X, X.mul(0.7).sin().sum(-1) / math.sqrt(NUM_DIMS)


def bare_step(gp: sg.SparseGP) -> Step:
    """The floor; the order of its operations is as favorable as we could find."""
    L, Z = gp.process.factor, gp.inducing_points / LENGTHSCALE
    state = {"mean": gp.whitened_mean, "root": gp.process.whitened_root}
    variance = float(gp.kernel.outputscale)

    def step(x: Tensor, f: Tensor) -> bool:
        s = torch.cdist(Z, x / LENGTHSCALE, compute_mode="donot_use_mm_for_euclid_dist").mul_(math.sqrt(5))
        k = s.square().mul_(1 / 3).add_(s).add_(1).mul_(s.neg_().exp_()).mul_(variance)
        phi = torch.linalg.solve_triangular(L, k, upper=False)
        w = (state["root"].mT @ phi).squeeze(-1)
        Rw = state["root"] @ w
        total = NOISE + float(w @ w)
        residual = float(f - state["mean"] @ phi)
        state["mean"] = torch.add(state["mean"], Rw, alpha=residual / total)
        state["root"] = torch.addr(state["root"], Rw, w, alpha=-1.0 / (total + math.sqrt(total * NOISE)))
        return False

    return step


def absorbing_step(gp: sg.SparseGP, inducing: str, likelihood: AbstractLikelihood | None = None) -> Step:
    state = {"gp": gp}
    generator = torch.Generator().manual_seed(1)

    def step(x: Tensor, f: Tensor) -> bool:
        if likelihood is None:
            state["gp"], info = state["gp"].absorb(x, f, noise_variance=NOISE, inducing=inducing)
        else:
            y = likelihood.sample(f, generator=generator)
            state["gp"], info = state["gp"].absorb(x, y, likelihood=likelihood, inducing=inducing)
        return info.num_swapped > 0

    return step


def reselecting_step(gp: sg.SparseGP) -> Step:
    state = {"gp": gp}

    def step(x: Tensor, f: Tensor) -> bool:
        process = state["gp"].process
        observation = Observation.read(
            x,
            f,
            process,
            noise_variance=NOISE,
            likelihood=None,
            sites="variational",
        )
        m = process.inducing_points.shape[-2]
        points = choose_inducing_points(process, observation, num_inducing=m, prior=process.prior)
        inducing = "keep" if points is None else points
        state["gp"], info = state["gp"].absorb(x, f, noise_variance=NOISE, inducing=inducing)
        return info.num_swapped > 0

    return step


def predicting_step(gp: sg.SparseGP) -> Step:
    def step(x: Tensor, _: Tensor) -> bool:
        # A new value each time, as in a stream, so that nothing computed for the last row serves again.
        fresh = sg.SparseGP(gp.process.with_belief(gp.whitened_mean, gp.process.whitened_root))
        prediction = fresh.predict(x)
        _ = prediction.mean, prediction.variance
        return False

    return step


def forgetting_step(gp: sg.SparseGP) -> Step:
    def step(_: Tensor, __: Tensor) -> bool:
        gp.forget(0.99)
        return False

    return step


def classes_step(num_inducing: int, X: Tensor, f: Tensor) -> Step:
    """Several classes, each against the rest, as a batch axis of one GP."""
    kernel = ScaleKernel(
        MaternKernel(2.5, ard_num_dims=NUM_DIMS, batch_shape=torch.Size([NUM_CLASSES])),
        batch_shape=torch.Size([NUM_CLASSES]),
    )
    kernel.base_kernel.lengthscale, kernel.outputscale = LENGTHSCALE, 1.0
    likelihood, generator = Bernoulli(), torch.Generator().manual_seed(3)
    scales = torch.linspace(-1.0, 1.0, NUM_CLASSES).unsqueeze(-1)
    gp = sg.SparseGP.from_prior(kernel, X[:num_inducing])
    y = likelihood.sample(scales * f, generator=generator)
    state = {"gp": gp.absorb(X, y, likelihood=likelihood, inducing="keep")[0]}

    def step(x: Tensor, f: Tensor) -> bool:
        y = likelihood.sample(scales * f, generator=generator)
        state["gp"], info = state["gp"].absorb(x, y, likelihood=likelihood)
        return info.num_swapped > 0

    return step


def quantiles_step(likelihood: AbstractLikelihood) -> Step:
    def step(_: Tensor, f: Tensor) -> bool:
        likelihood.predictive_quantiles(f, torch.full_like(f, 0.3), [0.05, 0.5, 0.95])
        return False

    return step


def start(num_inducing: int, X: Tensor, f: Tensor, likelihood: AbstractLikelihood | None = None) -> sg.SparseGP:
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=NUM_DIMS))
    kernel.base_kernel.lengthscale, kernel.outputscale = LENGTHSCALE, 1.0
    gp = sg.SparseGP.from_prior(kernel, X[:num_inducing])
    if likelihood is None:
        return gp.absorb(X, f, noise_variance=NOISE, inducing="keep")[0]
    y = likelihood.sample(f, generator=torch.Generator().manual_seed(2))
    return gp.absorb(X, y, likelihood=likelihood, inducing="keep")[0]


def measure(num_inducing: int, num_rows: int) -> Table:
    X, f = stream(NUM_BEFORE + num_rows)
    first = X[:NUM_BEFORE], f[:NUM_BEFORE]
    gp = start(num_inducing, *first)
    tasks = {
        "bare torch, fixed points (the floor)": Task(bare_step(gp)),
        "absorb, points kept": Task(absorbing_step(gp, "keep")),
        "absorb, points exchanged": Task(absorbing_step(gp, "pivoted")),
        "absorb, all points chosen anew": Task(reselecting_step(gp)),
        "absorb, Bernoulli, exchanged": Task(
            absorbing_step(start(num_inducing, *first, Bernoulli()), "pivoted", Bernoulli())
        ),
        "absorb, Poisson, exchanged": Task(
            absorbing_step(start(num_inducing, *first, Poisson()), "pivoted", Poisson())
        ),
        f"absorb, {NUM_CLASSES} classes in a batch, exchanged": Task(classes_step(num_inducing, *first)),
        "quantiles, Poisson": Task(quantiles_step(Poisson())),
        "quantiles, negative binomial": Task(quantiles_step(NegativeBinomial(2.0))),
        "predict one row": Task(predicting_step(gp)),
        "forget": Task(forgetting_step(gp)),
    }
    for i in range(NUM_BEFORE, NUM_BEFORE + num_rows):
        for task in tasks.values():
            task.take(X[i : i + 1], f[i : i + 1])
    return report(num_inducing, tasks)


def report(num_inducing: int, tasks: dict[str, Task]) -> Table:
    table = Table(title=f"One row, p = {num_inducing}, d = {NUM_DIMS}, Matern-5/2, float64, one thread")
    for column in ("step", "median (µs)", "in floors", "mean in floors", "exchanged", "an exchange in floors"):
        table.add_column(column, justify="left" if column == "step" else "right")
    floors = next(iter(tasks.values())).seconds
    floor, mean_floor = median(floors), sum(floors) / len(floors)
    for name, task in tasks.items():
        exchanges = [t for t, is_exchanged in zip(task.seconds, task.exchanged, strict=True) if is_exchanged]
        mean = sum(task.seconds) / len(task.seconds)
        table.add_row(
            name,
            f"{1e6 * median(task.seconds):.0f}",
            f"{median(task.seconds) / floor:.2f}",
            f"{mean / mean_floor:.2f}",
            f"{100 * len(exchanges) / len(task.seconds):.1f} %" if exchanges else "",
            f"{median(exchanges) / floor:.1f}" if exchanges else "",
        )
    return table


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 100, 250], help="numbers of inducing points")
    options = parser.parse_args()
    num_rows = 100 if options.quick else 1000
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # small matrices: a second thread only waits
    for num_inducing in options.sizes:
        console.print(measure(num_inducing, num_rows))


if __name__ == "__main__":
    main()
