"""Seconds per ask: the default `Optimizer` against BoTorch's `SingleTaskGP` and qLogNEI, in the same process.

    python benchmarks/ask_seconds.py --sizes 50 500 --threads 1

Every ask follows one new observation, as in a loop; ours starts its fit from the last one, as it does for users, and
BoTorch fits anew, as its tutorials do. Medians of several asks.
"""

import argparse
import time
import warnings

import numpy as np
import torch
from botorch.acquisition.logei import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

import streamgp as sg

NUM_DIMS = 6


def outcome(X: Tensor, generator: torch.Generator, noise: float) -> Tensor:
    wave = torch.sin(3.0 * X).sum(-1) + 3.0 * (X[:, 0] - 0.3).square()
    return wave + noise * torch.randn(len(X), generator=generator, dtype=torch.float64)


def ask_botorch(X: Tensor, y: Tensor) -> None:
    model = SingleTaskGP(X, -y.unsqueeze(-1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    bounds = torch.tensor([[0.0] * NUM_DIMS, [1.0] * NUM_DIMS], dtype=torch.float64)
    optimize_acqf(qLogNoisyExpectedImprovement(model, X), bounds, q=1, num_restarts=5, raw_samples=128)


def measure(size: int, noise: float, num_asks: int) -> None:
    generator = torch.Generator().manual_seed(size)
    X = torch.rand(size - num_asks, NUM_DIMS, generator=generator, dtype=torch.float64)
    y = outcome(X, generator, noise)
    optimizer = sg.Optimizer([(0.0, 1.0)] * NUM_DIMS, maximize=False)
    optimizer.tell(X, y)
    optimizer.ask()  # the first fit, from nothing
    optimizer.cancel()
    ours, theirs = [], []
    for k in range(num_asks):
        new = torch.rand(1, NUM_DIMS, generator=generator, dtype=torch.float64)
        X, y = torch.cat([X, new]), torch.cat([y, outcome(new, generator, noise)])
        optimizer.tell(new, y[-1:])
        began = time.perf_counter()
        optimizer.ask()
        ours.append(time.perf_counter() - began)
        optimizer.cancel()
        if k < 3:
            began = time.perf_counter()
            ask_botorch(X, y)
            theirs.append(time.perf_counter() - began)
    a, b = float(np.median(ours)), float(np.median(theirs))
    print(
        f"n = {size}, noise {noise:g}: {a:.3f} s, BoTorch {b:.3f} s, {a / b:.2f} of it; ours {min(ours):.3f} to "
        f"{max(ours):.3f} s, BoTorch {min(theirs):.3f} to {max(theirs):.3f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", type=int, default=[50, 500])
    parser.add_argument("--noise", nargs="*", type=float, default=[0.05, 0.0])
    parser.add_argument("--asks", type=int, default=6)
    parser.add_argument("--threads", type=int, default=None, help="of torch")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    for size in options.sizes:
        for noise in options.noise:
            measure(size, noise, options.asks)


if __name__ == "__main__":
    main()
