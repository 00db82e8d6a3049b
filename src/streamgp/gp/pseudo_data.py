"""The paper's view of a sparse posterior: the pseudo-data for which it would be optimal."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import NumericalError, UnsupportedError
from streamgp.gp.sparse import SparseProcess
from streamgp.linalg import apply, solve_lower_transpose, solve_vector, symmetric_eigen

__all__ = ["PseudoData", "pseudo_data"]


@final
@dataclass(frozen=True, eq=False)
class PseudoData:
    r"""Observations at the inducing points that would lead to the belief.

    An exact GP on targets $\hat y$ with noise precision $\hat\Sigma^{-1}$ at $Z$ predicts as the sparse posterior does.
    The precision form needs no inverse of $K - S$: directions that the data has not informed have precision zero, and
    directions where the belief is wider than the prior a negative one.

    Attributes:
        inputs: The inducing points $Z$.
        targets: $\hat y$; the prior mean in directions of precision zero.
        precision: $\hat\Sigma^{-1} = S^{-1} - K^{-1}$.
        precision_mean: $\hat\Sigma^{-1}(\hat y - \mu(Z)) = S^{-1}(m - \mu(Z))$, finite also where $\hat y$ is not.
    """

    inputs: Float[Tensor, "*b m d"]
    targets: Float[Tensor, "*b m"]
    precision: Float[Tensor, "*b m m"]
    precision_mean: Float[Tensor, "*b m"]


def pseudo_data(process: SparseProcess) -> PseudoData:
    r"""Read the pseudo-data off a sparse posterior.

    Whitened, $L^\top \hat\Sigma^{-1} L = \bar S^{-1} - I$ and $\hat y - \mu(Z) = L (I - \bar S)^{-1} \bar m$.
    """
    if not process.inducing_points.shape[-2]:
        raise UnsupportedError(
            "The belief is about the weights of features, and pseudo-data are observations at inducing points. Read "
            "whitened_mean and whitened_covariance, the moments of the weights, instead."
        )
    Z, L, D = process.inducing_points, process.factor, process.variance_reduction
    # Eigenvalues of D within rounding of zero are directions without information.
    values, vectors = symmetric_eigen(D, name="the variance reduction of the belief")
    spread = 1.0 - values
    if not (spread > D.shape[-1] * torch.finfo(D.dtype).eps).all():
        raise NumericalError(
            "The belief about the inducing points has no spread in some direction, as a delta distribution has, so its "
            "pseudo-data would have infinite precision. Use a variational distribution with a covariance."
        )
    is_informed = values.abs() > D.shape[-1] * torch.finfo(D.dtype).eps * spread.abs().amax(-1, keepdim=True)
    site = vectors @ ((values / spread).unsqueeze(-1) * vectors.mT)
    precision_mean = apply(vectors, apply(vectors.mT, process.whitened_mean) / spread)
    inverse = torch.where(is_informed, 1.0 / torch.where(is_informed, values, 1.0), 0.0)
    whitened_targets = apply(vectors, inverse * apply(vectors.mT, process.whitened_mean))
    precision = solve_lower_transpose(L, solve_lower_transpose(L, site).mT)
    return PseudoData(
        inputs=Z,
        targets=process.prior.mean(Z) + apply(L, whitened_targets),
        precision=0.5 * (precision + precision.mT),
        precision_mean=solve_vector(L, precision_mean, is_transposed=True),
    )
