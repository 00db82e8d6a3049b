"""A GP with its likelihood, in the user's units whatever the units of training were."""

import os
from abc import ABC
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from streamgp.checks import (
    ArrayLike,
    check_count,
    check_generator,
    check_inputs,
    check_noise_variance,
    to_form,
    to_tensor,
)
from streamgp.conditioning import ConditionedGP
from streamgp.conditioning.observation import check_observed, check_rows
from streamgp.errors import OptionError, UnsupportedError
from streamgp.evidence import Evidence
from streamgp.gp import AbstractProcess, Prediction
from streamgp.likelihoods import AbstractLikelihood, Gaussian, read_likelihood
from streamgp.sites import SiteRule
from streamgp.storage import register, save
from streamgp.training.scaling import Scaling

__all__ = ["AbstractFit", "FittedGP", "RescaledProcess"]


@final
@dataclass(frozen=True, eq=False)
class RescaledProcess(AbstractProcess):
    """A process in the user's units."""

    process: AbstractProcess
    scaling: Scaling

    @property
    def reference(self) -> Tensor:
        return self.process.reference

    @property
    def num_inducing(self) -> int:
        return self.process.num_inducing

    @property
    def batch_shape(self) -> torch.Size:
        return self.process.batch_shape

    def cross(self, X: Tensor | Evidence) -> Tensor | None:
        return self.process.cross(self.scaling.rows(X))

    def mean(self, X: Tensor | Evidence, cross: Tensor | None = None) -> Tensor:
        mean = self.process.mean(self.scaling.rows(X), cross)
        shift = self.scaling.target_shift.to(mean)
        return (shift * X.of_constant if isinstance(X, Evidence) else shift) + self.scaling.target_scale.to(mean) * mean

    def variance(self, X: Tensor | Evidence, cross: Tensor | None = None) -> Tensor:
        variance = self.process.variance(self.scaling.rows(X), cross)
        return self.scaling.target_scale.to(variance).square() * variance

    def covariance(self, X: Tensor | Evidence) -> Tensor:
        covariance = self.process.covariance(self.scaling.rows(X))
        return self.scaling.target_scale.to(covariance).square() * covariance

    def prior_variance(self, X: Tensor | Evidence) -> Tensor:
        variance = self.process.prior_variance(self.scaling.rows(X))
        return self.scaling.target_scale.to(variance).square() * variance


