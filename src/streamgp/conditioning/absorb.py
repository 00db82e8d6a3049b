"""Absorbing observations into a sparse posterior of constant size."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.observation import Observation, prior_belief
from streamgp.conditioning.transport import TransportInfo, transport
from streamgp.errors import NumericalError
from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import apply, cholesky, pivoted_cholesky, solve_lower, solve_vector
from streamgp.shapes import broadcast_shapes
from streamgp.sites import AbstractBelief, DenseBelief, FactoredBelief, SiteInfo

__all__ = ["AbsorbInfo", "absorb", "choose_inducing_points"]


@final
@dataclass(frozen=True, eq=False)
class AbsorbInfo:
    r"""Diagnostics of one absorbed batch.

    Attributes:
        jitter: What stands on the diagonal of $K_{zz}$.
        num_clipped: Directions of the carried belief whose precision had to be bounded; only after a changed kernel.
        residual_trace: $\operatorname{tr} \Sigma^{-1}(K_{xx} - Q_{xx})$, what the inducing points cannot express of the
            new observations. Large values mean that there are too few of them.
        lost_trace: The same for the old belief, when inducing points moved.
        num_swapped: How many inducing points are new.
        site_info: Diagnostics of the sites; None for Gaussian observations.
    """

    jitter: Float[Tensor, "*b"]
    num_clipped: int
    residual_trace: Float[Tensor, "*b"]
    lost_trace: Float[Tensor, "*b"]
    num_swapped: int
    site_info: SiteInfo | None


def absorb(
    process: SparseProcess,
    observation: Observation,
    *,
    inducing_points: Float[Tensor, "*b m d"] | None = None,
    prior: Prior | None = None,
) -> tuple[SparseProcess, AbsorbInfo]:
    r"""Absorb observations of $H f(X)$ into a sparse posterior.

    The belief is carried to the new inducing points and prior, if there are any, the observations become Gaussian ones
    $y = H f(X) + \varepsilon$, $\varepsilon \sim \mathcal N(0, \Sigma)$, if they are not, and the belief is updated in
    square-root form. With $W = R^\top \phi(X) H^\top \Sigma^{-1/2}$,

    $$
    \bar S \leftarrow R (I + W W^\top)^{-1} R^\top, \qquad
    \bar m \leftarrow \bar m + \bar S \phi(X) H^\top \Sigma^{-1} (y - H \mu_q(X)) .
    $$

    Nothing is inverted that could be singular. Costs $O(m^2 n)$ for few observations, $O(m^3 + m^2 n)$ for many, and
    $O(m^3)$ more if the inducing points move.

    Args:
        process: Belief before the observations; not modified.
        observation: Inputs, targets and their noise, positive, or likelihood.
        inducing_points: New inducing points; None keeps them.
        prior: New prior; None keeps it.

    Returns:
        Belief after the observations, and diagnostics.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
        Andrews (1968), A square root formulation of the Kalman covariance equations.
    """
    X, H = observation.inputs, observation.projection
    moved, num_swapped, carried = process, 0, TransportInfo(0, X.new_zeros(process.batch_shape))
    if inducing_points is not None or prior is not None:
        Z = process.inducing_points
        new_points = Z if inducing_points is None else inducing_points
        moved, carried = transport(process, new_points, process.prior if prior is None else prior)
        num_swapped = int((~(new_points.unsqueeze(-2) == Z.unsqueeze(-3)).all(-1).any(-1)).sum())
    phi, prior_mean = moved.features(X), moved.prior.mean(X)
    slack = moved.prior.variance(X) - phi.square().sum(-2)
    if H is not None:
        residual = moved.prior.covariance(X, X) - phi.mT @ phi
        slack = (H @ residual @ H.mT).diagonal(dim1=-2, dim2=-1)
        phi, prior_mean = phi @ H.mT, apply(H, prior_mean)
    mean, slack = prior_mean + apply(phi.mT, moved.whitened_mean), slack.clamp_min(0.0)
    R = moved.whitened_root
    W = R.mT @ phi
    targets, noise, site_info = observation.to_gaussian(
        _explained_belief(mean, W, slack), lambda: prior_belief(moved.prior, X, H)
    )
    e = noise.whiten((targets - mean).unsqueeze(-1)).squeeze(-1)
    root, step = _update_root(R, noise.whiten(W.mT).mT, e)
    if not torch.isfinite(step.sum()):
        raise NumericalError(
            "The observations moved the belief beyond what numbers can hold. "
            "Check the scale of targets, noise and kernel."
        )
    trace = (slack / noise.variances(slack.shape[-1])).sum(-1)
    info = AbsorbInfo(moved.total_jitter, carried.num_clipped, trace, carried.lost_trace, num_swapped, site_info)
    return moved.with_belief(moved.whitened_mean + step, root), info


def choose_inducing_points(
    process: SparseProcess, observation: Observation, *, num_inducing: int, prior: Prior
) -> Float[Tensor, "*b m d"] | None:
    r"""Choose inducing points among the old ones and new inputs by pivoted Cholesky of the weighted kernel.

    New inputs count with the precision of their observations. Old points count with the geometric mean of that
    precision and of the information the belief holds at them, the diagonal of the site $\Lambda$. By the information
    alone, points that know much would never give way, and new regions stay uncovered while data comes in small
    batches; by coverage alone, points are exchanged that need not be, and each exchange loses some of the belief.

    Old points that stay keep their order.

    Returns:
        The chosen points, or None if the old ones are chosen again.
    """
    Z, X = process.inducing_points, observation.inputs
    batch = broadcast_shapes(Z.shape[:-2], X.shape[:-2], prior.batch_shape)
    num_old = Z.shape[-2]
    candidates = torch.cat([Z.expand(*batch, *Z.shape[-2:]), X.expand(*batch, *X.shape[-2:])], dim=-2)
    precision = _input_precision(process, observation).expand(*batch, X.shape[-2])
    typical = precision.mean(-1, keepdim=True)
    old_precision = (_information(process).clamp_min(0.0) * typical).sqrt() + 1e-6 * typical
    chosen = pivoted_cholesky(
        prior.covariance,
        candidates,
        num_inducing,
        variance=prior.variance(candidates).expand(candidates.shape[:-1]),
        weights=torch.cat([old_precision.expand(*batch, num_old), precision], dim=-1),
    )
    order = chosen.pivots.sort(-1).values
    if order.shape[-1] == num_old and bool((order == torch.arange(num_old, device=order.device)).all()):
        return None
    return candidates.gather(-2, order.unsqueeze(-1).expand(*order.shape, candidates.shape[-1]))


def _information(process: SparseProcess) -> Tensor:
    r"""The diagonal of the site $\Lambda = S^{-1} - K^{-1}$ at the inducing points; may be negative."""
    L, R = process.factor.double(), process.whitened_root.double()
    eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    whitening = solve_lower(L, eye.expand_as(L))
    inverse, _ = torch.linalg.inv_ex(R)
    information = (inverse @ whitening).square().sum(-2) - whitening.square().sum(-2)
    # A belief without spread is infinitely sure; as large as the dtype holds with room for products.
    most = torch.finfo(process.whitened_mean.dtype).max ** 0.25
    return information.nan_to_num(nan=most, posinf=most).clamp_max(most).to(process.whitened_mean.dtype)


def _input_precision(process: SparseProcess, observation: Observation) -> Tensor:
    """How much each input's observation tells, before its site is known: the expected curvature under the belief."""
    X, H, y = observation.inputs, observation.projection, observation.targets
    if observation.noise is not None:
        return 1.0 / observation.noise.variances(X.shape[-2])
    assert observation.likelihood is not None
    if H is None:
        mean, variance = process.mean(X), process.variance(X)
    else:
        covariance = H @ process.covariance(X) @ H.mT
        mean, variance = apply(H, process.mean(X)), covariance.diagonal(dim1=-2, dim2=-1)
    _, curvature = observation.likelihood.expected_derivatives(mean, variance.clamp_min(0.0), y)
    # An observation of no curvature is still a candidate, behind all others.
    precision = (-curvature).clamp_min(1e-6)
    return precision if H is None else apply(H.abs().mT, precision)


