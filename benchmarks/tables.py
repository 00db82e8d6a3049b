"""Tables: `sg.GPRegressor` with its defaults beside other GPs, boosted trees and forests.

    python benchmarks/tables.py [--only NAME ...] [--methods NAME ...] [--splits N] [--rows N] [--times N] [--report]

Sets are those of the package `uci_datasets`, if it is installed, with 300 to 50 000 rows and its own test splits; else
what can be had without it: four sets of `paper.datasets`, scikit-learn's diabetes, and two functions (`arm`, the
distance of the end of an arm with eight joints; `hidden`, of 4 of 32 columns), with a tenth of the rows held out at
random. Inputs and targets are standardized by the rows to learn from.

ours: `sg.GPRegressor()`; sklearn: `GaussianProcessRegressor`, a Matérn-5/2 with a lengthscale for each column and noise
that is learned, up to 2000 rows; botorch: `SingleTaskGP`, likewise; svgp: GPyTorch's, 500 points, Adam at .01 on
minibatches of 1024, for `--times` (10) times the processor seconds of ours; boosting: `HistGradientBoostingRegressor`,
forest: `RandomForestRegressor` with 300 trees, linear: ridge regression. The last three have the normal error that they
have on a fifth of the rows when fitted to the others.

Results are added to a file, one line for each method and split, and those that are there are not repeated. Seconds are
of the processor, as machines are shared.
"""

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import gpytorch
import numpy as np
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import RidgeCV
from tests.support.gpytorch_models import SVGP

import streamgp as sg
from paper.datasets.uci import UCI_NAMES, load_uci

RESULTS = Path(__file__).parent / "results" / "tables.jsonl"
MOST_EXACT_ROWS, NUM_POINTS, BATCH, RATE, FEWEST_ROWS, MOST_ROWS = 2000, 500, 1024, 0.01, 300, 50_000


class Table(NamedTuple):
    """Rows to learn from and rows that are held out, both standardized by the former."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Predicted(NamedTuple):
    """Means and standard deviations of the targets that are held out."""

    mean: np.ndarray
    deviation: np.ndarray


def load(name: str, split: int, most_rows: int | None) -> Table:
    """Load one split of a set."""
    if name in UCI_NAMES:
        parts = load_uci(name, split, test_share=0.1)
        return standardized(*(each.numpy() for each in parts_of(parts)), most_rows)
    if name in OWN:
        X, y = OWN[name]()
        order = np.random.default_rng(split).permutation(len(y))
        held_out, learned = order[: len(y) // 10], order[len(y) // 10 :]
        return standardized(X[learned], y[learned], X[held_out], y[held_out], most_rows)
    from uci_datasets import Dataset  # optional, and only looked for where it is used

    X, y, X_test, y_test = Dataset(name).get_split(split=split)
    return standardized(X, y.ravel(), X_test, y_test.ravel(), most_rows)


def parts_of(parts: Any) -> tuple[Any, Any, Any, Any]:
    return parts.X_train, parts.y_train, parts.X_test, parts.y_test


def standardized(X: Any, y: Any, X_test: Any, y_test: Any, most_rows: int | None) -> Table:
    """Standardize by the rows to learn from, at most so many of them."""
    X, y = X[:most_rows].astype(float), y[:most_rows].astype(float)
    width = X.std(0)
    is_kept = width > 1e-12 * np.abs(X).max(0).clip(1e-300)
    center, width = X[:, is_kept].mean(0), width[is_kept]
    level, scale = y.mean(), y.std()
    return Table(
        (X[:, is_kept] - center) / width,
        (y - level) / scale,
        (X_test[:, is_kept] - center) / width,
        (y_test - level) / scale,
    )


def arm() -> tuple[np.ndarray, np.ndarray]:
    """Distance from a target of the end of an arm with eight joints, with little noise."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(-1.2, 1.2, (8000, 8))
    at = np.cumsum(angles, axis=1)
    y = np.hypot(np.cos(at).mean(1) - 0.5, np.sin(at).mean(1) - 0.3)
    return angles, y + 0.02 * y.std() * rng.normal(size=len(y))


