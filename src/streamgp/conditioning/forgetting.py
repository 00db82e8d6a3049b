"""Forgetting: a belief that relaxes toward the prior."""

import torch

from streamgp.checks import check_share
from streamgp.gp import SparseProcess
from streamgp.linalg import apply, cholesky, solve_lower

__all__ = ["forget"]


def forget(process: SparseProcess, factor: float) -> SparseProcess:
    r"""Multiply the information of all past observations by a factor $\gamma$.

    The whitened site decays, $\bar\Lambda \leftarrow \gamma \bar\Lambda$, $\bar\lambda \leftarrow \gamma \bar\lambda$,
    as if the noise variance of each observation had been divided by $\gamma$. With $\bar S = R R^\top$,

    $$
    \bar S \leftarrow R (\gamma I + (1 - \gamma) R^\top R)^{-1} R^\top, \qquad
    \bar m \leftarrow \bar m - (1 - \gamma) \bar S \bar m ,
    $$

    the second with the new $\bar S$. What is factorized is positive definite whatever the belief is, also where it is
    wider than the prior or has no spread at all. Costs $O(m^3)$.

    Args:
        process: Belief before; not modified.
        factor: $\gamma$, above zero and at most one. One changes nothing, values close to zero leave the prior.

    Returns:
        The belief at the same inducing points.
    """
    if check_share(factor, "factor") == 1.0:
        return process
    dtype, R = process.whitened_root.dtype, process.whitened_root.double()
    eye = torch.eye(R.shape[-1], dtype=R.dtype, device=R.device)
    M, _ = cholesky(factor * eye + (1.0 - factor) * (R.mT @ R), name="the covariance of the relaxed belief")
    root = solve_lower(M, R.mT).mT.contiguous()
    m = process.whitened_mean.double()
    mean = m - (1.0 - factor) * apply(root, apply(root.mT, m))
    information = None if process.information is None else factor * process.information
    return process.with_belief(mean.to(dtype), root.to(dtype), information)
