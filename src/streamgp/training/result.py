"""Result of a fit, and the process that it holds: prior and optimal belief of what was learned."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import torch

from streamgp.checks import ArrayLike
from streamgp.conditioning import AbsorbInfo, SparseGP
from streamgp.display import html_table, new_axes
from streamgp.gp import Prior, SparseProcess
from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import solve_lower_transpose, solve_vector
from streamgp.sites import SiteRule
from streamgp.storage import register
from streamgp.training.collapsed import NaturalBelief
from streamgp.training.features import Observed, observed_features
from streamgp.training.fitted_gp import AbstractFit
from streamgp.training.parameters import Hyperparameters
from streamgp.training.prior_site import PriorSite
from streamgp.training.scaling import Scaling
from streamgp.training.sites_bound import FINAL_SITE_TOLERANCE, FixedSites, sites_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FitInfo", "FitResult", "cast_process", "optimal_process", "prior_process"]


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
        doubling_gain: Nats for each observation that the bound would gain from twice as many inducing points, estimated
            from a sample of rows; None where the number was given or observations are not Gaussian.
        kernels: Kernels that were compared, with the log evidence for each row of a sample; the largest was taken.
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
    doubling_gain: float | None = None
    kernels: tuple[tuple[str, float], ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that notebooks show."""
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


def prior_process(setting: Hyperparameters, jitter: float, carried: PriorSite | None = None) -> SparseProcess:
    """Make the prior of a setting a process, with jitter relative to its variance, or that of a carried belief."""
    Z = setting.inducing_points.detach()
    prior = Prior.snapshot(setting.kernel, setting.mean, like=Z)
    Z = Z.expand(*prior.batch_shape, *Z.shape)  # latent functions share them
    absolute = float(prior.inducing(Z).jitter(jitter)) if carried is None else carried.jitter
    return SparseProcess.from_prior(prior, Z, jitter=absolute)


def optimal_process(
    setting: Hyperparameters, data: Observed, *, beta: float = 1.0, sites: FixedSites | None = None
) -> SparseProcess:
    """Put the optimal belief for a setting in closed form.

    Args:
        setting: Hyperparameters and inducing points.
        data: All observations, with a carried belief that takes the place of the prior.
        beta: Weight of the divergence; Gaussian observations only.
        sites: Optimal sites of other observations, if they are known already.
    """
    with torch.no_grad():
        features = observed_features(setting, data)
        noise = setting.likelihood.gaussian_noise_variance
        if noise is not None:
            precision = (1.0 / (beta * noise.to(data.targets))).expand(features.slack.shape)
            pull = precision * (data.targets - features.mean)
        else:
            if sites is None:
                sites, _ = sites_of(features, setting.likelihood, data.targets, tolerance=FINAL_SITE_TOLERANCE)
            precision, pull = sites.precision, sites.pull - sites.precision * features.mean
        mean, root, _ = NaturalBelief.of_sites(features.phi, precision, pull).moments()
        jitter, carried = data.jitter, features.carried
        if carried is None:
            return prior_process(setting, jitter).with_belief(mean, root.contiguous())
        # The features were those of the prior with the carried belief, in whose coordinates this one is.
        mean = carried.mean + solve_vector(carried.factor, mean, is_transposed=True)
        root = solve_lower_transpose(carried.factor, root)
    return prior_process(setting, jitter, carried=data.carried).with_belief(mean, root)


def cast_process(process: SparseProcess, dtype: torch.dtype) -> SparseGP:
    """The model in the dtype of the data; its inducing points have been rounded before."""
    Z = process.inducing_points.to(dtype)
    prior = Prior.snapshot(process.prior.kernel, process.prior.mean_function, like=Z)
    return SparseGP(
        SparseProcess(prior, Z, process.whitened_mean.to(dtype), process.whitened_root.to(dtype), process.jitter)
    )
