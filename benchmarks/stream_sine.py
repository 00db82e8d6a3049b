r"""A noisy sine, observed point by point: the paper's O-SGPR, which under-fits it, beside ours and batch fits.

1040 points on [-1, 1] in random order, $y = \sin(6x) + \varepsilon$ with noise variance 0.01; 16 come first, the others
one by one, and 16 inducing points. O-SGPR is as in the paper: RBF kernel with unit variance, zero mean, jitter 1e-3,
first trained on 16 points by 400 steps of Adam; then for every block of b rows b steps on the streaming bound
over p + b, with rates 1e-3 for the kernel and noise and 1e-4 for the inducing points. The first fit here is on the
collapsed bound, not the uncollapsed one.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from rich.table import Table
from torch import Tensor

import streamgp as sg
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.settings import StreamSettings

NUM_FIRST, NUM_STREAMED, NUM_INDUCING = 16, 1024, 16
MARKS = (256, 512, 768, 1024)
NOISE_VARIANCE = 0.01
GRID = torch.linspace(-1.0, 1.0, 401, dtype=torch.float64).unsqueeze(-1)


def truth(X: Tensor) -> Tensor:
    return torch.sin(6.0 * X).squeeze(-1)


def noisy_sine(seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    n = NUM_FIRST + NUM_STREAMED
    X = torch.linspace(-1.0, 1.0, n, dtype=torch.float64)[torch.randperm(n, generator=generator)].unsqueeze(-1)
    noise = torch.randn(n, generator=generator, dtype=torch.float64)
    return X, truth(X) + math.sqrt(NOISE_VARIANCE) * noise


@dataclass(frozen=True)
class Site:
    """What O-SGPR carries over: inducing points, the factor of their kernel matrix, and the whitened site."""

    points: Tensor
    factor: Tensor
    precision: Tensor
    pull: Tensor


@dataclass(frozen=True)
class Parameters:
    """What O-SGPR learns."""

    log_lengthscale: Tensor
    log_noise: Tensor
    points: Tensor

    def kernel(self, A: Tensor, B: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((A - B.mT) / self.log_lengthscale.exp()).square())


def streaming_bound(
    parameters: Parameters, old: Site | None, X: Tensor, y: Tensor, *, jitter: float
) -> tuple[Tensor, Site]:
    r"""The collapsed streaming bound up to a constant, and the site after these observations.

    With the whitened site $(\bar\Lambda', \bar\lambda')$ at the old points, $T = L^{-1} K_{zz'} L'^{-\top}$,
    $\bar K = L'^{-1} K_{z'z'} L'^{-\top}$, $P = I + T \bar\Lambda' T^\top + \phi \phi^\top / \sigma^2$ and
    $\bar\lambda = T \bar\lambda' + \phi y / \sigma^2$, the bound is

    $$
    \tfrac12 \bar\lambda^\top P^{-1} \bar\lambda - \tfrac12 \log \lvert P \rvert + \log \mathcal N(y; 0, \sigma^2 I)
    - \tfrac12 \operatorname{tr}(K_{xx} - Q_{xx}) / \sigma^2
    - \tfrac12 \operatorname{tr} \bar\Lambda' (\bar K - T^\top T) .
    $$
    """
    Z, noise = parameters.points, parameters.log_noise.exp()
    eye = torch.eye(len(Z), dtype=Z.dtype)
    L = torch.linalg.cholesky(parameters.kernel(Z, Z) + jitter * eye)
    solve = partial(torch.linalg.solve_triangular, L, upper=False)
    phi = solve(parameters.kernel(Z, X))
    precision, pull = phi @ phi.mT / noise, phi @ y / noise
    lost = torch.zeros((), dtype=Z.dtype)
    if old is not None:
        half = torch.linalg.solve_triangular(old.factor, parameters.kernel(old.points, Z), upper=False)
        T = solve(half.mT)
        K = torch.linalg.solve_triangular(old.factor, parameters.kernel(old.points, old.points), upper=False)
        K = torch.linalg.solve_triangular(old.factor, K.mT, upper=False)
        lost = (old.precision * (K - T.mT @ T)).sum()
        precision, pull = precision + T @ old.precision @ T.mT, pull + T @ old.pull
    L_P = torch.linalg.cholesky(eye + precision)
    half = torch.linalg.solve_triangular(L_P, pull.unsqueeze(-1), upper=False)
    slack = (len(y) - phi.square().sum()) / noise
    density = -0.5 * (y.square().sum() / noise + len(y) * (2 * math.pi * noise).log())
    bound = 0.5 * half.square().sum() - L_P.diagonal().log().sum() + density - 0.5 * (slack + lost)
    return bound, Site(Z.detach(), L.detach(), precision.detach(), pull.detach())


def run_osgpr(X: Tensor, y: Tensor, block: int, *, jitter: float) -> Iterator[float]:
    """RMSE to the truth at each mark."""
    values = (torch.tensor(0.0), torch.tensor(0.0), X[:NUM_FIRST].clone())
    parameters = Parameters(*(value.to(X).requires_grad_(True) for value in values))
    hyperparameters, points = [parameters.log_lengthscale, parameters.log_noise], [parameters.points]

    def optimizer(rate: float, point_rate: float) -> torch.optim.Adam:
        return torch.optim.Adam([{"params": hyperparameters, "lr": rate}, {"params": points, "lr": point_rate}])

    def learn(old: Site | None, rows: slice, *, adam: torch.optim.Adam, num_steps: int) -> Site:
        for _ in range(num_steps):
            adam.zero_grad()
            bound, _ = streaming_bound(parameters, old, X[rows], y[rows], jitter=jitter)
            (-bound / (NUM_INDUCING + block)).backward()
            adam.step()
        with torch.no_grad():
            return streaming_bound(parameters, old, X[rows], y[rows], jitter=jitter)[1]

    site = learn(None, slice(NUM_FIRST), adam=optimizer(0.1, 0.01), num_steps=400)
    adam = optimizer(1e-3, 1e-4)
    for start in range(0, NUM_STREAMED, block):
        rows = slice(NUM_FIRST + start, NUM_FIRST + start + block)
        site = learn(site, rows, adam=adam, num_steps=block)
        if start + block in MARKS:
            with torch.no_grad():
                phi = torch.linalg.solve_triangular(site.factor, parameters.kernel(site.points, GRID), upper=False)
                P = torch.eye(NUM_INDUCING, dtype=X.dtype) + site.precision
                yield _rmse(phi.mT @ torch.linalg.solve(P, site.pull))


def run_ours(X: Tensor, y: Tensor) -> Iterator[float]:
    learner = StreamLearner(StreamSettings(num_inducing=NUM_INDUCING))
    learner, _ = learner.learn(X[:NUM_FIRST], y[:NUM_FIRST])
    for row in range(NUM_FIRST, NUM_FIRST + NUM_STREAMED):
        learner, _ = learner.learn(X[row : row + 1], y[row : row + 1])
        if row + 1 - NUM_FIRST in MARKS:
            yield _rmse(learner.predict(GRID).mean)


def run_batch(X: Tensor, y: Tensor) -> Iterator[float]:
    for mark in MARKS:
        n = NUM_FIRST + mark
        yield _rmse(sg.fit(X[:n], y[:n], num_inducing=NUM_INDUCING, standardize=True).predict(GRID).mean)


def sine_table(num_seeds: int) -> Table:
    """RMSE to the truth, the mean over seeds."""
    torch.set_num_threads(1)
    table = Table(title=f"Noisy sine, p = {NUM_INDUCING}: RMSE to the truth after T rows, means of {num_seeds} seeds")
    for column in ("method", *(f"T = {mark}" for mark in MARKS)):
        table.add_column(column, justify="left" if column == "method" else "right")
    methods: dict[str, Callable[[Tensor, Tensor], Iterator[float]]] = {
        "O-SGPR as in the paper, b = 1": partial(run_osgpr, block=1, jitter=1e-3),
        "O-SGPR as in the paper, b = 16": partial(run_osgpr, block=16, jitter=1e-3),
        "O-SGPR with jitter 1e-8, b = 1": partial(run_osgpr, block=1, jitter=1e-8),
        "streamgp, b = 1": run_ours,
        "batch fit of the rows so far": run_batch,
    }
    for name, run in methods.items():
        errors = torch.tensor([list(run(*noisy_sine(seed))) for seed in range(num_seeds)])
        table.add_row(name, *(f"{error:.4f}" for error in errors.mean(0).tolist()))
    return table


def _rmse(mean: Tensor) -> float:
    return float((mean - truth(GRID)).square().mean().sqrt())