def _explained_belief(mean: Tensor, W: Tensor, slack: Tensor) -> AbstractBelief:
    """The belief about what the inducing points explain of the latent values, in the smaller of its two forms."""
    if W.shape[-1] >= W.shape[-2]:
        return FactoredBelief(mean, W, slack)
    return DenseBelief(mean, W.mT @ W, slack)


def _update_root(R: Tensor, W: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    r"""The root of $R (I + W W^\top)^{-1} R^\top$, and the step of the mean $R (I + W W^\top)^{-1} W e$."""
    m, n = W.shape[-2:]
    if n < m:
        # Andrews: with I + W'W = M M', the root is R (I - W M^-T (I + M)^-1 W').
        eye = torch.eye(n, dtype=W.dtype, device=W.device)
        M, _ = cholesky(eye + W.mT @ W, name="the information of the observations")
        half = solve_lower(M, W.mT)
        correction = half.mT @ solve_lower(M + eye, W.mT)
        step = apply(R @ half.mT, solve_vector(M, e))
        return R - R @ correction, step
    eye = torch.eye(m, dtype=W.dtype, device=W.device)
    M, _ = cholesky(eye + W @ W.mT, name="the information of the observations")
    root = solve_lower(M, R.mT).mT
    return root, apply(root, solve_vector(M, apply(W, e)))
