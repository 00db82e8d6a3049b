"""A sparse GP given further observations, exactly."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike
from streamgp.conditioning.abstract_gp import AbstractGP
from streamgp.conditioning.observation import Noise, Observation, prior_belief
from streamgp.errors import UnsupportedError
from streamgp.evidence import Evidence, join
from streamgp.gp import AbstractProcess, SparseProcess, num_own_axes, row_by_row
from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import apply, cholesky, extend_cholesky, solve_lower, solve_vector
from streamgp.shapes import broadcast_shapes
from streamgp.sites import DenseBelief, SiteInfo, SiteRule
from streamgp.storage import register

__all__ = ["ConditionedGP", "ConditionedProcess", "JointPredictive", "condition", "observe", "predict_jointly"]

_NAME = "the covariance of the observations"


@register
@final
@dataclass(frozen=True, eq=False)
class ConditionedProcess(AbstractProcess):
    r"""The process $q$ given observations $y = f(X) + \varepsilon$, $\varepsilon \sim \mathcal N(0, \Sigma)$.

    With $A = k_q(X, X) + \Sigma = L_A L_A^\top$, $P = D \phi(X)$, $B = L^{-\top} P$,
    $\alpha = A^{-1}(y - \mu_q(X))$ and the letters of `SparseProcess`,

    $$
    \mu(w) = \mu_0(w) + k(w, Z)(a - B \alpha) + k(w, X) \alpha, \qquad
    k(w, w') = k_q(w, w') - k_q(w, X) A^{-1} k_q(X, w') .
    $$

    Rows of evidence, whose covariances the prior knows, take the place of $f(X)$ as they are.

    The mean costs a dot product for each input; observations with more leading axes than their inputs (fantasies)
    share $L_A$ and $B$ and differ in $\alpha$ alone.

    Attributes:
        base: The sparse posterior $q$ before any of the observations.
        inputs: All inputs $X$ so far, or rows of evidence.
        factor: $L_A$.
        reduction_features: $P$.
        whitened_residual: $L_A^{-1}(y - \mu_q(X))$.
        jitter: Noise that the factorizations had to add, that of a row of average prior variance; others get it in
            proportion to theirs.
    """

    base: SparseProcess
    inputs: Float[Tensor, "*b k d"] | Evidence
    factor: Float[Tensor, "*c k k"]
    reduction_features: Float[Tensor, "*e m k"]
    whitened_residual: Float[Tensor, "*s k"]
    jitter: Float[Tensor, "*c"]

    @property
    def reference(self) -> Tensor:
        return self.base.inducing_points

    @property
    def num_inducing(self) -> int:
        return self.base.num_inducing

    @property
    def batch_shape(self) -> torch.Size:
        return broadcast_shapes(self.whitened_residual.shape[:-1], self.factor.shape[:-2], self.base.batch_shape)

    @cached_property
    def _weights(self) -> tuple[Tensor, Tensor]:
        r"""The weights of $k(w, Z)$ and of $k(w, X)$ in the mean."""
        alpha = solve_vector(self.factor, self.whitened_residual, is_transposed=True)
        B = self.base.cross_weights(self.reduction_features)
        return self.base.mean_weights - apply(B, alpha), alpha

    def cross(self, X: Tensor | Evidence) -> Tensor | None:
        return None if num_own_axes(X, self._num_batch) > 0 else self.base.cross(X)

    def mean(self, X: Tensor | Evidence, cross: Tensor | None = None) -> Tensor:
        inducing_weights, input_weights = self._weights
        prior = self.base.prior
        from_inducing = apply(self.base.inducing.crossed(X) if cross is None else cross.mT, inducing_weights)
        return prior.mean(X) + from_inducing + apply(prior.covariance(X, self.inputs), input_weights)

    @property
    def _num_batch(self) -> int:
        """Leading axes of variances: fantasies, those of the residual, share them."""
        return max(self.factor.dim() - 2, self.reduction_features.dim() - 2, len(self.base.batch_shape))

    def variance(self, X: Tensor | Evidence, cross: Tensor | None = None) -> Tensor:
        return row_by_row(lambda rows: self._variance(rows, cross), X, self._num_batch)

    def _variance(self, X: Tensor | Evidence, cross: Tensor | None) -> Tensor:
        phi = self.base.features(X, cross)
        V = self.whitened_cross(X, phi)
        before = self.base.prior.variance(X) - (phi * (self.base.variance_reduction @ phi)).sum(-2)
        return before - V.square().sum(-2)

    def prior_variance(self, X: Tensor | Evidence) -> Tensor:
        return self.base.prior.magnitude(X)

    def covariance(self, X: Tensor | Evidence) -> Tensor:
        phi = self.base.features(X)
        V = self.whitened_cross(X, phi)
        return self.base.prior.covariance(X, X) - phi.mT @ (self.base.variance_reduction @ phi) - V.mT @ V

    def whitened_cross(
        self, X: Float[Tensor, "*b k d"] | Evidence, phi: Float[Tensor, "*c m k"]
    ) -> Float[Tensor, "*e h k"]:
        r"""The matrix $L_A^{-1} k_q(X_A, X)$ between the observations held and values $f(X)$."""
        cross = self.base.prior.covariance(self.inputs, X)
        return solve_lower(self.factor, cross - self.reduction_features.mT @ phi)


@final
@dataclass(frozen=True, eq=False)
class JointPredictive:
    r"""Moments of values $f(X)$ before they are observed, and what conditioning on them will need.

    Attributes:
        inputs: $X$, or rows of evidence.
        mean: Mean of the values.
        covariance: Their covariance, without noise.
        scale: The prior variances whose rounding the covariance carries.
        reduction_features: The new columns of $P$.
        whitened_cross: $L_A^{-1}$ times their covariance with the observations held already; None if there are none.
    """

    inputs: Float[Tensor, "*b k d"] | Evidence
    mean: Float[Tensor, "*s k"]
    covariance: Float[Tensor, "*c k k"]
    scale: Float[Tensor, "*e k"]
    reduction_features: Float[Tensor, "*e m k"]
    whitened_cross: Float[Tensor, "*e h k"] | None


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class ConditionedGP(AbstractGP):
    """A sparse GP conditioned exactly on observations, made by `SparseGP.condition`.

    It grows with the observations it is conditioned on; to learn from a stream in constant size use `SparseGP.absorb`.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel

    gp = sg.SparseGP.from_prior(RBFKernel(), torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1))
    X = torch.tensor([[0.2], [0.7]], dtype=torch.float64)
    once = gp.condition(X, torch.tensor([0.5, -0.1], dtype=torch.float64), noise_variance=0.01)
    again = once.condition(X + 0.1, torch.tensor([0.4, 0.0], dtype=torch.float64), noise_variance=0.01)
    again.predict(X).mean  # as if all four had come at once
    ```

    Attributes:
        conditioned_process: The process behind the object.
        site_info: Diagnostics of the sites of the last observations; None if those were Gaussian.
    """

    conditioned_process: ConditionedProcess
    site_info: SiteInfo | None = None

    @property
    def process(self) -> ConditionedProcess:
        """The process behind the object."""
        return self.conditioned_process

    @property
    def num_observations(self) -> int:
        """Number of observations that the sparse GP was conditioned on."""
        return self.process.factor.shape[-1]

    @property
    def jitter(self) -> Tensor:
        """Noise that the factorization of the observations' covariance had to add to one of average prior variance.

        Others got it in proportion to theirs, so that rows of different units are treated alike.
        """
        return self.process.jitter

    def condition(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
        sites: str | SiteRule = "variational",
    ) -> "ConditionedGP":
        """Condition again; sites are found from the belief at hand. See `SparseGP.condition`."""
        if isinstance(X, Evidence) and X.is_rate:
            raise UnsupportedError("Averages of rates are conditioned on at once. Combine them, and condition once.")
        read = Observation.read(X, y, self.process, noise_variance=noise_variance, likelihood=likelihood, sites=sites)
        return condition(self.process, read)

    def __repr__(self) -> str:
        return f"ConditionedGP(num_observations={self.num_observations}, {self._describe()})"


def condition(process: SparseProcess | ConditionedProcess, observation: Observation) -> ConditionedGP:
    """Condition a process on checked observations."""
    predictive = predict_jointly(process, observation.inputs)
    prior = process.prior if isinstance(process, SparseProcess) else process.base.prior
    targets, noise, info = observation.to_gaussian(
        lambda: DenseBelief(predictive.mean, predictive.covariance),
        lambda: prior_belief(prior, predictive.inputs),
    )
    return ConditionedGP(observe(process, predictive, targets, noise), info)


def predict_jointly(
    process: SparseProcess | ConditionedProcess, X: Float[Tensor, "*b k d"] | Evidence
) -> JointPredictive:
    """Predict what will be observed at inputs."""
    base = process if isinstance(process, SparseProcess) else process.base
    phi = base.features(X)
    P = base.variance_reduction @ phi
    prior_mean, Kxx = base.prior.mean(X), base.prior.covariance(X, X)
    scale = base.prior.magnitude(X) if isinstance(X, Evidence) else Kxx.detach().diagonal(dim1=-2, dim2=-1)
    mean, covariance = prior_mean + apply(phi.mT, base.whitened_mean), Kxx - phi.mT @ P
    if isinstance(process, SparseProcess):
        return JointPredictive(X, mean, covariance, scale, P, None)
    V = process.whitened_cross(X, phi)
    mean = mean + apply(V.mT, process.whitened_residual)
    return JointPredictive(X, mean, covariance - V.mT @ V, scale, P, V)


def observe(
    process: SparseProcess | ConditionedProcess, predictive: JointPredictive, y: Float[Tensor, "*s k"], noise: Noise
) -> ConditionedProcess:
    """Condition a process on Gaussian observations of the values it predicted.

    Conditioning again grows the factor by a block, so that a chain costs no more than one large step.

    Args:
        process: Belief before the observations; not modified.
        predictive: What it expects of them.
        y: Observed values, with more leading axes than the inputs for fantasies.
        noise: Their noise.

    Returns:
        Belief after the observations.
    """
    corner = noise.add_to(predictive.covariance)
    carried = process.jitter
    if isinstance(process, ConditionedProcess) and bool((process.jitter > 0).any()):
        # What earlier observations needed is part of their noise, and as much of that of new ones, each in its units.
        scales = process.base.prior.magnitude(process.inputs).detach()
        average = scales.mean(-1)
        corner = corner + torch.diag_embed((process.jitter / average).unsqueeze(-1) * predictive.scale)
        carried = process.jitter * (_append(scales, predictive.scale).mean(-1) / average)
    last, jitter = cholesky(corner, scale=predictive.scale, name=_NAME)
    residual = solve_vector(last, y - predictive.mean)
    if isinstance(process, SparseProcess):
        P = predictive.reduction_features
        return ConditionedProcess(process, predictive.inputs, last, P, residual, jitter)
    if not y.shape[-1]:  # nothing was observed; only the leading axes may have grown
        held = process.whitened_residual
        return replace(process, whitened_residual=held.expand(*broadcast_shapes(held.shape[:-1], y.shape[:-1]), -1))
    V = predictive.whitened_cross
    assert V is not None
    factor, residual = extend_cholesky(process.factor, V.mT, last), _append(process.whitened_residual, residual)
    if bool((jitter > 0).any()):
        factor, residual, jitter = _factorize_together(process, predictive, y, corner)
    return replace(
        process,
        inputs=join(process.inputs, predictive.inputs),
        factor=factor,
        reduction_features=_concatenate(
            process.reduction_features, predictive.reduction_features, dim=-1, num_trailing=2
        ),
        whitened_residual=residual,
        jitter=carried + jitter,
    )


def _factorize_together(
    process: ConditionedProcess,
    predictive: JointPredictive,
    y: Float[Tensor, "*s k"],
    corner: Float[Tensor, "*c k k"],
) -> tuple[Float[Tensor, "*c h h"], Float[Tensor, "*t h"], Float[Tensor, "*c"]]:
    """Earlier and new observations in one factorization, so that all of them share the jitter that the new ones need.

    Jitter is noise. On the new observations alone it would count the earlier ones as many times more precise.

    Args:
        process: Belief before the observations.
        predictive: What it expects of them.
        y: Observed values.
        corner: Their covariance given the earlier ones, with noise.

    Returns:
        The factor, the whitened residuals, and the jitter.
    """
    V, k = predictive.whitened_cross, y.shape[-1]
    assert V is not None
    root = extend_cholesky(process.factor, V.mT, torch.zeros_like(corner))
    A = root @ root.mT + torch.nn.functional.pad(corner, (root.shape[-1] - k, 0, root.shape[-1] - k, 0))
    held = process.base.prior.magnitude(process.inputs).detach()
    factor, jitter = cholesky(A, scale=_append(held, predictive.scale), name=_NAME)
    r = process.whitened_residual
    residual = _append(apply(process.factor, r), y - predictive.mean + apply(V.mT, r))
    return factor, solve_vector(factor, residual), jitter


def _append(first: Tensor, second: Tensor) -> Tensor:
    return _concatenate(first, second, dim=-1, num_trailing=1)


def _concatenate(first: Tensor, second: Tensor, *, dim: int, num_trailing: int) -> Tensor:
    """Concatenate after broadcasting the leading axes."""
    batch = broadcast_shapes(first.shape[:-num_trailing], second.shape[:-num_trailing])
    return torch.cat([t.expand(*batch, *t.shape[-num_trailing:]) for t in (first, second)], dim=dim)
