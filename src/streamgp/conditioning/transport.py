"""Carrying a sparse belief to other inducing points and another prior."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.errors import NumericalError
from streamgp.gp import Prior, SparseProcess
from streamgp.linalg import apply, cholesky, solve_lower, solve_vector, symmetric_eigen

__all__ = ["TransportInfo", "inverse_root", "transport"]

# Under a changed prior a carried site may claim less than no information. It is bounded so that no direction
# becomes wider than ten prior variances, far beyond what training leaves (eigenvalues up to about 1.1).
_LEAST_PRECISION = -0.9


class TransportInfo(NamedTuple):
    """Diagnostics of a transport.

    Attributes:
        num_clipped: Directions whose precision had to be bounded.
        lost_trace: What the new inducing points cannot express of the old belief, the second trace term of the
            streaming bound; zero where nothing was lost.
        num_swapped: How many inducing points are new.
    """

    num_clipped: int
    lost_trace: Float[Tensor, "*b"]
    num_swapped: int


def transport(
    process: SparseProcess, inducing_points: Float[Tensor, "*b k d"], prior: Prior
) -> tuple[SparseProcess, TransportInfo]:
    r"""Express the belief of a sparse posterior at new inducing points $Z$, under a new prior $\theta$.

    The belief is the prior times a Gaussian site. With the whitened site $\bar\Lambda' = \bar S'^{-1} - I$,
    $\bar\lambda' = \bar S'^{-1} \bar m'$ and $T = L^{-1} \operatorname{cov}_\theta(u, u') L'^{-\top}$,

    $$
    \bar S^{-1} = I + T \bar\Lambda' T^\top, \qquad
    \bar S^{-1} \bar m = T (\bar\lambda' - \bar\Lambda' \bar\delta), \qquad
    \bar\delta = L'^{-1} (\operatorname{E}_\theta u' - \operatorname{E}_{\theta'} u') .
    $$

    For an unchanged kernel $T$ is a contraction, so the precision stays positive definite even where $\bar\Lambda'$ has
    negative eigenvalues. The $m \times m$ algebra runs in double precision whatever the dtype.

    Args:
        process: Belief before; not modified.
        inducing_points: New inducing points $Z$, none for weights of features. Variables that are equal to old ones
            keep their value exactly.
        prior: New prior; the old one for no change.

    Returns:
        The belief at the new inducing points, and diagnostics.
    """
    Z = inducing_points
    before_data = SparseProcess.from_prior(prior, Z, jitter=process.jitter if Z.shape[-2] else 0.0)
    equal = before_data.inducing.matches(process.inducing)
    L, L_old, R_old = before_data.factor.double(), process.factor.double(), process.whitened_root.double()
    T = solve_lower(L, _projected(process, before_data, equal))
    R_inverse = inverse_root(R_old)
    G = R_inverse @ T.mT
    eye = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
    site = G.mT @ G - T @ T.mT
    num_clipped = 0
    if prior is not process.prior:
        site, num_clipped = _bounded_below(site)
    L_P, _ = cholesky(eye + site, name="the precision of the carried belief")
    change = process.inducing.apply(lambda X: (prior.mean(X) - process.prior.mean(X)).unsqueeze(-2)).squeeze(-2)
    delta = solve_vector(L_old, change.double())
    precision_mean = apply(G.mT, apply(R_inverse, process.whitened_mean.double() - delta))
    precision_mean = precision_mean + apply(T, delta)
    mean = solve_vector(L_P, solve_vector(L_P, precision_mean), is_transposed=True)
    root = solve_lower(L_P, eye.expand_as(L_P)).mT
    # The trace of the old site times I - T'T: what it says of directions that the new points cannot express.
    lost = _squared_norm(R_inverse) - _squared_norm(G) - (R_old.shape[-1] - _squared_norm(T))
    moved = before_data.with_belief(mean.to(Z.dtype), root.to(Z.dtype).contiguous())
    return moved, TransportInfo(num_clipped, lost.to(Z.dtype), int((~equal.any(-1)).sum()))


def _projected(process: SparseProcess, before_data: SparseProcess, equal: Bool[Tensor, "*b m k"]) -> Tensor:
    r"""The matrix $\operatorname{cov}_\theta(u, u') L'^{-\top}$, exact for variables that stay."""
    L_old = process.factor.double()
    is_same = equal & (equal.cumsum(-1) == 1) & (equal.cumsum(-2) == 1)  # a repeated point counts once
    covariance = before_data.inducing.between(process.inducing)
    projected = solve_lower(L_old, (covariance + process.jitter * is_same.to(covariance)).mT.double()).mT
    if before_data.prior is not process.prior:
        return projected
    # Row i of L' is what the solve above tends to for a variable that stays; take it without rounding.
    return torch.where(is_same.any(-1, keepdim=True), is_same.double() @ L_old, projected)


def inverse_root(root: Float[Tensor, "*b m m"]) -> Float[Tensor, "*b m m"]:
    """The inverse of a root of a belief's covariance; refuses a belief without spread."""
    inverse, failed = torch.linalg.inv_ex(root)
    if failed.any() or not torch.isfinite(inverse).all():
        raise NumericalError(
            "The belief about the inducing points has no spread in some direction, as a delta distribution has, so it "
            'cannot be moved to other inducing points or another kernel. Use inducing="keep", or condition.'
        )
    return inverse


def _bounded_below(site: Tensor) -> tuple[Tensor, int]:
    values, vectors = symmetric_eigen(site, name="the site of the carried belief")
    bounded = values.clamp_min(_LEAST_PRECISION)
    num_clipped = int((bounded > values).sum())
    if not num_clipped:
        return site, 0
    return vectors @ (bounded.unsqueeze(-1) * vectors.mT), num_clipped


def _squared_norm(matrix: Tensor) -> Tensor:
    return matrix.square().sum((-2, -1))
