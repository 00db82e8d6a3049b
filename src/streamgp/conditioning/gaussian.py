"""Exact conditioning of a sparse posterior on Gaussian observations."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.noise import Noise
from streamgp.gp import AbstractProcess, SparseProcess, num_own_axes, row_by_row
from streamgp.linalg import apply, cholesky, extend_cholesky, solve_lower, solve_vector
from streamgp.shapes import broadcast_shapes
from streamgp.storage import register

__all__ = ["ConditionedProcess", "JointPredictive", "observe", "predict_jointly"]

_NAME = "the covariance of the observations"


@register
@final
@dataclass(frozen=True, eq=False)
class ConditionedProcess(AbstractProcess):
    r"""The process $q$ given observations $y = H f(X) + \varepsilon$, $\varepsilon \sim \mathcal N(0, \Sigma)$.

    With $A = H k_q(X, X) H^\top + \Sigma = L_A L_A^\top$, $P = D \phi(X) H^\top$, $B = L^{-\top} P$,
    $\alpha = A^{-1}(y - H \mu_q(X))$ and the letters of `SparseProcess`,

    $$
    \mu(w) = \mu_0(w) + k(w, Z)(a - B \alpha) + k(w, X) H^\top \alpha, \qquad
    k(w, w') = k_q(w, w') - k_q(w, X) H^\top A^{-1} H k_q(X, w') .
    $$

    The mean costs a dot product for each input; observations with more leading axes than their inputs (fantasies)
    share $L_A$ and $B$ and differ in $\alpha$ alone.

    Attributes:
        base: The sparse posterior $q$ before any of the observations.
        inputs: All inputs $X$ so far.
        projection: The matrix $H$; None for the identity.
        factor: $L_A$.
        reduction_features: $P$.
        whitened_residual: $L_A^{-1}(y - H \mu_q(X))$.
        jitter: What the factorizations had to add to the diagonal of $A$, at most.
    """

    base: SparseProcess
    inputs: Float[Tensor, "*b n d"]
    projection: Float[Tensor, "k n"] | None
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
        return self.base.mean_weights - apply(B, alpha), _spread(alpha, self.projection)

    def cross(self, X: Tensor) -> Tensor | None:
        return None if num_own_axes(X, self._num_batch) > 0 else self.base.cross(X)

    def mean(self, X: Tensor, cross: Tensor | None = None) -> Tensor:
        inducing_weights, input_weights = self._weights
        prior = self.base.prior
        from_inducing = apply(self.base.inducing.crossed(X) if cross is None else cross.mT, inducing_weights)
        return prior.mean(X) + from_inducing + apply(prior.covariance(X, self.inputs), input_weights)

    @property
    def _num_batch(self) -> int:
        """Leading axes of variances: fantasies, those of the residual, share them."""
        return max(self.factor.dim() - 2, self.reduction_features.dim() - 2, len(self.base.batch_shape))

    def variance(self, X: Tensor, cross: Tensor | None = None) -> Tensor:
        return row_by_row(lambda rows: self._variance(rows, cross), X, self._num_batch)

    def _variance(self, X: Tensor, cross: Tensor | None) -> Tensor:
        phi = self.base.features(X, cross)
        V = self.whitened_cross(X, phi)
        before = self.base.prior.variance(X) - (phi * (self.base.variance_reduction @ phi)).sum(-2)
        return before - V.square().sum(-2)

    def prior_variance(self, X: Tensor) -> Tensor:
        return self.base.prior.variance(X)

    def covariance(self, X: Tensor) -> Tensor:
        phi = self.base.features(X)
        V = self.whitened_cross(X, phi)
        return self.base.prior.covariance(X, X) - phi.mT @ (self.base.variance_reduction @ phi) - V.mT @ V

    def whitened_cross(
        self, X: Float[Tensor, "*b n d"], phi: Float[Tensor, "*c m k"], projection: Float[Tensor, "k n"] | None = None
    ) -> Float[Tensor, "*e h k"]:
        r"""The matrix $L_A^{-1} H k_q(X_A, X) H'^\top$ between the observations held and values $H' f(X)$."""
        cross = _project_rows(self.base.prior.covariance(self.inputs, X), self.projection)
        return solve_lower(self.factor, _project_columns(cross, projection) - self.reduction_features.mT @ phi)


@final
@dataclass(frozen=True, eq=False)
class JointPredictive:
    r"""What a process expects of values $H f(X)$ before they are observed, and what conditioning on them will need.

    Attributes:
        inputs: $X$.
        projection: $H$; None for the identity.
        mean: Mean of the values.
        covariance: Their covariance, without noise.
        scale: Their prior variances, whose rounding the covariance carries.
        reduction_features: The new columns of $P$.
        whitened_cross: $L_A^{-1}$ times their covariance with the observations held already; None if there are none.
    """

    inputs: Float[Tensor, "*b n d"]
    projection: Float[Tensor, "k n"] | None
    mean: Float[Tensor, "*s k"]
    covariance: Float[Tensor, "*c k k"]
    scale: Float[Tensor, "*e k"]
    reduction_features: Float[Tensor, "*e m k"]
    whitened_cross: Float[Tensor, "*e h k"] | None


def predict_jointly(
    process: SparseProcess | ConditionedProcess,
    X: Float[Tensor, "*b n d"],
    projection: Float[Tensor, "k n"] | None = None,
) -> JointPredictive:
    """Predict what will be observed at inputs."""
    base = process if isinstance(process, SparseProcess) else process.base
    phi = _project_columns(base.features(X), projection)
    P = base.variance_reduction @ phi
    prior_mean, Kxx = base.prior.mean(X), base.prior.covariance(X, X)
    scale = Kxx.detach().diagonal(dim1=-2, dim2=-1)
    if projection is not None:
        prior_mean, Kxx = apply(projection, prior_mean), projection @ Kxx @ projection.mT
        scale = apply(projection.square(), scale)
    mean, covariance = prior_mean + apply(phi.mT, base.whitened_mean), Kxx - phi.mT @ P
    if isinstance(process, SparseProcess):
        return JointPredictive(X, projection, mean, covariance, scale, P, None)
    V = process.whitened_cross(X, phi, projection)
    mean = mean + apply(V.mT, process.whitened_residual)
    return JointPredictive(X, projection, mean, covariance - V.mT @ V, scale, P, V)


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
    if isinstance(process, ConditionedProcess) and bool((process.jitter > 0).any()):
        # What earlier observations needed is part of their noise, and as much of that of new ones.
        corner = corner + torch.diag_embed(process.jitter.unsqueeze(-1).expand(*process.jitter.shape, y.shape[-1]))
    last, jitter = cholesky(corner, scale=predictive.scale, name=_NAME)
    residual = solve_vector(last, y - predictive.mean)
    if isinstance(process, SparseProcess):
        P = predictive.reduction_features
        return ConditionedProcess(process, predictive.inputs, predictive.projection, last, P, residual, jitter)
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
        inputs=_concatenate(process.inputs, predictive.inputs, dim=-2, num_trailing=2),
        projection=_join(process, predictive),
        factor=factor,
        reduction_features=_concatenate(
            process.reduction_features, predictive.reduction_features, dim=-1, num_trailing=2
        ),
        whitened_residual=residual,
        jitter=process.jitter + jitter,
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
    held = process.base.prior.variance(process.inputs).detach()
    held = held if process.projection is None else apply(process.projection.square(), held)
    factor, jitter = cholesky(A, scale=_append(held, predictive.scale), name=_NAME)
    r = process.whitened_residual
    residual = _append(apply(process.factor, r), y - predictive.mean + apply(V.mT, r))
    return factor, solve_vector(factor, residual), jitter


def _append(first: Tensor, second: Tensor) -> Tensor:
    return _concatenate(first, second, dim=-1, num_trailing=1)


def _project_rows(matrix: Tensor, projection: Tensor | None) -> Tensor:
    return matrix if projection is None else projection @ matrix


def _project_columns(matrix: Tensor, projection: Tensor | None) -> Tensor:
    return matrix if projection is None else matrix @ projection.mT


def _spread(alpha: Tensor, projection: Tensor | None) -> Tensor:
    return alpha if projection is None else alpha @ projection


def _concatenate(first: Tensor, second: Tensor, *, dim: int, num_trailing: int) -> Tensor:
    """Concatenate after broadcasting the leading axes."""
    batch = broadcast_shapes(first.shape[:-num_trailing], second.shape[:-num_trailing])
    return torch.cat([t.expand(*batch, *t.shape[-num_trailing:]) for t in (first, second)], dim=dim)


def _join(process: ConditionedProcess, predictive: JointPredictive) -> Tensor | None:
    """The projection of earlier and new observations together."""
    if process.projection is None and predictive.projection is None:
        return None
    blocks = ((process.projection, process.inputs), (predictive.projection, predictive.inputs))
    return torch.block_diag(
        *(torch.eye(X.shape[-2], dtype=X.dtype, device=X.device) if H is None else H for H, X in blocks)
    )
