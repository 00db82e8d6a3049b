"""Surveyors of villages: models of prevalence that say which village to visit next."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paper.baselines.forest_kriging import ForestKriging, ForestSettings, Villages
from streamgp.likelihoods.logistic import expected_sigmoid
from streamgp.pools import PoolLearner

__all__ = ["AbstractVillageSurveyor", "ForestSurveyor", "PoolSurveyor", "Prevalences"]


@final
@dataclass(frozen=True, eq=False)
class Prevalences:
    """What is believed of all villages.

    Attributes:
        latent_mean: Mean of the logit of the prevalence.
        latent_variance: Its variance.
    """

    latent_mean: Float[Tensor, " n"]
    latent_variance: Float[Tensor, " n"]

    @property
    def mean(self) -> Float[Tensor, " n"]:
        """Expected prevalence, which has the smallest expected squared error."""
        return expected_sigmoid(self.latent_mean, self.latent_variance)

    @property
    def median(self) -> Float[Tensor, " n"]:
        """Median of the prevalence, the sigmoid of the latent mean."""
        return torch.sigmoid(self.latent_mean)

    def exceedance(self, threshold: float) -> Float[Tensor, " n"]:
        """Probability that the prevalence is above a threshold."""
        logit = math.log(threshold) - math.log1p(-threshold)
        return torch.special.ndtr((self.latent_mean - logit) / self.latent_variance.sqrt())


class AbstractVillageSurveyor(ABC):
    """A model of prevalence that learns village after village."""

    @abstractmethod
    def visit(self, villages: Int[Tensor, " q"], counts: Float[Tensor, " q"]) -> "AbstractVillageSurveyor":
        """The surveyor after further villages; a refit, if one is due, is left to `fit`."""

    @abstractmethod
    def fit(self) -> "AbstractVillageSurveyor":
        """The surveyor with all hyperparameters learned, where that is due."""

    @abstractmethod
    def predict(self) -> Prevalences:
        """Beliefs about all villages."""

    @abstractmethod
    def choose(self) -> Int[Tensor, " 1"]:
        """The village to visit next."""


@final
@dataclass(frozen=True, eq=False)
class PoolSurveyor(AbstractVillageSurveyor):
    """A sparse variational GP in our pool learner.

    Attributes:
        learner: The pool learner, which changes as it is told.
        inputs: Of all villages, in the units of the model.
    """

    learner: PoolLearner
    inputs: Float[Tensor, "n d"]

    def visit(self, villages: Int[Tensor, " q"], counts: Float[Tensor, " q"]) -> "PoolSurveyor":
        self.learner.tell(villages, counts)
        return self

    def fit(self) -> "PoolSurveyor":
        _ = self.learner.fit_result
        return self

    def predict(self) -> Prevalences:
        prediction = self.learner.fit_result.gp.predict(self.inputs)
        return Prevalences(prediction.mean, prediction.variance)

    def choose(self) -> Int[Tensor, " 1"]:
        return self.learner.ask(1)


@final
@dataclass(frozen=True, eq=False)
class ForestSurveyor(AbstractVillageSurveyor):
    """A random forest with kriging, which visits the village whose side of the threshold is least certain.

    Attributes:
        villages: All villages.
        threshold: Prevalence above which a village is a hotspot.
        settings: Options of the forest.
        refit_interval: Number of new villages that make new forests due.
        seed: Of everything random.
        visited: Villages that were visited.
        counts: What was found there.
        num_fitted: How many there were when the forests were grown.
        model: The model; None before the first fit.
    """

    villages: Villages
    threshold: float
    settings: ForestSettings
    refit_interval: int
    seed: int
    visited: Int[Tensor, " k"]
    counts: Float[Tensor, " k"]
    num_fitted: int = 0
    model: ForestKriging | None = None

    def visit(self, villages: Int[Tensor, " q"], counts: Float[Tensor, " q"]) -> "ForestSurveyor":
        model = None if self.model is None else self.model.observe(villages, counts)
        visited, found = torch.cat([self.visited, villages]), torch.cat([self.counts, counts])
        return replace(self, visited=visited, counts=found, model=model)

    def fit(self) -> "ForestSurveyor":
        if self.model is not None and len(self.visited) - self.num_fitted < self.refit_interval:
            return self
        model = ForestKriging.fit(self.villages, self.visited, self.counts, settings=self.settings, seed=self.seed)
        return replace(self, model=model, num_fitted=len(self.visited))

    def predict(self) -> Prevalences:
        assert self.model is not None
        return Prevalences(*self.model.predict())

    def choose(self) -> Int[Tensor, " 1"]:
        # The entropy of a yes or no is largest where its probability is nearest to one half.
        certainty = (self.predict().exceedance(self.threshold) - 0.5).abs()
        return certainty.index_fill(0, self.visited, math.inf).argmin().reshape(1)
