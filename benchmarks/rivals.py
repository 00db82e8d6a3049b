"""Our estimators of streams against river's, with default settings only.

Each row is predicted and then learned, in the order of the file. Regression is judged by mean absolute error, negative
log predictive density and the share of rows within 90 % intervals; classes by accuracy and log loss. river's
regressors have no density; theirs is a Gaussian with the mean square of their latest 500 residuals. Probabilities are
clipped at 0.001, as trees are at times certain, and wrong. The first two rows count for nobody: nothing is known of
the first, and a residual is needed for the spread of the second. Linear models and neighbors stand behind river's
scaler. Times are of the processor, with models made and imported before; "ours, 50 points" is there for them.

What the file of results holds is not run again, so that a run that was ended goes on. At the end, who is first on each
stream, and by how many standard errors of the difference to the best of the others, as if they were independent: rows
are the same for all, so that this is cautious.

    python benchmarks/rivals.py --output results.json [--streams TrumpApproval ...] [--models ours ...]
"""

import argparse
import json
import math
import statistics
import time
import warnings
from collections import deque
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, final

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from rival_streams import STREAMS, Stream
from river import dummy, ensemble, forest, linear_model, multiclass, neighbors, preprocessing, stats, tree

NUM_RESIDUALS = 500
NUM_SKIPPED = 2
LEAST_PROBABILITY = 1e-3
_90 = 1.6448536269514722


class Forecast(NamedTuple):
    """A prediction of one row: a value with its log density of the truth, and whether a 90 % interval holds it."""

    value: Any
    log_density: float
    is_covered: bool | None = None


class Rival(Protocol):
    """A learner that predicts a row and then learns it."""

    def step(self, x: dict[str, float], y: Any) -> Forecast:
        """Predict, compare, learn."""


@final
class RiverRegressor:
    """A regressor of river."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.squares: deque[float] = deque(maxlen=NUM_RESIDUALS)
        self.targets = stats.Var()

    def step(self, x: dict[str, float], y: float) -> Forecast:
        """Predict, compare, learn."""
        mean = float(self.model.predict_one(x) or 0.0)
        spread = statistics.fmean(self.squares) if self.squares else 1.0
        sd = math.sqrt(max(spread, 1e-12))
        z = (y - mean) / sd
        self.squares.append((y - mean) ** 2)
        self.model.learn_one(x, y)
        return Forecast(mean, -0.5 * z * z - math.log(sd * math.sqrt(2 * math.pi)), abs(z) <= _90)


@final
class RiverClassifier:
    """A classifier of river."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.labels: set[Hashable] = set()

    def step(self, x: dict[str, float], y: Hashable) -> Forecast:
        """Predict, compare, learn."""
        probabilities = self.model.predict_proba_one(x) or {}
        self.model.learn_one(x, y)
        best = max(probabilities, key=probabilities.__getitem__) if probabilities else None
        clipped = min(max(probabilities.get(y, 0.0), LEAST_PROBABILITY), 1 - LEAST_PROBABILITY)
        return Forecast(best, math.log(clipped))


@final
class LastValue:
    """Predicts what came last."""

    def __init__(self) -> None:
        self.last = 0.0

    def predict_one(self, x: dict[str, float]) -> float:
        """The last target."""
        return self.last

    def learn_one(self, x: dict[str, float], y: float) -> None:
        """Remember it."""
        self.last = y


@final
class OursRegressor:
    """Our regressor through its integration with river."""

    def __init__(self, **options: Any) -> None:
        from streamgp.integrations.river import StreamingGPRegressor

        self.model = StreamingGPRegressor(**options)

    def step(self, x: dict[str, float], y: float) -> Forecast:
        """Predict, compare, learn."""
        forecast = self.model.forecast_one(x)
        if forecast is None:
            self.model.learn_one(x, y)
            return Forecast(0.0, 0.0, None)
        low, high = forecast.quantiles([0.05, 0.95])[0].tolist()
        result = Forecast(
            float(forecast.mean), float(forecast.log_density(torch.tensor([y], dtype=torch.float64))), low <= y <= high
        )
        self.model.learn_one(x, y)
        return result


def _scaled(model: Any) -> Any:
    return preprocessing.StandardScaler() | model


