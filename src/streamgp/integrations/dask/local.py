"""From a fit over shards to the ordinary estimators of streams, which go on learning without a cluster."""

from typing import Any

import torch
from gpytorch.means import ZeroMean
from torch import Tensor

from streamgp.gp import Prior, SparseProcess
from streamgp.streaming.bank import Bank
from streamgp.streaming.classifier import StreamingGPClassifier
from streamgp.streaming.estimator import EstimatorState
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.hyperparameters import LearnedKernel
from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.mixture import Mixture
from streamgp.streaming.model import StreamModel
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.points import Usage
from streamgp.streaming.regressor import StreamingGPRegressor
from streamgp.streaming.settings import StreamSettings
from streamgp.streaming.units import Units
from streamgp.training import FitResult
from streamgp.training.finishing import cast_process
from streamgp.training.scaling import Scaling
from streamgp.training.sharding import AbstractShards

__all__ = ["local_classifier", "local_regressor"]


def local_regressor(result: FitResult, shards: AbstractShards, *, likelihood: Any) -> StreamingGPRegressor:
    """A regressor that knows what a fit learned, and forgets nothing of it."""
    options: Any = {"num_inducing": result.gp.num_inducing, "half_life": None}
    estimator = StreamingGPRegressor(likelihood, **options)
    settings = StreamSettings(likelihood=likelihood, **options)
    estimator.state_ = EstimatorState(_learner(result, settings, *_range(shards)))
    return estimator


def local_classifier(result: FitResult, shards: AbstractShards, *, classes: tuple[Any, ...]) -> StreamingGPClassifier:
    """A classifier that knows what a fit of the second class against the first learned."""
    options: Any = {"num_inducing": result.gp.num_inducing, "half_life": None}
    estimator = StreamingGPClassifier(**options)
    settings = StreamSettings(likelihood="bernoulli", **options)
    learner = _learner(result, settings, *_range(shards))
    estimator.state_ = EstimatorState(OneVsRest(settings, classes, learner))
    return estimator


def _learner(result: FitResult, settings: StreamSettings, lower: Tensor, upper: Tensor, num_rows: int) -> StreamLearner:
    gp, scaling, d = cast_process(result.gp.process, torch.float64), result.scaling, len(lower)
    if scaling is None:
        scaling = Scaling(torch.zeros(d), torch.ones(d), torch.tensor(0.0), torch.tensor(1.0))
    scaling = scaling.double()
    learned = {name: value.detach().double() for name, value in result.likelihood.learnable().items()}
    likelihood = result.likelihood.with_learnable(learned)
    noise = likelihood.gaussian_noise_variance
    noise_variance = 1.0 if noise is None else float(noise)
    bank = _bank(gp.process, noise_variance)
    units = Units(
        scaling.input_shift,
        scaling.input_scale,
        scaling.target_shift.reshape(1, 1),
        scaling.target_scale.reshape(1, 1),
        lower,
        upper,
    )
    model = StreamModel(
        bank,
        Usage.none(bank.num_inducing),
        Mixture.even(1, 1, is_scaled=False),
        likelihood,
        LearnedKernel(gp.kernel, noise_variance, gp.inducing_points),
        units,
    )
    return StreamLearner(
        settings,
        model=model,
        anchor=bank,
        num_seen=num_rows,
        num_since_start=max(num_rows, settings.warmup),
        next_refit=settings.next_refit(max(num_rows, settings.warmup)),
    )


def _bank(process: SparseProcess, level_noise: float) -> Bank:
    """One expert that forgets nothing, with the belief of a process whose mean is a constant."""
    Z = process.inducing_points
    constant = process.prior.mean(Z)[:1]
    prior = Prior.snapshot(process.prior.kernel, ZeroMean(), like=Z)
    plain = SparseProcess.from_prior(prior, Z, jitter=process.jitter)
    # The state is whitened inducing values, then weights of a linear trend and a level, which this expert does not use.
    rest = Z.shape[-1] + 1
    mean = torch.cat([process.whitened_mean, Z.new_zeros(rest)])
    root = process.whitened_root
    covariance = torch.block_diag(root @ root.mT, torch.eye(rest, dtype=Z.dtype))
    return Bank(Experts((Expert(),)), plain, constant, level_noise, mean[None, None], covariance[None, None])


def _range(shards: AbstractShards) -> tuple[Tensor, Tensor, int]:
    parts = shards.run(_find_range)
    lower = torch.stack([part[0] for part in parts]).amin(0)
    return lower, torch.stack([part[1] for part in parts]).amax(0), sum(part[2] for part in parts)


def _find_range(index: int, shard: Any, kept: Any) -> tuple[Any, tuple[Tensor, Tensor, int]]:
    X = torch.as_tensor(shard[0]).double()
    return kept, (X.amin(0), X.amax(0), len(X))
