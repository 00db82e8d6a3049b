"""Classes: one softmax of all latent functions, or each class against the rest?

    python benchmarks/classes.py [--quick]

Both have a batch of GPs with the same inducing points. Lengthscale and variance are chosen for each by the log loss on
a quarter of the training rows, and judged on test rows that neither saw. Probabilities of one against the rest are
normalized, as `StreamingGPClassifier` does.
"""

import argparse
import time
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from torch import Tensor

import streamgp as sg
from streamgp.likelihoods import Bernoulli, Softmax

LENGTHSCALES, VARIANCES = (1.0, 3.0), (5.0, 30.0, 200.0)
NUM_INDUCING = 60
console = Console(width=120)


@dataclass(frozen=True)
class Method:
    """A way to learn classes."""

    name: str

    def learn(self, gp: sg.SparseGP, X: Tensor, y: Tensor, num_classes: int) -> sg.SparseGP:
        if self.name == "softmax":
            return gp.absorb(X, y, likelihood=Softmax(num_classes), inducing="keep")[0]
        return gp.absorb(X, one_hot(y, num_classes), likelihood=self.binary, inducing="keep")[0]

    def probabilities(self, gp: sg.SparseGP, X: Tensor, num_classes: int) -> Tensor:
        latent = gp.predict(X)
        if self.name == "softmax":
            return Softmax(num_classes).predictive_probabilities(latent.mean, latent.variance)
        each = self.binary.predictive_mean(latent.mean, latent.variance)
        return each / each.sum(0)

    @property
    def binary(self) -> Bernoulli:
        return Bernoulli("probit" if self.name.endswith("probit") else "logit")


METHODS = [Method("softmax"), Method("one against the rest, logit"), Method("one against the rest, probit")]


def one_hot(y: Tensor, num_classes: int) -> Tensor:
    return (y == torch.arange(num_classes).unsqueeze(-1)).double()


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    digits = load_digits()
    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "digits": (PCA(10, random_state=0).fit_transform(digits.data), digits.target),
    }
    try:
        from river.datasets import ImageSegments
    except ImportError:
        return sets
    rows = list(ImageSegments())
    labels = {label: index for index, label in enumerate(sorted({y for _, y in rows}))}
    sets["image segments"] = (
        np.array([list(x.values()) for x, _ in rows], dtype=float),
        np.array([labels[y] for _, y in rows]),
    )
    return sets


def prior(lengthscale: float, variance: float, Z: Tensor, num_classes: int) -> sg.SparseGP:
    shape = torch.Size([num_classes])
    kernel = ScaleKernel(MaternKernel(2.5, batch_shape=shape), batch_shape=shape)
    kernel.base_kernel.lengthscale, kernel.outputscale = lengthscale * Z.shape[-1] ** 0.5, variance
    return sg.SparseGP.from_prior(kernel, Z)


def log_loss(method: Method, gp: sg.SparseGP, X: Tensor, y: Tensor, num_classes: int) -> float:
    p = method.probabilities(gp, X, num_classes).gather(0, y.long().unsqueeze(0))
    return -float(p.clamp_min(1e-300).log().mean())


def compare(X: np.ndarray, y: np.ndarray, seed: int, most_rows: int) -> dict[str, tuple[float, float, float]]:
    """Log loss, seconds to learn all rows at once, and milliseconds for each of some single rows."""
    order = np.random.default_rng(seed).permutation(len(X))[:most_rows]
    num_train = int(0.6 * len(order))
    scaled = (X - X[order[:num_train]].mean(0)) / (X[order[:num_train]].std(0) + 1e-9)
    inputs, targets = torch.tensor(scaled[order]), torch.tensor(y[order]).double()
    num_classes, part = int(y.max()) + 1, int(0.75 * num_train)
    Z = inputs[: min(NUM_INDUCING, part)]
    results = {}
    for method in METHODS:
        losses = {}
        for setting in product(LENGTHSCALES, VARIANCES):
            gp = method.learn(prior(*setting, Z, num_classes), inputs[:part], targets[:part], num_classes)
            losses[setting] = log_loss(method, gp, inputs[part:num_train], targets[part:num_train], num_classes)
        best = min(losses, key=lambda setting: losses[setting])
        began = time.perf_counter()
        gp = method.learn(prior(*best, Z, num_classes), inputs[:num_train], targets[:num_train], num_classes)
        seconds = time.perf_counter() - began
        loss = log_loss(method, gp, inputs[num_train:], targets[num_train:], num_classes)
        began = time.perf_counter()
        for i in range(10):
            method.learn(gp, inputs[i : i + 1], targets[i : i + 1], num_classes)
        results[method.name] = loss, seconds, 100.0 * (time.perf_counter() - began)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and rows")
    options = parser.parse_args()
    num_seeds, most_rows = (3, 250) if options.quick else (10, 1000)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    for name, (X, y) in data_sets().items():
        table = Table(title=f"{name}: {num_seeds} splits of at most {most_rows} rows")
        for column in ("method", "test log loss", "less softmax's (paired)", "all rows (s)", "one row (ms)"):
            table.add_column(column)
        runs = [compare(X, y, seed, most_rows) for seed in range(num_seeds)]
        first = np.array([run["softmax"][0] for run in runs])
        for method in METHODS:
            loss, seconds, row = (np.array([run[method.name][k] for run in runs]) for k in range(3))
            gap = loss - first
            error = gap.std(ddof=1) / len(gap) ** 0.5
            table.add_row(
                method.name,
                f"{loss.mean():.4f}",
                f"{gap.mean():+.4f} ± {error:.4f}",
                f"{np.median(seconds):.2f}",
                f"{np.median(row):.1f}",
            )
        console.print(table)


if __name__ == "__main__":
    main()