REGRESSORS: dict[str, Callable[[], Rival]] = {
    "ours": OursRegressor,
    "ours, 50 points": lambda: OursRegressor(num_inducing=50),
    "AMF": lambda: RiverRegressor(forest.AMFRegressor(seed=1)),
    "ARF": lambda: RiverRegressor(forest.ARFRegressor(seed=1)),
    "SRP": lambda: RiverRegressor(ensemble.SRPRegressor(seed=1)),
    "adaptive tree": lambda: RiverRegressor(tree.HoeffdingAdaptiveTreeRegressor(seed=1)),
    "bagging": lambda: RiverRegressor(
        _scaled(ensemble.BaggingRegressor(tree.HoeffdingAdaptiveTreeRegressor(), seed=1))
    ),
    "neighbours": lambda: RiverRegressor(_scaled(neighbors.KNNRegressor())),
    "linear": lambda: RiverRegressor(_scaled(linear_model.LinearRegression())),
    "last value": lambda: RiverRegressor(LastValue()),
    "mean": lambda: RiverRegressor(dummy.StatisticRegressor(stats.Mean())),
}
CLASSIFIERS: dict[str, Callable[[], Rival]] = {
    "ours": lambda: RiverClassifier(_our_classifier()),
    "ours, 50 points": lambda: RiverClassifier(_our_classifier(num_inducing=50)),
    "AMF": lambda: RiverClassifier(forest.AMFClassifier(seed=1)),
    "ARF": lambda: RiverClassifier(forest.ARFClassifier(seed=1)),
    "SRP": lambda: RiverClassifier(ensemble.SRPClassifier(seed=1)),
    "adaptive tree": lambda: RiverClassifier(tree.HoeffdingAdaptiveTreeClassifier(seed=1)),
    "bagging": lambda: RiverClassifier(
        _scaled(ensemble.BaggingClassifier(tree.HoeffdingAdaptiveTreeClassifier(), seed=1))
    ),
    "neighbours": lambda: RiverClassifier(_scaled(neighbors.KNNClassifier())),
    "linear": lambda: RiverClassifier(_scaled(multiclass.OneVsRestClassifier(linear_model.LogisticRegression()))),
    "last class": lambda: RiverClassifier(dummy.NoChangeClassifier()),
    "most frequent": lambda: RiverClassifier(dummy.PriorClassifier()),
}


def _our_classifier(**options: Any) -> Any:
    from streamgp.integrations.river import StreamingGPClassifier

    return StreamingGPClassifier(**options)


def evaluate(stream: Stream, name: str) -> dict[str, Any]:
    """Run one model over one stream."""
    rival = (REGRESSORS if stream.is_regression else CLASSIFIERS)[name]()
    rows = list(stream.rows())
    errors, densities, covered = [], [], []
    began = time.process_time()
    for x, y in rows:
        forecast = rival.step(x, y)
        errors.append(abs(forecast.value - y) if stream.is_regression else float(forecast.value == y))
        densities.append(forecast.log_density)
        covered.append(forecast.is_covered)
    seconds = time.process_time() - began
    errors, densities, covered = (each[NUM_SKIPPED:] for each in (errors, densities, covered))
    n = len(errors)
    return {
        "stream": stream.name,
        "model": name,
        "is_tuned": stream.is_tuned,
        "num_rows": len(rows),
        "error": statistics.fmean(errors),
        "error_sem": statistics.stdev(errors) / math.sqrt(n),
        "nlpd": -statistics.fmean(densities),
        "coverage": statistics.fmean(map(float, covered)) if stream.is_regression else None,
        "seconds_per_1000": 1000 * seconds / len(rows),
    }


def main() -> None:
    """Run what is asked for, add it to the file of results, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--streams", nargs="*")
    parser.add_argument("--models", nargs="*")
    options = parser.parse_args()
    ScaleKernel(MaternKernel(2.5))  # brings much of torch into memory when first made
    results = json.loads(options.output.read_text()) if options.output.exists() else []
    for stream in STREAMS:
        if options.streams and stream.name not in options.streams:
            continue
        for name in REGRESSORS if stream.is_regression else CLASSIFIERS:
            if options.models and name not in options.models:
                continue
            if any((each["stream"], each["model"]) == (stream.name, name) for each in results):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = evaluate(stream, name)
            results.append(result)
            options.output.write_text(json.dumps(results, indent=1))
            print(_line(result), flush=True)
    for stream in STREAMS:
        each = [
            result for result in results if result["stream"] == stream.name and result["model"] != "ours, 50 points"
        ]
        if len(each) > 1:
            print(_verdict(stream, each))


def _line(result: dict[str, Any]) -> str:
    coverage = "" if result["coverage"] is None else f"{result['coverage']:6.1%}"
    return (
        f"{result['stream']:20} {result['model']:14} {result['error']:9.4f} ±{result['error_sem']:.4f} "
        f"nlpd {result['nlpd']:8.4f} {coverage:7} {result['seconds_per_1000']:7.2f} s"
    )


def _verdict(stream: Stream, results: list[dict[str, Any]]) -> str:
    """Who is first by error, by how many standard errors, and who is by density."""
    sign = 1.0 if stream.is_regression else -1.0
    first, second = sorted(results, key=lambda each: sign * each["error"])[:2]
    deviation = math.hypot(first["error_sem"], second["error_sem"])
    lead = abs(first["error"] - second["error"]) / deviation if deviation else math.inf
    densest, other = sorted(results, key=lambda each: each["nlpd"])[:2]
    return (
        f"{stream.name:20} {first['model']} before {second['model']} by {lead:.1f} standard errors; by density "
        f"{densest['model']} before {other['model']} by {other['nlpd'] - densest['nlpd']:.3f}"
    )


if __name__ == "__main__":
    main()
