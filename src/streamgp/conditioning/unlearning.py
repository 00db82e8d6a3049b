"""Taking observations back: a belief less the site of what it learned."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.nystrom import NystromPredictive, predict_nystrom
from streamgp.conditioning.observation import Noise, Observation
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.gp import SparseProcess
from streamgp.linalg import apply, factorize, solve_lower, solve_vector
from streamgp.storage import register

__all__ = ["LeaveOneOut", "UnlearnInfo", "leave_one_out", "unlearn"]


@register
@final
@dataclass(frozen=True, eq=False)
class UnlearnInfo:
    """Diagnostics of observations that were taken back.

    Attributes:
        least_share: The least share of its precision that any direction of the belief kept, in units of the belief
            before; close to rounding, little is known about the result.
    """

    least_share: Float[Tensor, "*b"]


@register
@final
@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Beliefs about each observed value without its own observation.

    Attributes:
        mean: Means of the latent values.
        variance: Variances of the latent values.
        log_density: Log densities of the observations, with their noise.
    """

    mean: Float[Tensor, "*n"]
    variance: Float[Tensor, "*n"]
    log_density: Float[Tensor, "*n"]


def unlearn(process: SparseProcess, observation: Observation) -> tuple[SparseProcess, UnlearnInfo]:
    r"""Divide a belief by the site of Gaussian observations that it has absorbed.

    With $W = R^\top \phi(X) \Sigma^{-1/2}$ and $I - W W^\top = M M^\top$,

    $$
    \bar S \leftarrow R (I - W W^\top)^{-1} R^\top, \qquad
    \bar m \leftarrow \bar m - \bar S \phi(X) \Sigma^{-1} (y - \mu_q(X)) ,
    $$

    the second with the new $\bar S$. Exact where the inducing points are those at which the observations were absorbed.

    Args:
        process: Belief before; not modified.
        observation: Inputs, targets and noise as they were absorbed.

    Returns:
        The belief without the observations, and diagnostics.

    Raises:
        ValueRangeError: If the belief does not hold as much information as is to be taken.
    """
    seen, noise = predict_nystrom(process, observation), _gaussian_noise(observation)
    R = process.whitened_root.double()
    W = noise.whiten(seen.spread.mT).mT.double()
    e = noise.whiten((observation.targets - seen.mean).unsqueeze(-1)).squeeze(-1).double()
    eye = torch.eye(R.shape[-1], dtype=R.dtype, device=R.device)
    M, is_trusted = factorize(eye - W @ W.mT, scale=torch.ones_like(eye[0]))
    if is_trusted is not None:
        raise ValueRangeError(
            "The belief does not hold as much information as the observations would take from it, so they were not all "
            "learned, or with more noise. Unlearn what was absorbed, with the same noise variances."
        )
    root = solve_lower(M, R.mT).mT.contiguous()
    mean = process.whitened_mean.double() - apply(root, solve_vector(M, apply(W, e)))
    dtype = process.whitened_mean.dtype
    share = M.diagonal(dim1=-2, dim2=-1).square().amin(-1)
    return process.with_belief(mean.to(dtype), root.to(dtype)), UnlearnInfo(share.to(dtype))


def leave_one_out(process: SparseProcess, observation: Observation) -> LeaveOneOut:
    r"""Predict each absorbed Gaussian observation from all others.

    What the inducing points explain of an observed value has mean $\mu$ and variance $e$ under the belief. Without its
    own observation $y$ of noise $\sigma^2$ it has precision $1/e - 1/\sigma^2$ and precision-weighted mean
    $\mu/e - y/\sigma^2$. No belief is formed: $O(m^2 n)$ for all together.

    Args:
        process: Belief after the observations.
        observation: Inputs, targets and noise as they were absorbed.
    """
    seen, noise = predict_nystrom(process, observation), _gaussian_noise(observation)
    if noise.is_matrix:
        raise UnsupportedError(
            "Correlated observations cannot be left out one by one. Pass one noise variance for each observation."
        )
    explained, variances = _explained(seen), noise.variances(seen.mean.shape[-1])
    share = 1.0 - explained / variances
    if not bool((share > 8 * torch.finfo(share.dtype).eps).all()):
        raise ValueRangeError(
            "The belief knows less of some observed values than their own observations tell, so these were not "
            "learned, or with more noise. Pass what was absorbed, with the same noise variances."
        )
    mean = seen.mean - explained * (observation.targets - seen.mean) / (variances * share)
    variance = explained / share + seen.slack
    total = variance + variances
    log_density = -0.5 * ((observation.targets - mean).square() / total + (2 * torch.pi * total).log())
    return LeaveOneOut(mean, variance, log_density)


def _explained(seen: NystromPredictive) -> Tensor:
    return seen.spread.square().sum(-2)


def _gaussian_noise(observation: Observation) -> Noise:
    assert observation.noise is not None, "observations of a likelihood are unlearned through their sites"
    return observation.noise
