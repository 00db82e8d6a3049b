"""From a fit, over shards or at once, to the estimators of streams, which predict and go on learning."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gpytorch.means import ZeroMean
from torch import Tensor

from streamgp.gp import Prior, SparseProcess
from streamgp.streaming.bank import Bank
from streamgp.streaming.baselines import ClassBaseline, ValueBaseline
from streamgp.streaming.classifier import StreamingGPClassifier
from streamgp.streaming.estimator import EstimatorState
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.hyperparameters import FittedHyperparameters
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.points import Usage
from streamgp.streaming.reach import Reach
from streamgp.streaming.regressor import StreamingGPRegressor
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.units import Units
from streamgp.training import FitResult
from streamgp.training.labels import read_labels
from streamgp.training.result import cast_process
from streamgp.training.scaling import Scaling
from streamgp.training.sharding import AbstractShards

__all__ = ["classifier_from_fit", "regressor_from_fit"]


def regressor_from_fit(result: FitResult, shards: AbstractShards, *, likelihood: Any) -> StreamingGPRegressor:
    """A regressor that knows what a fit learned, and forgets nothing of it.

    Args:
        result: Of the fit.
        shards: What it was fitted to, whose range and number of rows are asked for.
        likelihood: As the user named it.
    """
    options: Any = {"num_inducing": result.gp.num_inducing, "half_life": None}
    estimator = StreamingGPRegressor(likelihood, **options)
    settings = StreamSettings(likelihood=likelihood, **options)
    parts = shards.ask(_look_at_values)
    n, total, last = sum(part[0] for part in parts), sum(part[1] for part in parts), parts[-1][2]
    score = ValueScore(baseline=ValueBaseline(n, (last,), (total / n,)))
    estimator.state_ = EstimatorState(_learner((result,), settings, *_range(shards)), score=score)
    estimator.n_features_in_ = result.gp.inducing_points.shape[-1]
    return estimator


def classifier_from_fit(
    results: Sequence[FitResult], shards: AbstractShards, *, classes: Sequence[Any]
) -> StreamingGPClassifier:
    """A classifier that knows what a fit of classes learned.

    Args:
        results: What `streamgp.training.sharded_fit.fit_classes` returned.
        shards: What it was fitted to.
        classes: The labels.
    """
    options: Any = {"num_inducing": results[0].gp.num_inducing, "half_life": None}
    estimator = StreamingGPClassifier(**options)
    settings = StreamSettings(likelihood="bernoulli", **options)
    learner = _learner(results, settings, *_range(shards), is_single_output=False, is_multiclass=len(classes) > 2)
    parts, counts = shards.ask(_look_at_labels), Counter[Any]()
    for part, _ in parts:
        counts.update(part)
    score = ClassScore(baseline=ClassBaseline(tuple(counts.items()), parts[-1][1]))
    estimator.state_ = EstimatorState(OneVsRest(settings, tuple(classes), learner), score=score)
    estimator.n_features_in_ = results[0].gp.inducing_points.shape[-1]
    return estimator


def _learner(
    results: Sequence[FitResult],
    settings: StreamSettings,
    lower: Tensor,
    upper: Tensor,
    num_rows: int,
    *,
    is_single_output: bool = True,
    is_multiclass: bool = False,
) -> StreamLearner:
    """One learner with an output for each result, all of which have the same hyperparameters and inducing points."""
    result, c = results[0], len(results)
    gp, scaling, d = cast_process(result.gp.process, torch.float64), result.scaling, len(lower)
    if scaling is None:
        scaling = Scaling(torch.zeros(d), torch.ones(d), torch.tensor(0.0), torch.tensor(1.0))
    scaling = scaling.double()
    learned = {name: value.detach().double() for name, value in result.likelihood.learnable().items()}
    likelihood = result.likelihood.with_learnable(learned)
    noise = likelihood.gaussian_noise_variance
    noise_variance = 1.0 if noise is None else float(noise)
    bank = _bank([cast_process(each.gp.process, torch.float64).process for each in results], noise_variance)
    units = Units(
        scaling.input_shift,
        scaling.input_scale,
        scaling.target_shift.expand(c, 1),
        scaling.target_scale.expand(c, 1),
        lower,
        upper,
    )
    model = StreamModel(
        bank,
        Usage.none(bank.num_inducing),
        Mixture.even(1, c, is_scaled=False),
        likelihood,
        FittedHyperparameters(gp.kernel, noise_variance, gp.inducing_points),
        units,
        Reach(lower, upper),
        is_multiclass,
        is_single_output,
    )
    return StreamLearner(
        settings,
        is_multiclass=is_multiclass,
        model=model,
        anchor=bank,
        num_seen=num_rows,
        num_since_start=max(num_rows, settings.warmup),
        next_refit=settings.next_refit(max(num_rows, settings.warmup)),
    )


def _bank(processes: Sequence[SparseProcess], level_noise: float) -> Bank:
    """One expert that forgets nothing, with the beliefs of processes whose mean is a constant."""
    first = processes[0]
    Z = first.inducing_points
    prior = Prior.snapshot(first.prior.kernel, ZeroMean(), like=Z)
    plain = SparseProcess.from_prior(prior, Z, jitter=first.jitter)
    # The state is whitened inducing values, then weights of a linear trend and a level, which this expert does not use.
    rest = Z.shape[-1] + 1
    mean = torch.stack([torch.cat([each.whitened_mean, Z.new_zeros(rest)]) for each in processes])
    eye = torch.eye(rest, dtype=Z.dtype)
    covariance = torch.stack([torch.block_diag(each.whitened_root @ each.whitened_root.mT, eye) for each in processes])
    constant = torch.cat([each.prior.mean(Z)[:1] for each in processes])
    return Bank(Experts((Expert(),)), plain, constant, level_noise, mean[None], covariance[None])


def _range(shards: AbstractShards) -> tuple[Tensor, Tensor, int]:
    parts = shards.ask(_find_range)
    lower = torch.stack([part[0] for part in parts]).amin(0)
    return lower, torch.stack([part[1] for part in parts]).amax(0), sum(part[2] for part in parts)


def _find_range(index: int, shard: Any, kept: Any) -> tuple[Tensor, Tensor, int]:
    X = torch.tensor(np.asarray(shard[0]), dtype=torch.float64)
    return X.amin(0), X.amax(0), len(X)


def _look_at_values(index: int, shard: Any, kept: Any) -> tuple[int, float, float]:
    """Number, sum and last of the targets, with which predictions to come are compared."""
    y = np.asarray(shard[1], dtype=np.float64)
    return len(y), float(y.sum()), float(y[-1])


def _look_at_labels(index: int, shard: Any, kept: Any) -> tuple[dict[Any, int], Any]:
    """How often each label came, and the last."""
    labels = read_labels(shard[1]).tolist()
    return dict(Counter(labels)), labels[-1]
