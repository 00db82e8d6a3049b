"""Tables: `GPRegressor` and `GPClassifier` with their defaults beside other GPs, boosted trees, forests and lines.

    python benchmarks/tables.py [--only NAME ...] [--methods NAME ...] [--splits N] [--times N] [--report]

Sets, and which of them were left untouched, are those of `table_sets.py`. Ours and boosting get tables as they are; for
the others words become ones and zeros (twenty of each column), gaps medians with one more column that says so, and all
is standardized. Targets are standardized by the rows to learn from.

ours: `sg.GPRegressor()`; plain: with `warp=None`; sklearn: `GaussianProcessRegressor`, a Matérn-5/2 with a lengthscale
for each column and noise that is learned, up to 2000 rows; botorch: `SingleTaskGP`, likewise; svgp: GPyTorch's, 500
points, Adam at .01 on minibatches of 1024, for `--times` (10) times the processor seconds of ours; boosting:
`HistGradientBoostingRegressor`, forest: `RandomForestRegressor` with 300 trees, linear: ridge regression. The last
three have the normal error that they have on a fifth of the rows when fitted to the others. Of classes: ours,
`GPClassifier()`; rest: `GPClassifier` for each class against all others; boosting, forest, and linear, a logistic
regression.

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
import pandas as pd
import torch
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from table_sets import CLASSES, SETS, UNTOUCHED, UNTOUCHED_CLASSES, Missing, Split, load
from tests.support.gpytorch_models import SVGP

import streamgp as sg

RESULTS = Path(__file__).parent / "results" / "tables.jsonl"
MOST_EXACT_ROWS, NUM_POINTS, BATCH, RATE = 2000, 500, 1024, 0.01


class Task(NamedTuple):
    """One split: as it is, and encoded as numbers."""

    split: Split
    X: np.ndarray
    X_test: np.ndarray


class Predicted(NamedTuple):
    """Means of held-out targets, their log densities, and whether they lie in the central 90 %."""

    mean: np.ndarray
    log_density: np.ndarray
    is_covered: np.ndarray


def encoded(split: Split) -> Task:
    """Turn words into ones and zeros, fill gaps, and standardize."""
    numbers = list(split.X.select_dtypes("number").columns)
    words = [name for name in split.X.columns if name not in numbers]
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=20, sparse_output=False)
    filled = SimpleImputer(strategy="median", add_indicator=True)
    table = make_pipeline(ColumnTransformer([("n", filled, numbers), ("w", one_hot, words)]), StandardScaler())
    X = table.fit_transform(split.X)
    is_kept = X.std(0) > 0
    return Task(split, X[:, is_kept], table.transform(split.X_test)[:, is_kept])


def standardized(split: Split) -> Split:
    """Standardize the targets."""
    y = split.y.astype(float)
    center, scale = y.mean(), y.std()
    return split._replace(y=(y - center) / scale, y_test=(split.y_test.astype(float) - center) / scale)


def normal(mean: np.ndarray, deviation: np.ndarray, y: np.ndarray) -> Predicted:
    distribution = stats.norm(mean, deviation)
    return Predicted(mean, distribution.logpdf(y), np.abs(distribution.cdf(y) - 0.5) < 0.45)


def ours(task: Task, seconds: float, **options: Any) -> Predicted:
    X, y, X_test, y_test = task.split
    model = sg.GPRegressor(**options).fit(X, y)
    mean, quantiles = model.predict(X_test, quantiles=(0.05, 0.95))
    is_covered = (quantiles[:, 0] < y_test) & (y_test < quantiles[:, 1])
    return Predicted(mean, model.log_predictive_density(X_test, y_test), is_covered)


def sklearn_gp(task: Task, seconds: float) -> Predicted:
    shape = ConstantKernel() * Matern(np.full(task.X.shape[1], math.sqrt(task.X.shape[1])), nu=2.5)
    model = GaussianProcessRegressor(shape + WhiteKernel(0.1), random_state=0).fit(task.X, task.split.y)
    return normal(*model.predict(task.X_test, return_std=True), task.split.y_test)


def botorch_gp(task: Task, seconds: float) -> Predicted:
    X, y, W = (torch.from_numpy(each) for each in (task.X, task.split.y, task.X_test))
    low, high = X.min(0).values, X.max(0).values
    model = SingleTaskGP((X - low) / (high - low), y.unsqueeze(-1))
    fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        posterior = model.posterior((W - low) / (high - low), observation_noise=True)
        mean, variance = posterior.mean.squeeze(-1).numpy(), posterior.variance.squeeze(-1).numpy()
    return normal(mean, np.sqrt(variance), task.split.y_test)


def svgp(task: Task, seconds: float) -> Predicted:
    X, y, W = (torch.from_numpy(each) for each in (task.X, task.split.y, task.X_test))
    generator = torch.Generator().manual_seed(0)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=X.shape[1])).double()
    kernel.base_kernel.lengthscale = math.sqrt(X.shape[1])
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
        return normal(seen.mean.numpy(), seen.variance.sqrt().numpy(), task.split.y_test)


def with_error(make: Callable[[], Any], *, is_raw: bool = False) -> Callable[[Task, float], Predicted]:
    """Give a method without deviations the one that its errors have on rows that it does not see."""

    def predict(task: Task, seconds: float) -> Predicted:
        y, (X, X_test) = task.split.y, categories(task.split) if is_raw else (task.X, task.X_test)
        cut = 4 * len(y) // 5
        errors = make().fit(X[:cut], y[:cut]).predict(X[cut:]) - y[cut:]
        mean = make().fit(X, y).predict(X_test)
        return normal(mean, np.full(len(mean), math.sqrt(np.mean(errors**2))), task.split.y_test)

    return predict


def categories(split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables whose words are categories, as boosting reads them."""
    X, X_test = split.X.copy(), split.X_test.copy()
    for name in X.columns.difference(X.select_dtypes("number").columns):
        kinds = pd.CategoricalDtype(X[name].dropna().astype(str).value_counts().index[:250])
        X[name], X_test[name] = (each[name].astype(str).astype(kinds) for each in (X, X_test))
    return X, X_test


