"""What `fit` returns."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

from streamgp.checks import ArrayLike
from streamgp.conditioning import AbsorbInfo, SparseGP
from streamgp.display import html_table, new_axes
from streamgp.likelihoods import AbstractLikelihood
from streamgp.sites import SiteRule
from streamgp.storage import register
from streamgp.training.fitted_gp import AbstractFit
from streamgp.training.scaling import Scaling

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
class FitResult(AbstractFit):
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

    def absorb(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
        sites: str | SiteRule = "variational",
        num_inducing: int | None = None,
    ) -> tuple["FitResult", AbsorbInfo]:
        """Absorb further observations at constant size; hyperparameters and diagnostics of the fit stay.

        Everything is in the user's units; for more options see `SparseGP.absorb`.

        Args:
            X: Inputs `(n, d)`.
            y: Observed values `(n,)`.
            noise_variance: Variance of Gaussian noise; as it was fitted by default.
            likelihood: The likelihood, instead of the noise; as it was fitted by default.
            sites: How observations that are not Gaussian become so.
            num_inducing: How many inducing points to choose; as many as before by default.

        Returns:
            The result with what it learned, and diagnostics of the step.
        """
        X, y, noise = self._observed(X, y, noise_variance, likelihood)
        gp, info = self.gp.absorb(X, y, sites=sites, num_inducing=num_inducing, **noise)
        return replace(self, gp=gp), info

    def __repr__(self) -> str:
        info = self.info
        return (
            f"FitResult({info.num_inducing} inducing points, {type(self.likelihood).__name__}, bound {info.bound:.4g}, "
            f"{len(info.history)} iterations in {info.seconds:.2g} s)"
        )

    def _repr_html_(self) -> str:
        facts = {"likelihood": type(self.likelihood).__name__}
        return html_table("FitResult", facts | self.info.facts, line=self.info.history)

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
