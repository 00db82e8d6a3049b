"""Absorbing observations into a sparse posterior of constant size."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.noise import Noise
from streamgp.conditioning.transport import TransportInfo, transport
from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import apply, cholesky, pivoted_cholesky, solve_lower, solve_vector
from streamgp.shapes import broadcast_shapes

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
    """

    jitter: Float[Tensor, "*b"]
    num_clipped: int
    residual_trace: Float[Tensor, "*b"]
    lost_trace: Float[Tensor, "*b"]
    num_swapped: int


def absorb(
    process: SparseProcess,
    X: Float[Tensor, "*b n d"],
    y: Float[Tensor, "*b k"],
    *,
    noise: Noise,
    inducing_points: Float[Tensor, "*b m d"] | None = None,
    prior: Prior | None = None,
    projection: Float[Tensor, "k n"] | None = None,
) -> tuple[SparseProcess, AbsorbInfo]:
    r"""Absorb Gaussian observations $y = H f(X) + \varepsilon$ into a sparse posterior.

    The belief is carried to the new inducing points and prior, if there are any, and then updated in square-root form.
    With $W = R^\top \phi(X) H^\top \Sigma^{-1/2}$,

    $$
    \bar S \leftarrow R (I + W W^\top)^{-1} R^\top, \qquad
    \bar m \leftarrow \bar m + \bar S \phi(X) H^\top \Sigma^{-1} (y - H \mu_q(X)) .
    $$

    Nothing is inverted that could be singular. Costs $O(m^2 n)$ for few observations, $O(m^3 + m^2 n)$ for many, and
    $O(m^3)$ more if the inducing points move.

    Args:
        process: Belief before the observations; not modified.
        X: Inputs.
        y: Observed values.
        noise: Their noise; positive.
        inducing_points: New inducing points; None keeps them.
        prior: New prior; None keeps it.
        projection: The matrix $H$; the identity by default.

    Returns:
        Belief after the observations, and diagnostics.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
        Andrews (1968), A square root formulation of the Kalman covariance equations.
    """
    Z = process.inducing_points
    moved, num_swapped, carried = process, 0, TransportInfo(0, X.new_zeros(process.batch_shape))
    if inducing_points is not None or prior is not None:
        new_points = Z if inducing_points is None else inducing_points
        moved, carried = transport(process, new_points, process.prior if prior is None else prior)
        num_swapped = int((~(new_points.unsqueeze(-2) == Z.unsqueeze(-3)).all(-1).any(-1)).sum())
    phi = moved.features(X)
    mean = moved.prior.mean(X) + apply(phi.mT, moved.whitened_mean)
    slack = moved.prior.variance(X) - phi.square().sum(-2)
    if projection is not None:
        phi, mean = phi @ projection.mT, apply(projection, mean)
        slack = apply(projection.square(), slack)
    R = moved.whitened_root
    W = R.mT @ noise.whiten(phi.mT).mT
    e = noise.whiten((y - mean).unsqueeze(-1)).squeeze(-1)
    root, step = _update_root(R, W, e)
    updated = moved.with_belief(moved.whitened_mean + step, root)
    trace = (slack.clamp_min(0.0) / noise.variances(y.shape[-1])).sum(-1)
    return updated, AbsorbInfo(moved.total_jitter, carried.num_clipped, trace, carried.lost_trace, num_swapped)


def choose_inducing_points(
    process: SparseProcess, X: Float[Tensor, "*b n d"], *, noise: Noise, num_inducing: int, prior: Prior
) -> Float[Tensor, "*b m d"] | None:
    """Choose inducing points among the old ones and new inputs by pivoted Cholesky of the noise-weighted kernel.

    Old points that stay keep their order. Old points count with the mean precision of the new observations.

    Returns:
        The chosen points, or None if the old ones are chosen again.
    """
    Z = process.inducing_points
    batch = broadcast_shapes(Z.shape[:-2], X.shape[:-2], prior.batch_shape)
    num_old = Z.shape[-2]
    candidates = torch.cat([Z.expand(*batch, *Z.shape[-2:]), X.expand(*batch, *X.shape[-2:])], dim=-2)
    precision = 1.0 / noise.variances(X.shape[-2]).expand(*batch, X.shape[-2])
    old_precision = precision.mean(-1, keepdim=True).expand(*batch, num_old)
    chosen = pivoted_cholesky(
        prior.covariance,
        candidates,
        num_inducing,
        variance=prior.variance(candidates).expand(candidates.shape[:-1]),
        weights=torch.cat([old_precision, precision], dim=-1),
    )
    order = chosen.pivots.sort(-1).values
    if order.shape[-1] == num_old and bool((order == torch.arange(num_old, device=order.device)).all()):
        return None
    return candidates.gather(-2, order.unsqueeze(-1).expand(*order.shape, candidates.shape[-1]))


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
