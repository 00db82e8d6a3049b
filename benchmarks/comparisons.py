"""Ranks of utilities after comparisons of random points: ours and BoTorch's model, both by default.

    python benchmarks/comparisons.py [--seeds 3] [--held-out]

Kendall's rank correlation with the utility at 800 other points, on average over seeds, two numbers of comparisons and
two levels of noise (of each utility, in its own standard deviations). `before` is our default until comparisons had a
kernel of their own. The default was chosen on the first six functions; the held-out ones were run once, after that.
"""

import argparse
import math
import statistics
import warnings
from collections.abc import Callable

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models.pairwise_gp import PairwiseGP, PairwiseLaplaceMarginalLogLikelihood
from botorch.test_functions import Ackley, Branin, Hartmann, Levy, Rosenbrock, StyblinskiTang
from scipy.stats import kendalltau, t
from torch import Tensor

import streamgp as sg
from paper.problems import PreferenceCosine
from streamgp.gp.named_kernels import make_kernel

Utility = Callable[[Tensor], Tensor]


def unit(function: object) -> Utility:
    """A function to be minimized, as a utility on the unit cube."""
    lower, upper = function.bounds.double()  # type: ignore[attr-defined]
    return lambda X: -function(lower + (upper - lower) * X)  # type: ignore[operator]


def bowl(X: Tensor) -> Tensor:
    return -((X - 0.3).square() * torch.arange(1.0, 5.0)).sum(-1)


def plane(X: Tensor) -> Tensor:
    return X @ torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0], dtype=torch.float64)


def taste(X: Tensor) -> Tensor:
    """Sweetness that is best in between, more so with acid, and a spice that only matters when it is hot."""
    sweet, acid, spice, heat, salt, color = X.unbind(-1)
    return -3 * (sweet - 0.4 - 0.3 * acid) ** 2 - 2 * (spice - 0.5) ** 2 * heat + 0.5 * salt * (1 - salt) + 0.05 * color


def ridge(X: Tensor) -> Tensor:
    return torch.tanh(4 * (X[:, 0] - X[:, 1])) - (X[:, 2:] - 0.5).square().sum(-1)


CHOSEN_ON: dict[str, tuple[Utility, int]] = {
    "Hartmann-6": (unit(Hartmann(6)), 6),
    "Branin": (unit(Branin()), 2),
    "bowl of 4 inputs": (bowl, 4),
    "cosines of 10 inputs": (PreferenceCosine(), 10),
    "Ackley-3": (unit(Ackley(3)), 3),
    "plane of 5 inputs": (plane, 5),
}
HELD_OUT: dict[str, tuple[Utility, int]] = {
    "Levy-8": (unit(Levy(8)), 8),
    "Rosenbrock-4": (unit(Rosenbrock(4)), 4),
    "Styblinski-Tang-3": (unit(StyblinskiTang(3)), 3),
    "taste of 6 inputs": (taste, 6),
    "ridge of 5 inputs": (ridge, 5),
}


def laplace(X: Tensor, pairs: Tensor, T: Tensor) -> Tensor:
    model = PairwiseGP(X, pairs)
    fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
    mean: Tensor = model.posterior(T).mean.detach().squeeze(-1)
    return mean


def ours(X: Tensor, pairs: Tensor, T: Tensor, *, is_before: bool = False) -> Tensor:
    ends = torch.zeros(X.shape[-1], dtype=torch.float64)
    kernel = make_kernel("matern", ends, ends + 1.0) if is_before else None
    optimizer = sg.Optimizer([(0.0, 1.0)] * X.shape[-1], likelihood="preference", kernel=kernel)
    optimizer.tell_comparison(X[pairs[:, 0]], X[pairs[:, 1]])
    return optimizer.predict(T).mean


def correlations(utility: Utility, num_dims: int, num_pairs: int, noise: float, seed: int) -> tuple[float, ...]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(2 * num_pairs, num_dims, generator=generator, dtype=torch.float64)
    T = torch.rand(800, num_dims, generator=generator, dtype=torch.float64)
    truth = utility(T)
    seen = utility(X) + noise * truth.std() * torch.randn(len(X), generator=generator, dtype=torch.float64)
    pairs = torch.arange(len(X)).reshape(-1, 2)
    pairs = torch.where((seen[pairs[:, 0]] > seen[pairs[:, 1]]).unsqueeze(-1), pairs, pairs.flip(-1))
    means = (laplace(X, pairs, T), ours(X, pairs, T, is_before=True), ours(X, pairs, T))
    return tuple(float(kendalltau(mean, truth).statistic) for mean in means)


def interval(differences: list[float]) -> str:
    """Mean and half width of the t-interval."""
    half = t.ppf(0.975, len(differences) - 1) * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{statistics.mean(differences):+.3f} ± {half:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--held-out", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| utility | PairwiseGP | before | streamgp |\n|---|---|---|---|")
    every = []
    for name, (utility, num_dims) in (HELD_OUT if arguments.held_out else CHOSEN_ON).items():
        rows = [
            correlations(utility, num_dims, num_pairs, noise, seed)
            for num_pairs in (30, 100)
            for noise in (0.05, 0.5)
            for seed in range(arguments.seeds)
        ]
        means = (statistics.mean(column) for column in zip(*rows, strict=True))
        print(f"| {name} | {' | '.join(f'{mean:.3f}' for mean in means)} |", flush=True)
        every.append([statistics.mean(column) for column in zip(*rows, strict=True)])
    print(f"\nstreamgp less PairwiseGP, over functions: {interval([new - rival for rival, _, new in every])}")
    print(f"streamgp less before: {interval([new - old for _, old, new in every])}")


if __name__ == "__main__":
    main()