def boosting() -> Any:
    return HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)


METHODS: dict[str, Callable[[Task, float], Predicted]] = {
    "ours": ours,
    "plain": lambda task, seconds: ours(task, seconds, warp=None),
    "linear": with_error(lambda: RidgeCV(np.logspace(-4, 4, 9))),
    "boosting": with_error(boosting, is_raw=True),
    "forest": with_error(lambda: RandomForestRegressor(300, random_state=0)),
    "sklearn": sklearn_gp,
    "botorch": botorch_gp,
    "svgp": svgp,
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "ours": sg.GPClassifier,
    "rest": lambda: OneVsRestClassifier(sg.GPClassifier()),
    "linear": LogisticRegressionCV,
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(300, random_state=0),
}


def scores(predicted: Predicted, y: np.ndarray) -> dict[str, float]:
    """Root of the mean squared error, negative log density of a target, and share within the central 90 %."""
    return {
        "rmse": float(np.sqrt(np.mean((predicted.mean - y) ** 2))),
        "nlpd": -float(np.mean(predicted.log_density)),
        "coverage": float(np.mean(predicted.is_covered)),
    }


def class_scores(method: str, task: Task) -> dict[str, float]:
    """Share of wrong labels and negative log probability of a label."""
    X, X_test = (task.split.X, task.split.X_test) if method == "ours" else (task.X, task.X_test)
    model = CLASSIFIERS[method]().fit(X, task.split.y)
    probability = model.predict_proba(X_test)
    place = np.searchsorted(model.classes_, task.split.y_test)
    own = probability[np.arange(len(place)), place] / probability.sum(axis=1)
    return {
        "rmse": float(np.mean(probability.argmax(axis=1) != place)),  # the share of errors
        "nlpd": -float(np.mean(np.log(np.maximum(own, 1e-6)))),
    }


def read_results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(arguments: argparse.Namespace) -> None:
    """Run what is missing, and add it to the file."""
    done = {(each["set"], each["split"], each["method"]): each for each in read_results(arguments.output)}
    for name in arguments.only:
        for split in arguments.splits:
            try:
                task = encoded(load(name, split) if name in CLASSES else standardized(load(name, split)))
            except Missing as reason:
                print(f"{name} is left out: {reason}.")
                break
            for method in arguments.methods:
                key, mine = (name, split, method), done.get((name, split, "ours"))
                is_known = method in (CLASSIFIERS if name in CLASSES else METHODS)
                is_exact = method in ("sklearn", "botorch")
                if key in done or not is_known or (is_exact and len(task.X) > arguments.exact_rows):
                    continue
                if method == "svgp" and mine is None:
                    continue
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if name in CLASSES:
                        found = class_scores(method, task)
                    else:
                        predicted = METHODS[method](task, arguments.times * mine["seconds"] if mine else 0.0)
                        found = scores(predicted, task.split.y_test)
                seconds = round(time.process_time() - begun, 2)
                line = dict(zip(("set", "split", "method"), key, strict=True))
                line |= {"rows": len(task.X), "columns": task.split.X.shape[1], "seconds": seconds} | found
                done[key] = line
                arguments.output.parent.mkdir(exist_ok=True)
                with arguments.output.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def report(path: Path, untouched: dict[str, Any], methods: dict[str, Any]) -> Iterator[str]:
    """Lines of a table: means over splits that all methods of a set were run on, by set and method."""
    results = [each for each in read_results(path) if each["set"] in untouched]
    yield "| set | rows, columns | method | RMSE | NLPD | coverage | seconds | splits |"
    yield "| --- " * 8 + "|"
    for name in untouched:
        for method in methods:
            found = [each for each in results if (each["set"], each["method"]) == (name, method)]
            if found:
                means = [f"{np.mean([each.get(m, np.nan) for each in found]):.3f}" for m in ("rmse", "nlpd")]
                coverage = f"{100 * np.mean([each.get('coverage', np.nan) for each in found]):.0f} %"
                seconds = f"{np.mean([each['seconds'] for each in found]):.1f}"
                what = f"{name} | {found[0]['rows']}, {found[0]['columns']}" if method == "ours" else " | "
                yield f"| {what} | {method} | {' | '.join(means)} | {coverage} | {seconds} | {len(found)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[*UNTOUCHED, *UNTOUCHED_CLASSES], choices=[*SETS, *CLASSES])
    parser.add_argument("--methods", nargs="*", choices=sorted({*METHODS, *CLASSIFIERS}), default=[*METHODS, "rest"])
    parser.add_argument("--splits", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--times", type=float, default=10.0, help="seconds of svgp, relative to ours")
    parser.add_argument("--exact-rows", type=int, default=MOST_EXACT_ROWS, help="most rows of sklearn and botorch")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="print tables of what is there")
    arguments = parser.parse_args()
    if not arguments.report:
        run(arguments)
    for sets, methods in ((SETS, METHODS), (CLASSES, CLASSIFIERS)):
        print("\n".join(report(arguments.output, sets, methods)))


if __name__ == "__main__":
    main()
