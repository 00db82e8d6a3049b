"""Absorbing observations into a sparse posterior of constant size."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import qr_multiply, solve_triangular
from torch import Tensor

from streamgp.conditioning.nystrom import NystromPredictive
from streamgp.conditioning.observation import LEAST_RELATIVE_NOISE, Noise, Observation, prior_belief
from streamgp.conditioning.transport import TransportInfo
from streamgp.errors import NumericalError
from streamgp.gp import SparseProcess
from streamgp.linalg import apply, cholesky, solve_lower, solve_lower_transpose, solve_vector
from streamgp.sites import AbstractBelief, DenseBelief, FactoredBelief, SiteInfo
from streamgp.storage import register
from streamgp.threads import limit_threads

__all__ = ["AbsorbInfo", "absorb"]

# Explained variance of an observation, in units of its noise, up to which sums of squares keep enough digits beside the
# ones of the prior: six at 1e10. If larger, they keep fewer; if smaller, more observations take the slower way.
_MOST_PRECISE = 1e10


@register
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
    process: SparseProcess, observation: Observation, seen: NystromPredictive, *, carried: TransportInfo
) -> tuple[SparseProcess, AbsorbInfo]:
    r"""Absorb observations of $f(X)$, or of rows of evidence, into a sparse posterior.

    The observations become Gaussian ones $y = f(X) + \varepsilon$, $\varepsilon \sim \mathcal N(0, \Sigma)$, if they
    are not, and the belief is updated in square-root form. With $W = R^\top \phi(X) \Sigma^{-1/2}$,

    $$
    \bar S \leftarrow R (I + W W^\top)^{-1} R^\top, \qquad
    \bar m \leftarrow \bar m + \bar S \phi(X) \Sigma^{-1} (y - \mu_q(X)) .
    $$

    Nothing is inverted that could be singular. Costs $O(m^2 n)$ for few observations, $O(m^3 + m^2 n)$ for many.

    Args:
        process: Belief before the observations; not modified.
        observation: Inputs, targets and their noise, positive, or likelihood.
        seen: What the belief says of the observed values.
        carried: What is known of the step that brought the belief to its inducing points.

    Returns:
        Belief after the observations, and diagnostics.

    References:
        Bui, Nguyen, Turner (2017), Streaming sparse Gaussian process approximations.
        Andrews (1968), A square root formulation of the Kalman covariance equations.
    """
    targets, noise, site_info = observation.to_gaussian(
        lambda: _nystrom_belief(seen), lambda: prior_belief(process.prior, observation.inputs)
    )
    absorbed = _absorb_gaussian(process, seen, targets - seen.mean, noise)
    if not math.isfinite(float(absorbed.whitened_mean.sum())):
        raise NumericalError(
            "The observations moved the belief beyond what numbers can hold.",
            advice="Check the scale of targets, noise and kernel.",
        )
    trace = (seen.slack / noise.variances(seen.slack.shape[-1])).sum(-1)
    return absorbed, AbsorbInfo(
        jitter=process.total_jitter,
        num_clipped=carried.num_clipped,
        residual_trace=trace,
        lost_trace=carried.lost_trace,
        num_swapped=carried.num_swapped,
        site_info=site_info,
    )


def _absorb_gaussian(process: SparseProcess, seen: NystromPredictive, residual: Tensor, noise: Noise) -> SparseProcess:
    """Absorb in the cheapest way that keeps the digits."""
    if seen.spread.shape[-1] == 1:
        return _update_by_one(process, seen, residual, noise)
    e = noise.whiten(residual.unsqueeze(-1)).squeeze(-1).double()
    W, R = noise.whiten(seen.spread.mT).mT.double(), process.whitened_root.double()
    is_precise = torch.atleast_2d(W.square().sum(-2) > _MOST_PRECISE).flatten(end_dim=-2).any(0)
    root, step = _update_precise_root(R, W, e, is_precise) if is_precise.any() else _update_root(R, W, e)
    information = process.information
    if information is not None:
        information = information + noise.whiten(_weights(process, seen).mT).square().sum(-2)
    dtype = process.whitened_mean.dtype
    return process.with_belief(process.whitened_mean + step.to(dtype), root.to(dtype), information)


def _update_by_one(process: SparseProcess, seen: NystromPredictive, residual: Tensor, noise: Noise) -> SparseProcess:
    r"""Update by one observation, $W$ a vector $w$, with a root that keeps its digits whatever the noise $v$.

    A reflection $Q$ turns $w$ into a multiple of the first axis. $R Q$ is a root of the same covariance, of which the
    observation shrinks the first column alone, by $\sqrt{v / (v + w^\top w)}$. No column is left of a subtraction, as
    in $R - R w w^\top / (v + w^\top w + \dots)$, which would keep half of the digits of a precise observation.
    """
    if max(seen.spread.dim() - 1, residual.dim(), noise.values.dim()) > 1:
        return _update_by_one_each(process, seen, residual, noise)
    w, v, R = seen.spread.squeeze(-1), float(noise.values), process.whitened_root
    Rw, square = R @ w, float(w @ w)
    total, norm, first = v + square, math.sqrt(square), float(w[0])
    mean, root = torch.add(process.whitened_mean, Rw, alpha=float(residual) / total), R
    if norm > 0.0:
        reach = math.copysign(norm, first)
        u = w.clone()
        u[0] += reach
        root = torch.addr(R, torch.add(Rw, R[:, 0], alpha=reach), u, alpha=-1.0 / (norm * (norm + abs(first))))
        root[:, 0] = Rw * (-math.sqrt(v / total) / reach)
    information = process.information
    if information is not None:
        weights = _weights(process, seen).squeeze(-1)
        least = LEAST_RELATIVE_NOISE[w.dtype] * (square + float(seen.slack))
        information = torch.addcmul(information, weights, weights, value=1.0 / max(v, least))
    return process.with_belief(mean, root, information)


def _update_by_one_each(
    process: SparseProcess, seen: NystromPredictive, residual: Tensor, noise: Noise
) -> SparseProcess:
    """Update each member of a batch by one observation."""
    w, v = seen.spread.squeeze(-1), noise.variances(1)
    if noise.is_matrix:
        v = noise.values.squeeze(-1)
    R = process.whitened_root
    Rw, square = apply(R, w), w.square().sum(-1, keepdim=True)
    total, first = v + square, w[..., :1]
    mean = torch.addcmul(process.whitened_mean, Rw, residual / total)
    norm = square.clamp_min(torch.finfo(w.dtype).tiny).sqrt()
    reach = torch.where(first < 0.0, -norm, norm)
    u = torch.cat([first + reach, w[..., 1:]], -1)
    turned = (Rw + reach * R[..., 0]) / (norm * (norm + first.abs()))
    shrunk = Rw * (-(v / total).sqrt() / reach)
    root = torch.addcmul(R, turned.unsqueeze(-1), u.unsqueeze(-2), value=-1.0)
    root = torch.cat([shrunk.unsqueeze(-1), root[..., 1:]], -1)
    root = torch.where(square.unsqueeze(-1) > 0.0, root, R)
    information = process.information
    if information is not None:
        least = LEAST_RELATIVE_NOISE[w.dtype] * (square + seen.slack)
        information = torch.addcdiv(information, _weights(process, seen).squeeze(-1).square(), torch.maximum(v, least))
    return process.with_belief(mean, root, information)


def _weights(process: SparseProcess, seen: NystromPredictive) -> Tensor:
    return solve_lower_transpose(process.factor, seen.features) if seen.weights is None else seen.weights


def _nystrom_belief(seen: NystromPredictive) -> AbstractBelief:
    """The belief about what the inducing points explain of the latent values, in the smaller of its two forms."""
    W = seen.spread
    if W.shape[-1] >= W.shape[-2]:
        return FactoredBelief(seen.mean, W, seen.slack)
    return DenseBelief(seen.mean, W.mT @ W, seen.slack)


def _update_root(R: Tensor, W: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    r"""The root of $R (I + W W^\top)^{-1} R^\top$, and the step of the mean $R (I + W W^\top)^{-1} W e$."""
    m, n = W.shape[-2:]
    if n < m:
        # Andrews: with I + W'W = M M', the root is R (I - W M^-T (I + M)^-1 W'). From left to right, as m > n.
        eye = torch.eye(n, dtype=W.dtype, device=W.device)
        M, _ = cholesky(eye + W.mT @ W, name="the information of the observations")
        half = R @ solve_lower(M, W.mT).mT
        return R - half @ solve_lower(M + eye, W.mT), apply(half, solve_vector(M, e))
    eye = torch.eye(m, dtype=W.dtype, device=W.device)
    M, _ = cholesky(eye + W @ W.mT, name="the information of the observations")
    root = solve_lower(M, R.mT).mT
    return root, apply(root, solve_vector(M, apply(W, e)))


def _update_precise_root(R: Tensor, W: Tensor, e: Tensor, is_precise: Tensor) -> tuple[Tensor, Tensor]:
    r"""Root and step by orthogonal factors of the rows $(W, I)^\top$, where products of $W$ would swallow the ones.

    With the largest rows and columns first, each row keeps its own digits however far their scales are apart. Rows
    that are not precise become a triangle with the ones first, so that there are no more rows than it takes.

    References:
        Cox, Higham (1998), Stability of Householder QR factorization for weighted least squares problems.
    """
    others, m = W[..., ~is_precise], W.shape[-2]
    eye = torch.eye(m, dtype=W.dtype, device=W.device)
    L, _ = cholesky(eye + others @ others.mT, name="the information of the observations")
    known = solve_vector(L, apply(others, e[..., ~is_precise]))
    batch = torch.broadcast_shapes(R.shape[:-2], W.shape[:-2], e.shape[:-1])
    rows, right = (
        torch.cat([one.expand(*batch, *one.shape[-n:]), two.expand(*batch, *two.shape[-n:])], dim=-n)
        for one, two, n in ((W[..., is_precise].mT, L.mT, 2), (e[..., is_precise], known, 1))
    )
    flat = (each.reshape(-1, *each.shape[len(batch) :]).cpu().numpy() for each in (R.expand(*batch, m, m), rows, right))
    roots, steps = [], []
    for before, A, b in zip(*flat, strict=True):
        if not math.isfinite(A.sum() + b.sum()):
            raise NumericalError(
                "The observations, in units of their noise, are beyond what numbers can hold.",
                advice="Check the scale of targets, noise and kernel.",
            )
        order = np.argsort(-np.abs(A).max(1), kind="stable")
        with limit_threads():
            rotated, triangle, columns = qr_multiply(A[order], b[order], mode="right", pivoting=True)
            roots.append(solve_triangular(triangle, before[:, columns].T, trans="T").T)
        steps.append(roots[-1] @ rotated)
    found = (torch.from_numpy(np.stack(each)).to(R) for each in (roots, steps))
    root, step = (each.view(*batch, *each.shape[1:]) for each in found)
    return root, step
