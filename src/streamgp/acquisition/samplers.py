"""Samplers of functions from a model: exact ones, and sample paths."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, final

import gpytorch
import torch
from botorch.models.model import Model
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition.matheron import MatheronSamples, sample_by_features, sample_jointly
from streamgp.checks import check_choice
from streamgp.errors import UnsupportedError
from streamgp.gp import AbstractSpectralKernel, Prediction, SparseProcess
from streamgp.models import OnlineGP
from streamgp.models.observation_model import expected_noise_variance

__all__ = ["SAMPLING", "AbstractSampler", "read_sampler"]

SAMPLING = ("auto", "joint", "paths")

# Up to so many inputs a joint draw takes about a tenth of a second, and needs no approximation.
_MOST_JOINT = 1000
_NUM_FEATURES = 1024
# GPyTorch would turn to iterative solvers for larger matrices; draws are to be exact.
_ALWAYS_CHOLESKY = 2**31


class AbstractSampler(ABC):
    """Draws latent functions of a model with one output, in units of its own that keep their order."""

    @abstractmethod
    def sample(
        self,
        points: Float[Tensor, "k d"],
        candidates: Float[Tensor, "n d"],
        *,
        num_samples: int,
        generator: torch.Generator | None,
    ) -> MatheronSamples:
        """Draw functions at points, on whose values they will be conditioned, and at candidates."""

    @abstractmethod
    def noise_variance(self, points: Float[Tensor, "k d"]) -> Float[Tensor, " k"]:
        """The noise with which an observation would tell of the latent function."""


@final
@dataclass(frozen=True, eq=False)
class _OnlineGPSampler(AbstractSampler):
    """Draws from an `OnlineGP`, in the units of its transforms."""

    model: OnlineGP
    sampling: str

    def sample(
        self, points: Tensor, candidates: Tensor, *, num_samples: int, generator: torch.Generator | None
    ) -> MatheronSamples:
        X = self.model.transform_inputs(torch.cat([points, candidates]))
        process, k = self.model.gps[0].process, len(points)
        if self._uses_paths(process, len(X)):
            assert isinstance(process, SparseProcess)
            return sample_by_features(
                process, X[:k], X[k:], num_samples=num_samples, num_features=_NUM_FEATURES, generator=generator
            )
        return sample_jointly(
            process.mean(X),
            process.covariance(X),
            k,
            num_samples=num_samples,
            generator=generator,
            scale=process.prior_variance(X),
        )

    def noise_variance(self, points: Tensor) -> Tensor:
        prediction = Prediction(self.model.gps[0].process, self.model.transform_inputs(points))
        return expected_noise_variance(self.model.likelihoods[0], prediction).expand(len(points))

    def _uses_paths(self, process: object, num_inputs: int) -> bool:
        can = isinstance(process, SparseProcess) and isinstance(process.prior.kernel_function, AbstractSpectralKernel)
        if self.sampling == "paths" and not can:
            raise UnsupportedError(
                "sampling='paths' needs a SparseGP with a Matérn or RBF kernel, plain or in a ScaleKernel, that was "
                f"not conditioned since, but the model has a {type(self.model.gps[0]).__name__}. Use sampling='joint'."
            )
        return self.sampling == "paths" or (self.sampling == "auto" and can and num_inputs > _MOST_JOINT)


@final
@dataclass(frozen=True, eq=False)
class _PosteriorSampler(AbstractSampler):
    """Draws from any BoTorch model with Gaussian posteriors, in the user's units."""

    model: Model

    def sample(
        self, points: Tensor, candidates: Tensor, *, num_samples: int, generator: torch.Generator | None
    ) -> MatheronSamples:
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(_ALWAYS_CHOLESKY):
            posterior: Any = self.model.posterior(torch.cat([points, candidates]))
            mean, covariance = posterior.mean.squeeze(-1), posterior.distribution.covariance_matrix
        return sample_jointly(mean, covariance, len(points), num_samples=num_samples, generator=generator)

    def noise_variance(self, points: Tensor) -> Tensor:
        with torch.no_grad(), gpytorch.settings.max_cholesky_size(_ALWAYS_CHOLESKY):
            latent: Any = self.model.posterior(points)
            observed: Any = self.model.posterior(points, observation_noise=True)
        return (observed.variance - latent.variance).squeeze(-1).clamp_min(0.0)


@final
@dataclass(frozen=True, eq=False)
class _NegatedSampler(AbstractSampler):
    """Draws the functions of another with their sign changed, so that what was small is large."""

    sampler: AbstractSampler

    def sample(
        self, points: Tensor, candidates: Tensor, *, num_samples: int, generator: torch.Generator | None
    ) -> MatheronSamples:
        samples = self.sampler.sample(points, candidates, num_samples=num_samples, generator=generator)
        return replace(samples, at_points=-samples.at_points, at_candidates=-samples.at_candidates)

    def noise_variance(self, points: Tensor) -> Tensor:
        return self.sampler.noise_variance(points)


def read_sampler(model: Model, sampling: str, *, maximize: bool = True) -> AbstractSampler:
    """Choose how to draw from a model.

    Args:
        model: Model of one output, without leading axes.
        sampling: `"joint"`, `"paths"` or `"auto"`.
        maximize: Whether large values are wanted; if not, functions are drawn with their sign changed.
    """
    sampler = _read_sampler(model, sampling)
    return sampler if maximize else _NegatedSampler(sampler)


def _read_sampler(model: Model, sampling: str) -> AbstractSampler:
    check_choice(sampling, SAMPLING, "sampling")
    if model.num_outputs != 1 or len(model.batch_shape):
        raise UnsupportedError(
            "Thompson sampling needs a model of one output without leading axes, but this one has "
            f"{model.num_outputs} outputs and leading axes {tuple(model.batch_shape)}. Take one output with "
            "model.subset_output([0]), and draw before fantasizing."
        )
    if isinstance(model, OnlineGP):
        return _OnlineGPSampler(model, sampling)
    if sampling == "paths":
        raise UnsupportedError(
            f"sampling='paths' needs a streamgp.OnlineGP, but the model is a {type(model).__name__}. "
            "Use sampling='joint'."
        )
    return _PosteriorSampler(model)
