"""Conditioning through pseudo-data with the jitters of the paper's code."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from paper.baselines.exact_gp import ExactPrediction
from streamgp.conditioning import SparseGP

__all__ = ["JitteredPseudoData", "jittered_pseudo_data", "predict_through_pseudo_data"]

# What the paper's code adds to the squared system, and to the diagonal of the pseudo-noise.
_JITTER = 1e-3


class JitteredPseudoData(NamedTuple):
    """Observations at the inducing points.

    Attributes:
        targets: Their values.
        noise_covariance: Covariance of their noise.
    """

    targets: Float[Tensor, " m"]
    noise_covariance: Float[Tensor, "m m"]


def jittered_pseudo_data(gp: SparseGP, jitter: float = _JITTER) -> JitteredPseudoData:
    r"""The pseudo-data of a sparse GP.

    With $R = I - \bar S$, solved as $R^{-1} \approx (R R^\top + \epsilon I)^{-1} R^\top$, the pseudo-data is
    $\hat y = L R^{-1} \bar m$ with noise $\hat \Sigma = L \bar S R^{-1} L^\top + \epsilon I$. For $\epsilon = 0$ this
    is exact, where it exists.

    Args:
        gp: The sparse GP; targets have its prior mean subtracted.
        jitter: The constant $\epsilon$.
    """
    L, S = gp.process.factor, gp.whitened_covariance
    eye = torch.eye(len(S), dtype=S.dtype)
    R = eye - S
    R_inverse = torch.linalg.solve(R @ R.mT + jitter * eye, R.mT)
    noise = L @ S @ R_inverse @ L.mT
    return JitteredPseudoData(L @ R_inverse @ gp.whitened_mean, 0.5 * (noise + noise.mT) + jitter * eye)


def predict_through_pseudo_data(
    gp: SparseGP,
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    noise_variance: float,
    at: Float[Tensor, "k d"],
    jitter: float = _JITTER,
) -> ExactPrediction:
    """Predict by an exact GP on pseudo-data at the inducing points and new observations.

    Args:
        gp: The sparse GP, of zero mean.
        X: Inputs of new observations.
        y: Their values.
        noise_variance: Variance of their noise.
        at: Where to predict.
        jitter: Of the pseudo-data.
    """
    pseudo = jittered_pseudo_data(gp, jitter)
    noise = torch.block_diag(pseudo.noise_covariance, noise_variance * torch.eye(len(y), dtype=y.dtype))
    inputs, targets = torch.cat([gp.inducing_points, X]), torch.cat([pseudo.targets, y])
    with torch.no_grad():
        A = gp.kernel(inputs, inputs).to_dense() + noise
        cross = gp.kernel(inputs, at).to_dense()
        weights = torch.linalg.solve(A, cross)
        return ExactPrediction(weights.mT @ targets, gp.kernel(at, at).to_dense() - cross.mT @ weights)