class AbstractFit(ABC):
    """A GP with its likelihood, used in the user's units whatever the units of training were.

    Attributes:
        gp: The GP; in standardized units, if those were asked for.
        likelihood: The fitted likelihood, in the same units.
        scaling: The standardization; None if there was none.
    """

    gp: Any
    likelihood: AbstractLikelihood
    scaling: Scaling | None

    def predict(self, X: ArrayLike, *, covariance: bool = False) -> Prediction:
        """Predict the latent function in the user's units.

        Several latent functions are on an axis before that of the inputs.

        Args:
            X: Inputs `(*b, n, d)`; the moments are arrays of NumPy if they are one.
            covariance: Compute the joint covariance at once, so that variances are read off it.
        """
        if self.scaling is None:
            return self.gp.predict(X, covariance=covariance)
        prediction = Prediction(self._process, self._inputs(X), isinstance(X, np.ndarray))
        if covariance:
            _ = prediction.covariance
        return prediction

    def sample(self, X: ArrayLike, num_samples: int = 1, *, generator: torch.Generator | None = None) -> Any:
        """Draw joint samples of the latent function in the user's units.

        Args:
            X: Inputs `(*b, n, d)`.
            num_samples: Number of samples $s$.
            generator: Source of randomness.

        Returns:
            Samples `(s, *b, n)`: a tensor, or an array of NumPy if `X` was one.
        """
        count, source = check_count(num_samples, "num_samples"), check_generator(generator)
        samples = self._process.sample(self._inputs(X), count, source)
        return to_form(samples, is_numpy=isinstance(X, np.ndarray))

    def log_predictive_density(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
    ) -> Any:
        """Log predictive density of targets, one for each, in the user's units.

        Args:
            X: Inputs `(n, d)`; pairs of inputs `(n, 2, d)` for comparisons.
            y: Targets `(n,)`; the densities are an array of NumPy if they are one.
            noise_variance: Variance of Gaussian noise, a number or one for each target; as it was fitted by default.
            likelihood: The likelihood, instead of the noise; as it was fitted by default.
        """
        inside, noise = self._inside(X), self._noise(X, noise_variance, likelihood)
        seen = _likelihood_of(noise, inside)
        targets = self._targets(to_tensor(y, "y", like=self._like, kinds="fiub").to(self._like))
        inputs, targets = check_observed(
            inside, targets, seen, like=self._like, batch_shape=self.gp.process.batch_shape
        )
        density = seen.log_predictive_density(*self._latent(inputs, seen), targets)
        density = density if seen.num_latents == 1 else density.squeeze(-2)
        if self.scaling is not None:
            density = density - self.scaling.target_scale.to(density).log()
        return to_form(density, is_numpy=isinstance(y, np.ndarray))

    def _latent(self, inputs: Tensor, likelihood: AbstractLikelihood) -> tuple[Tensor, Tensor]:
        """Moments of what each target looks at: latent values, or differences of those of pairs."""
        if likelihood.num_inputs == 1:
            latent = self.gp.predict(inputs)
            return latent.mean, latent.variance
        # Each pair is predicted by itself: its leading axes come before those of the model.
        place = inputs.dim() - 3
        alone = inputs.reshape(*inputs.shape[:-2], *[1] * len(self.gp.process.batch_shape), *inputs.shape[-2:])
        joint = self.gp.predict(alone, covariance=True)
        covariance = joint.covariance
        own, across = covariance.diagonal(dim1=-2, dim2=-1).sum(-1), covariance[..., 0, 1] + covariance[..., 1, 0]
        mean = joint.mean[..., 0] - joint.mean[..., 1]
        return mean.movedim(place, -1), (own - across).clamp_min(0.0).movedim(place, -1)

    def condition(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
        sites: str | SiteRule = "variational",
    ) -> "FittedGP":
        """Condition on further observations: exactly if they are Gaussian, through Gaussian sites if not.

        Everything is in the user's units. For arguments of higher rank, such as fantasies, see `SparseGP.condition`.

        Args:
            X: Inputs `(*b, n, d)`.
            y: Observed values `(*s, *b, n)`.
            noise_variance: Variance of Gaussian noise; as it was fitted by default.
            likelihood: The likelihood, instead of the noise; as it was fitted by default.
            sites: How observations that are not Gaussian become so.

        Returns:
            The conditioned GP with its likelihood, which predicts, is sampled and can be conditioned again.
        """
        X, y, noise = self._observed(X, y, noise_variance, likelihood)
        return FittedGP(self.gp.condition(X, y, sites=sites, **noise), self.likelihood, self.scaling)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads: arrays and a JSON description, no pickle; atomically."""
        save(self, path)

    def _observed(
        self, X: ArrayLike, y: ArrayLike, noise_variance: ArrayLike | None, likelihood: str | AbstractLikelihood | None
    ) -> tuple[ArrayLike, ArrayLike, dict[str, Any]]:
        """Observations in the units of the GP, with their noise or likelihood by name."""
        if isinstance(X, Evidence) and self.scaling is not None:
            rows, targets, noise_variance, _ = check_rows(
                X, y, noise_variance, like=self._like, batch_shape=self.gp.process.batch_shape
            )
            noise = self._noise(rows.stand_in, noise_variance, likelihood)
            return self.scaling.rows(rows), self.scaling.targets(targets, rows), noise
        noise = self._noise(X, noise_variance, likelihood)
        return (X, y, noise) if self.scaling is None else (self._inside(X), self._targets(y), noise)

    def _noise(
        self, X: ArrayLike, noise_variance: ArrayLike | None, likelihood: str | AbstractLikelihood | None
    ) -> dict[str, Any]:
        """Noise or likelihood by name; the fitted likelihood where nothing is given."""
        if noise_variance is None and likelihood is None:
            if self.likelihood.has_row_constants:
                raise OptionError(
                    f"The fitted {type(self.likelihood).__name__} likelihood has numbers of its own for each row it "
                    "was fitted to. Say those of the new rows: noise_variance=... for Gaussian noise, "
                    "likelihood=result.likelihood.with_row_data(...) for others."
                )
            return {"likelihood": self.likelihood}
        if noise_variance is not None and likelihood is not None:
            raise OptionError(
                "Both noise_variance and likelihood were given, but a likelihood brings its own noise. Pass one."
            )
        if self.scaling is None or likelihood is self.likelihood:  # the fitted one has the units of the GP
            return {"noise_variance": noise_variance, "likelihood": likelihood}
        scale = self.scaling.target_scale
        if noise_variance is not None:
            variance, _ = check_noise_variance(noise_variance, self._inputs(X))
            return {"noise_variance": variance / scale.to(variance) / scale.to(variance)}
        given = read_likelihood(likelihood)
        is_moved = float(scale) != 1.0 or float(self.scaling.target_shift) != 0.0
        return {"likelihood": given.rescaled(scale) if is_moved else given}

    @property
    def _process(self) -> AbstractProcess:
        return self.gp.process if self.scaling is None else RescaledProcess(self.gp.process, self.scaling)

    @property
    def _like(self) -> Tensor:
        return self.gp.process.reference

    def _inside(self, X: ArrayLike) -> Tensor:
        """Inputs in the units of the GP."""
        inputs = self._inputs(X)
        return inputs if self.scaling is None else self.scaling.inputs(inputs)

    def _targets(self, y: ArrayLike) -> Tensor:
        """Targets in the units of the GP."""
        targets = to_tensor(y, "y", like=self._like, kinds="fiub")
        if self.scaling is None:
            return targets
        return self.scaling.targets(targets if targets.is_floating_point() else targets.to(self._like))

    def _inputs(self, X: ArrayLike) -> Any:
        """Checked inputs, or rows of evidence, in the user's units."""
        if isinstance(X, Evidence):
            return X.matched(self._like, self.gp.process.batch_shape)
        return check_inputs(X, num_dims=self._like.shape[-1], like=self._like)


def _likelihood_of(noise: dict[str, Any], X: Tensor) -> AbstractLikelihood:
    """The likelihood of observations, that of Gaussian noise where its variance was given."""
    if noise.get("noise_variance") is None:
        return read_likelihood(noise["likelihood"])
    variance, is_matrix = check_noise_variance(noise["noise_variance"], X)
    if is_matrix:
        raise UnsupportedError(
            "noise_variance is a covariance matrix, but densities are of one target each. Pass its diagonal."
        )
    return Gaussian(variance)


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class FittedGP(AbstractFit):
    """A fitted GP that was conditioned further, made by `FitResult.condition`.

    Attributes:
        gp: The conditioned GP; in standardized units, if those were asked for.
        likelihood: The fitted likelihood, in the same units.
        scaling: The standardization; None if there was none.
    """

    gp: ConditionedGP
    likelihood: AbstractLikelihood
    scaling: Scaling | None = None

    def __repr__(self) -> str:
        return f"FittedGP({self.gp}, {type(self.likelihood).__name__})"
