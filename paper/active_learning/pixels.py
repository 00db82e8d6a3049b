"""Surveyors of a map: models with known noise that say which pixels to measure next."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from paper.baselines.exact_nipv import FixedNoiseGP, paper_kernel
from paper.baselines.grid_evidence import GridKernel
from paper.baselines.wiski import Wiski
from streamgp.likelihoods import Gaussian
from streamgp.pools import PoolLearner, Training

__all__ = ["AbstractSurveyor", "ExactSurveyor", "PixelPool", "SparseSurveyor", "WiskiSurveyor"]


@final
@dataclass(frozen=True, eq=False)
class PixelPool:
    """Pixels that may be measured.

    Attributes:
        X: Coordinates in the unit square.
        y: What a measurement gives.
        noise_variance: Variance of a measurement. It may depend on the rate, so surveyors only look at it where they
            have measured, and expect the mean of these elsewhere.
        targets: Pixels over which the variance is integrated.
        refit_every: Number of new measurements that make a search of hyperparameters due.
        seed: Of everything random.
    """

    X: Float[Tensor, "n 2"]
    y: Float[Tensor, " n"]
    noise_variance: Float[Tensor, " n"]
    targets: Int[Tensor, " t"]
    refit_every: int
    seed: int

    def left(self, measured: Int[Tensor, " k"]) -> Int[Tensor, " u"]:
        """Pixels that were not measured yet."""
        is_left = torch.ones(len(self.y), dtype=torch.bool)
        is_left[measured] = False
        return is_left.nonzero().squeeze(-1)


class AbstractSurveyor(ABC):
    """A model of a map that learns pixel after pixel."""

    @abstractmethod
    def measure(self, pixels: Int[Tensor, " q"]) -> "AbstractSurveyor":
        """The surveyor after further pixels; hyperparameters are learned where that is due."""

    @abstractmethod
    def predict(self, X: Float[Tensor, "n 2"]) -> tuple[Tensor, Tensor]:
        """Mean and variance at coordinates."""

    @abstractmethod
    def mean(self, X: Float[Tensor, "n 2"]) -> Tensor:
        """The mean alone: variances would take most of the time of a step."""

    @abstractmethod
    def choose(self, num_chosen: int) -> Int[Tensor, " q"]:
        """Pixels that lower the integrated variance most, one after the other."""


@final
@dataclass(frozen=True, eq=False)
class SparseSurveyor(AbstractSurveyor):
    """A sparse variational GP in our pool learner.

    Attributes:
        pool: The pixels.
        learner: The pool learner, which changes as it is told.
    """

    pool: PixelPool
    learner: PoolLearner

    @classmethod
    def start(cls, pool: PixelPool, first: Int[Tensor, " k"], *, num_inducing: int) -> "SparseSurveyor":
        """Measure the first pixels."""
        learner = PoolLearner(
            pool.X,
            likelihood=Gaussian(pool.noise_variance[first].mean(), is_learned=False),
            targets=pool.targets,
            kernel=paper_kernel(2),
            num_initial=len(first),
            num_inducing=num_inducing,
            refit=pool.refit_every,
            training=Training(priors="paper"),
            standardize=False,
            seed=pool.seed,
        )
        return cls(pool, learner).measure(first)

    def measure(self, pixels: Int[Tensor, " q"]) -> "SparseSurveyor":
        self.learner.tell(pixels, self.pool.y[pixels], noise_variance=self.pool.noise_variance[pixels])
        return self

    def predict(self, X: Float[Tensor, "n 2"]) -> tuple[Tensor, Tensor]:
        prediction = self.learner.fit_result.predict(X)
        return prediction.mean, prediction.variance

    def mean(self, X: Float[Tensor, "n 2"]) -> Tensor:
        return self.learner.fit_result.predict(X).mean

    def choose(self, num_chosen: int) -> Int[Tensor, " q"]:
        return self.learner.ask(num_chosen)


@final
@dataclass(frozen=True, eq=False)
class ExactSurveyor(AbstractSurveyor):
    """An exact GP that looks at a random part of the pixels at a time.

    Attributes:
        pool: The pixels.
        measured: Pixels that were measured.
        num_fitted: How many of them there were when hyperparameters were last learned.
        num_candidates: How many pixels a choice is made from.
        gp: The model.
    """

    pool: PixelPool
    measured: Int[Tensor, " k"]
    num_fitted: int
    num_candidates: int
    gp: FixedNoiseGP

    @classmethod
    def start(cls, pool: PixelPool, first: Int[Tensor, " k"], *, num_candidates: int) -> "ExactSurveyor":
        """Measure the first pixels."""
        gp = FixedNoiseGP.fit(pool.X[first], pool.y[first], pool.noise_variance[first])
        return cls(pool, first, len(first), num_candidates, gp)

    def measure(self, pixels: Int[Tensor, " q"]) -> "ExactSurveyor":
        measured, pool = torch.cat([self.measured, pixels]), self.pool
        is_due = len(measured) - self.num_fitted >= pool.refit_every
        X, y, noise_variance = pool.X[measured], pool.y[measured], pool.noise_variance[measured]
        gp = FixedNoiseGP.fit(X, y, noise_variance, start=self.gp, is_refitted=is_due)
        return replace(self, measured=measured, num_fitted=len(measured) if is_due else self.num_fitted, gp=gp)

    def predict(self, X: Float[Tensor, "n 2"]) -> tuple[Tensor, Tensor]:
        return self.gp.predict(X)

    def mean(self, X: Float[Tensor, "n 2"]) -> Tensor:
        return self.gp.mean(X)

    def choose(self, num_chosen: int) -> Int[Tensor, " q"]:
        left = self.pool.left(self.measured)
        generator = torch.Generator().manual_seed(self.pool.seed * 100_003 + len(self.measured))
        candidates = left[torch.randperm(len(left), generator=generator)[: self.num_candidates]]
        X = self.pool.X
        return candidates[self.gp.choose(X[candidates], X[self.pool.targets], num_chosen=num_chosen)]


@final
@dataclass(frozen=True, eq=False)
class WiskiSurveyor(AbstractSurveyor):
    """WISKI with choices by its integrated variance in closed form.

    Attributes:
        pool: The pixels.
        measured: Pixels that were measured.
        num_fitted: How many of them there were when hyperparameters were last learned.
        model: The model, whose size does not depend on the pixels.
    """

    pool: PixelPool
    measured: Int[Tensor, " k"]
    num_fitted: int
    model: Wiski

    @classmethod
    def start(cls, pool: PixelPool, first: Int[Tensor, " k"], *, grid_size: int) -> "WiskiSurveyor":
        """Measure the first pixels."""
        y = pool.y[first]
        # Where BoTorch's kernels start, with the moments of the first targets.
        kernel = GridKernel(torch.full_like(pool.X[0], 0.693), y.var(), y.mean())
        model = Wiski.start(grid_size, kernel).observe(pool.X[first], y, pool.noise_variance[first])
        return cls(pool, first, len(first), model.refit())

    def measure(self, pixels: Int[Tensor, " q"]) -> "WiskiSurveyor":
        pool, measured = self.pool, torch.cat([self.measured, pixels])
        model = self.model.observe(pool.X[pixels], pool.y[pixels], pool.noise_variance[pixels])
        is_due = len(measured) - self.num_fitted >= pool.refit_every
        if is_due:
            model = model.refit(max_iterations=10)
        return replace(self, measured=measured, num_fitted=len(measured) if is_due else self.num_fitted, model=model)

    def predict(self, X: Float[Tensor, "n 2"]) -> tuple[Tensor, Tensor]:
        return self.model.predict(X)

    def mean(self, X: Float[Tensor, "n 2"]) -> Tensor:
        return self.predict(X)[0]

    def choose(self, num_chosen: int) -> Int[Tensor, " q"]:
        X, left = self.pool.X, self.pool.left(self.measured)
        noise_variance = float(self.pool.noise_variance[self.measured].mean())
        targets = X[self.pool.targets]
        return left[self.model.choose(X[left], targets, noise_variance=noise_variance, num_chosen=num_chosen)]
