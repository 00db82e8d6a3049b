"""Absorbing observations into a sparse posterior of constant size."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.noise import LEAST_RELATIVE_NOISE, Noise
from streamgp.conditioning.nystrom import NystromPredictive
from streamgp.conditioning.observation import Observation, prior_belief
from streamgp.conditioning.transport import TransportInfo
from streamgp.errors import NumericalError
from streamgp.gp import SparseProcess
from streamgp.linalg import apply, cholesky, solve_lower, solve_lower_transpose, solve_vector
from streamgp.sites import AbstractBelief, DenseBelief, FactoredBelief, SiteInfo
from streamgp.storage import register

__all__ = ["AbsorbInfo", "absorb"]

# Noise below this share of the explained variance is lost to rounding where several observations are factorized.
_LEAST_NOISE = 1e-12


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
        num_floored: Observations so precise that their noise had to be raised to where numbers can hold the result:
            1e-12 of what the inducing points leave open of the observed value.
        site_info: Diagnostics of the sites; None for Gaussian observations.
    """

    jitter: Float[Tensor, "*b"]
    num_clipped: int
    residual_trace: Float[Tensor, "*b"]
    lost_trace: Float[Tensor, "*b"]
    num_swapped: int
    num_floored: int
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
    is_one = seen.spread.shape[-1] == 1
    update = (_update_by_one if seen.spread.dim() == 2 else _update_by_one_each) if is_one else _update
    # The square root of one observation's update has a closed form that holds for any noise.
    floored, num_floored = (noise, 0) if is_one else noise.raised_to(_LEAST_NOISE * seen.spread.square().sum(-2))
    absorbed = update(process, seen, targets - seen.mean, floored)
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
        num_floored=num_floored,
        site_info=site_info,
    )


def _update_by_one(process: SparseProcess, seen: NystromPredictive, residual: Tensor, noise: Noise) -> SparseProcess:
    r"""The update by one observation, $W$ a vector, with numbers for what `_update` factorizes."""
    w, v = seen.spread.squeeze(-1), float(noise.values)
    Rw = process.whitened_root @ w
    total = v + float(w @ w)
    mean = torch.add(process.whitened_mean, Rw, alpha=float(residual) / total)
    root = torch.addr(process.whitened_root, Rw, w, alpha=-1.0 / (total + math.sqrt(total * v)))
    information = process.information
    if information is not None:
        weights = _weights(process, seen).squeeze(-1)
        least = LEAST_RELATIVE_NOISE[w.dtype] * (float(w @ w) + float(seen.slack))
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
    Rw, total = apply(R, w), v + w.square().sum(-1, keepdim=True)
    mean = torch.addcmul(process.whitened_mean, Rw, residual / total)
    shrinkage = Rw / (total + (total * v).sqrt())
    root = torch.addcmul(R, shrinkage.unsqueeze(-1), w.unsqueeze(-2), value=-1.0)
    information = process.information
    if information is not None:
        least = LEAST_RELATIVE_NOISE[w.dtype] * (w.square().sum(-1, keepdim=True) + seen.slack)
        information = torch.addcdiv(information, _weights(process, seen).squeeze(-1).square(), torch.maximum(v, least))
    return process.with_belief(mean, root, information)


def _update(process: SparseProcess, seen: NystromPredictive, residual: Tensor, noise: Noise) -> SparseProcess:
    """The update by any number of observations."""
    e = noise.whiten(residual.unsqueeze(-1)).squeeze(-1)
    W = noise.whiten(seen.spread.mT).mT
    root, step = (value.to(W.dtype) for value in _update_root(process.whitened_root.double(), W.double(), e.double()))
    information = process.information
    if information is not None:
        information = information + noise.whiten(_weights(process, seen).mT).square().sum(-2)
    return process.with_belief(process.whitened_mean + step, root, information)


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
