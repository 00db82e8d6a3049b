"""Methods of `benchmarks/streams.py`, and ours: the stream learner, with variants, and the batch fit.

Fixed and resampled points are `StreamLearner` with another choice of inducing points after the warm-up and nothing
else changed: hyperparameters are learned when and as ours are, but for the points.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

import streamgp as sg
from streamgp.streams import StreamOptions
from streamgp.streams.model import StreamModel
from streamgp.training import fit

NUM_INDUCING = 100


class Scores(NamedTuple):
    """Predicted means, for classes the probability of the second, and log densities of what came."""

    mean: Tensor
    log_density: Tensor


class AbstractMethod(ABC):
    """Something that learns from a stream."""

    @abstractmethod
    def learn(self, X: Tensor, y: Tensor) -> None:
        """Learn rows."""

    @abstractmethod
    def score(self, X: Tensor, y: Tensor) -> Scores:
        """Predict rows before they are learned."""

    @abstractmethod
    def state(self) -> object:
        """State that has to be kept between rows; its pickle is measured."""

    def notes(self) -> dict[str, Any]:
        """Other facts worth recording."""
        return {}


@final
class Ours(AbstractMethod):
    """`StreamLearner`."""

    def __init__(self, likelihood: str, seed: int) -> None:
        self.model = StreamModel.begin(StreamOptions(likelihood=likelihood, most_points=NUM_INDUCING))

    def learn(self, X: Tensor, y: Tensor) -> None:
        self.model.learn(X.numpy(), y.numpy())

    def score(self, X: Tensor, y: Tensor) -> Scores:
        prediction: Any = self.model.predict(X.numpy())
        return Scores(torch.from_numpy(prediction.mean), torch.from_numpy(prediction.log_density(y.numpy())))

    def state(self) -> object:
        return self.model

    def notes(self) -> dict[str, Any]:
        learner = self.model.first
        return {"num_refits": len(learner.history.refits), "num_outside": learner.num_outside}


@final
class Batch(AbstractMethod):
    """`fit` on everything at once."""

    def __init__(self, likelihood: str, seed: int) -> None:
        self.likelihood = None if likelihood == "gaussian" else sg.likelihoods.Bernoulli()
        self.generator = torch.Generator().manual_seed(seed)
        self.result: Any = None

    def learn(self, X: Tensor, y: Tensor) -> None:
        self.result = fit(
            X,
            y,
            likelihood=self.likelihood,
            num_inducing=NUM_INDUCING,
            standardize=True if self.likelihood is None else "inputs",
            generator=self.generator,
        )

    def score(self, X: Tensor, y: Tensor) -> Scores:
        latent, likelihood = self.result.predict(X), self.result.likelihood
        is_class = self.likelihood is not None
        mean = likelihood.predictive_mean(latent.mean, latent.variance) if is_class else latent.mean
        return Scores(mean, self.result.log_predictive_density(X, y))

    def state(self) -> object:
        return self.result.gp

    def notes(self) -> dict[str, Any]:
        return {"trace_slack": self.result.info.trace_slack, "reason": self.result.info.reason}
