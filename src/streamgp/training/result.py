"""What `fit` returns."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from torch import Tensor

from streamgp.checks import ArrayLike, check_inputs, to_form, to_tensor
from streamgp.conditioning import SparseGP
from streamgp.display import html_table, new_axes
from streamgp.gp import Prediction
from streamgp.likelihoods import AbstractLikelihood
from streamgp.storage import register, save
from streamgp.training.scaling import RescaledProcess, Scaling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FitInfo", "FitResult"]


@register
@final
@dataclass(frozen=True)
class FitInfo:
    r"""Diagnostics of a fit.

    Attributes:
        bound: The objective without priors at the end: the bound on the log marginal likelihood for `"elbo"`, up to a
            constant of the belief where one was carried over. An estimate from the last pass where training used
            minibatches with a likelihood that is not Gaussian.
        log_prior: Log density of the hyperparameters under their priors.
        history: Objective with priors, the best so far after each iteration; it may fall where inducing points are
            chosen anew. For minibatches, an estimate after each step, smoothed over some twenty of them.
        seconds: Wall time.
        num_evaluations: Evaluations of the objective and its gradient.
        num_rejected: Those that led out of the domain and were taken back.
        is_converged: Whether training stopped because there was no more to gain.
        reason: Why it stopped, in words.
        num_inducing: Number of inducing points.
        trace_slack: $\frac1n \operatorname{tr} \Sigma^{-1} (K_{xx} - Q_{xx})$: what the inducing points cannot explain,
            in units of the noise. Half of it is what the bound loses for each observation. Includes what is lost of a
            carried belief.
        warnings: What should be known of the result.
    """

    bound: float
    log_prior: float
    history: tuple[float, ...]
    seconds: float
    num_evaluations: int
    num_rejected: int
    is_converged: bool
    reason: str
    num_inducing: int
    trace_slack: float
    warnings: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What notebooks show of it."""
        return {
            "inducing points": self.num_inducing,
            "bound": self.bound,
            "iterations": len(self.history),
            "seconds": self.seconds,
            "stopped": self.reason,
            "warnings": "; ".join(self.warnings) or "none",
        }


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """A fitted sparse GP with its likelihood.

    Attributes:
        gp: The sparse GP; in standardized units, if those were asked for.
        likelihood: The fitted likelihood, in the same units.
        info: Diagnostics.
        scaling: The standardization; None if there was none.
        frozen: Names of the parameters that were not to be learned, for a later fit that starts here.
    """

    gp: SparseGP
    likelihood: AbstractLikelihood
    info: FitInfo
    scaling: Scaling | None = None
    frozen: tuple[str, ...] = ()

    def predict(self, X: ArrayLike, *, covariance: bool = False) -> Prediction:
        """Predict the latent function in the user's units.

        Several latent functions are on an axis before that of the inputs.

        Args:
            X: Inputs `(*b, n, d)`; the moments are arrays of NumPy if they are one.
            covariance: Compute the joint covariance at once, so that variances are read off it.
        """
        if self.scaling is None:
            return self.gp.predict(X, covariance=covariance)
        inputs = check_inputs(X, num_dims=self.gp.inducing_points.shape[-1], like=self.gp.inducing_points)
        process = RescaledProcess(self.gp.process, self.scaling)
        prediction = Prediction(process, inputs, isinstance(X, np.ndarray))
        if covariance:
            _ = prediction.covariance
        return prediction

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Log predictive density of targets, one for each, in the user's units.

        Args:
            X: Inputs `(n, d)`.
            y: Targets `(n,)`; the densities are an array of NumPy if they are one.
        """
        density = self._log_density(X, to_tensor(y, "y", like=self.gp.inducing_points))
        return to_form(density, is_numpy=isinstance(y, np.ndarray))

    def _log_density(self, X: ArrayLike, y: Tensor) -> Tensor:
        X = check_inputs(X, num_dims=self.gp.inducing_points.shape[-1], like=self.gp.inducing_points)
        if self.scaling is None:
            return self._log_density_inside(X, y)
        density = self._log_density_inside(self.scaling.inputs(X), self.scaling.targets(y))
        return density - self.scaling.target_scale.to(density).log()

    def _log_density_inside(self, X: Tensor, y: Tensor) -> Tensor:
        """The same in the units of the GP."""
        prediction = self.gp.predict(X)
        density = self.likelihood.log_predictive_density(prediction.mean, prediction.variance, y)
        return density if self.likelihood.num_latents == 1 else density.squeeze(-2)

    def __repr__(self) -> str:
        info = self.info
        return (
            f"FitResult({info.num_inducing} inducing points, {type(self.likelihood).__name__}, bound {info.bound:.4g}, "
            f"{len(info.history)} iterations in {info.seconds:.2g} s)"
        )

    def _repr_html_(self) -> str:
        facts = {"likelihood": type(self.likelihood).__name__}
        return html_table("FitResult", facts | self.info.facts, line=self.info.history)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads: arrays and a JSON description, no pickle; atomically."""
        save(self, path)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the history of the objective.

        Args:
            axes: Where to draw; a new figure by default.
        """
        axes = new_axes(axes)
        axes.plot(self.info.history, color="tab:blue")
        axes.set_xlabel("iteration")
        axes.set_ylabel("objective")
        axes.set_title(f"{self.info.num_inducing} inducing points, {self.info.seconds:.2g} s: {self.info.reason}")
        return axes