def hidden() -> tuple[np.ndarray, np.ndarray]:
    """A function of 4 of 32 columns without a linear part."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (8000, 32))
    f = X[:, 3] * np.cos(2.5 * X[:, 0]) + 0.7 * X[:, 7] * np.sin(2.0 * X[:, 1])
    return X, f + 0.25 * f.std() * rng.normal(size=len(f))


OWN: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "arm": arm,
    "hidden": hidden,
}


def names() -> list[str]:
    """All sets that can be had."""
    try:
        from uci_datasets import all_datasets
    except ModuleNotFoundError:
        return [*OWN, *UCI_NAMES]
    return [name for name, (n, _) in all_datasets.items() if FEWEST_ROWS <= n <= MOST_ROWS]


def ours(table: Table, seconds: float) -> Predicted:
    return Predicted(*sg.GPRegressor().fit(table.X, table.y).predict(table.X_test, return_std=True))


def sklearn_gp(table: Table, seconds: float) -> Predicted:
    kernel = ConstantKernel() * Matern(np.full(table.X.shape[1], math.sqrt(table.X.shape[1])), nu=2.5) + WhiteKernel(
        0.1
    )
    model = GaussianProcessRegressor(kernel, random_state=0).fit(table.X, table.y)
    return Predicted(*model.predict(table.X_test, return_std=True))


def botorch_gp(table: Table, seconds: float) -> Predicted:
    X, y, W = (torch.from_numpy(each) for each in (table.X, table.y, table.X_test))
    low, high = X.min(0).values, X.max(0).values
    model = SingleTaskGP((X - low) / (high - low), y.unsqueeze(-1))
    fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        posterior = model.posterior((W - low) / (high - low), observation_noise=True)
        return Predicted(posterior.mean.squeeze(-1).numpy(), posterior.variance.squeeze(-1).sqrt().numpy())


def svgp(table: Table, seconds: float) -> Predicted:
    X, y, W = (torch.from_numpy(each) for each in (table.X, table.y, table.X_test))
    generator = torch.Generator().manual_seed(0)
    d = X.shape[1]
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=d)).double()
    kernel.base_kernel.lengthscale = math.sqrt(d)
    Z = X[torch.randperm(len(X), generator=generator)[:NUM_POINTS]].clone()
    model = SVGP(Z, kernel=kernel).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=RATE)
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        rows = torch.randperm(len(y), generator=generator)[:BATCH]
        optimizer.zero_grad()
        (-objective(model(X[rows]), y[rows])).backward()
        optimizer.step()
    model.eval(), likelihood.eval()
    with torch.no_grad():
        seen = likelihood(model(W))
        return Predicted(seen.mean.numpy(), seen.variance.sqrt().numpy())


def with_error(make: Callable[[], Any]) -> Callable[[Table, float], Predicted]:
    """Give a method without deviations the one that its errors have on rows that it does not see."""

    def predict(table: Table, seconds: float) -> Predicted:
        cut = 4 * len(table.y) // 5
        errors = make().fit(table.X[:cut], table.y[:cut]).predict(table.X[cut:]) - table.y[cut:]
        mean = make().fit(table.X, table.y).predict(table.X_test)
        return Predicted(mean, np.full(len(mean), math.sqrt(np.mean(errors**2))))

    return predict


METHODS: dict[str, Callable[[Table, float], Predicted]] = {
    "ours": ours,
    "linear": with_error(lambda: RidgeCV(np.logspace(-4, 4, 9))),
    "boosting": with_error(lambda: HistGradientBoostingRegressor(random_state=0)),
    "forest": with_error(lambda: RandomForestRegressor(300, random_state=0)),
    "sklearn": sklearn_gp,
    "botorch": botorch_gp,
    "svgp": svgp,
}


def scores(predicted: Predicted, y: np.ndarray) -> dict[str, float]:
    """Root of the mean squared error, negative log density of a target, and share within the central 90 %."""
    normal = stats.norm(predicted.mean, predicted.deviation)
    return {
        "rmse": float(np.sqrt(np.mean((predicted.mean - y) ** 2))),
        "nlpd": float(-np.mean(normal.logpdf(y))),
        "coverage": float(np.mean(np.abs(normal.cdf(y) - 0.5) < 0.45)),
    }


def read_results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Run what is missing, and add it to the file."""
    done = {(each["set"], each["split"], each["method"], each["rows"]): each for each in read_results(arguments.output)}
    for name in arguments.only or names():
        for split in range(arguments.splits):
            table = load(name, split, arguments.rows)
            for method in arguments.methods:
                key = (name, split, method, len(table.y))
                if key in done or (method in ("sklearn", "botorch") and len(table.y) > MOST_EXACT_ROWS):
                    continue
                mine = done.get((name, split, "ours", len(table.y)))
                if method == "svgp" and mine is None:
                    continue
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted = METHODS[method](table, arguments.times * mine["seconds"] if mine else 0.0)
                seconds = round(time.process_time() - begun, 2)
                line = dict(zip(("set", "split", "method", "rows"), key, strict=True)) | {"columns": table.X.shape[1]}
                line |= {"seconds": seconds} | scores(predicted, table.y_test)
                done[key] = line
                arguments.output.parent.mkdir(exist_ok=True)
                with arguments.output.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def report(path: Path) -> Iterator[str]:
    """Lines of a table for each measure: means over splits, by set and method."""
    results = read_results(path)
    sets = sorted({(each["set"], each["rows"], each["columns"]) for each in results}, key=lambda each: each[1])
    for measure, digits in (("rmse", 3), ("nlpd", 3), ("coverage", 2), ("seconds", 1)):
        yield f"| {measure} | rows | columns | {' | '.join(METHODS)} |"
        yield "| --- " * (3 + len(METHODS)) + "|"
        for name, rows, columns in sets:
            cells = []
            for method in METHODS:
                found = [r[measure] for r in results if (r["set"], r["rows"], r["method"]) == (name, rows, method)]
                cells.append(f"{np.mean(found):.{digits}f}" if found else "")
            yield f"| {name} | {rows} | {columns} | {' | '.join(cells)} |"
        yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", help="sets; all by default")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, help="most rows to learn from")
    parser.add_argument("--times", type=float, default=10.0, help="seconds of svgp, relative to ours")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="print tables of what is there")
    arguments = parser.parse_args()
    if not arguments.report:
        run(arguments)
    print("\n".join(report(arguments.output)))


if __name__ == "__main__":
    main()
