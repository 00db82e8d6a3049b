"""From a fit over shards to the ordinary estimators of streams, which go on learning without a cluster."""

from typing import Any

import torch
from torch import Tensor

from streamgp.streaming.classifier import StreamingGPClassifier
from streamgp.streaming.estimator import EstimatorState
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.regressor import StreamingGPRegressor
from streamgp.streaming.settings import StreamSettings
from streamgp.training import FitResult
from streamgp.training.finishing import cast_process
from streamgp.training.scaling import Scaling
from streamgp.training.sharding import AbstractShards

__all__ = ["local_classifier", "local_regressor"]


def local_regressor(result: FitResult, shards: AbstractShards, *, likelihood: Any) -> StreamingGPRegressor:
    """A regressor that knows what a fit learned."""
    estimator = StreamingGPRegressor(likelihood, num_inducing=result.gp.num_inducing)
    settings = StreamSettings(likelihood=likelihood, num_inducing=result.gp.num_inducing)
    estimator.state_ = EstimatorState(_learner(result, settings, *_range(shards)))
    return estimator


def local_classifier(
    results: tuple[FitResult, ...], shards: AbstractShards, *, classes: tuple[Any, ...]
) -> StreamingGPClassifier:
    """A classifier that knows what fits of one class against the others learned."""
    num_inducing = results[0].gp.num_inducing
    estimator = StreamingGPClassifier(num_inducing=num_inducing)
    settings, found = StreamSettings(likelihood="bernoulli", num_inducing=num_inducing), _range(shards)
    learners = tuple(_learner(result, settings, *found) for result in results)
    estimator.state_ = EstimatorState(OneVsRest(settings, classes, learners))
    return estimator


def _learner(result: FitResult, settings: StreamSettings, lower: Tensor, upper: Tensor, num_rows: int) -> StreamLearner:
    gp, scaling = cast_process(result.gp.process, torch.float64), result.scaling
    if scaling is None:
        d = len(lower)
        scaling = Scaling(torch.zeros(d), torch.ones(d), torch.tensor(0.0), torch.tensor(1.0))
    learned = {name: value.detach().double() for name, value in result.likelihood.learnable().items()}
    model = StreamModel(gp, result.likelihood.with_learnable(learned), scaling.double(), lower, upper)
    return StreamLearner(
        settings,
        model=model,
        anchor=gp,
        num_seen=num_rows,
        num_since_start=max(num_rows, settings.warmup),
        next_refit=settings.next_refit(max(num_rows, settings.warmup)),
    )


def _range(shards: AbstractShards) -> tuple[Tensor, Tensor, int]:
    parts = shards.run(_find_range)
    lower = torch.stack([part[0] for part in parts]).amin(0)
    return lower, torch.stack([part[1] for part in parts]).amax(0), sum(part[2] for part in parts)


def _find_range(index: int, shard: Any, kept: Any) -> tuple[Any, tuple[Tensor, Tensor, int]]:
    X = torch.as_tensor(shard[0]).double()
    return kept, (X.amin(0), X.amax(0), len(X))
