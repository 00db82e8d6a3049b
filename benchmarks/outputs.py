"""Several outputs: held-out exchange rates, and the cost of fantasies beside bare torch.

    python benchmarks/outputs.py [fx | speed]

*fx*: the 13 exchange rates of 2007 with their own gaps; three more gaps are held out as in the literature on
collaborative outputs (days 50 to 99 of CAD, 100 to 149 of JPY, 150 to 199 of AUD), and the standardised mean squared
error on them is printed, for independent and for correlated outputs of several ranks.

*speed*: value and gradient of 64 fantasies of 4 outputs at 5 restarts of 3 points, beside the same formula with the
same kernel matrices and no library around it (d = 6, 4 latent functions with 50 inducing points each, float64).
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from gpytorch.kernels import MaternKernel
from rich.console import Console
from rich.table import Table
from torch import Tensor

import streamgp as sg
from streamgp.datasets.exchange_rates import CURRENCIES
from streamgp.datasets.tables import read_table
from streamgp.gp.coregionalization import output_rows

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
        rows, wanted, m = output_rows(X, o), output_rows(W, o), len(Z)
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("fx", "speed"))
    part = parser.parse_args().part
    if part in (None, "fx"):
        fx()
    if part in (None, "speed"):
        speed()
