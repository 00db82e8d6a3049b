"""What the inducing points explain of observed values."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.observation import Observation
from streamgp.gp import SparseProcess
from streamgp.linalg import apply

__all__ = ["NystromPredictive", "predict_nystrom"]


class NystromPredictive(NamedTuple):
    r"""What a sparse posterior says of values $H f(X)$, split into what its inducing points explain and the rest.

    Attributes:
        features: $\phi(X) H^\top$.
        mean: Mean of the values.
        spread: $W = R^\top \phi(X) H^\top$; the explained covariance is $W^\top W$.
        slack: The diagonal of $H (K_{xx} - Q_{xx}) H^\top$, the variance that the inducing points leave; not negative.
        weights: $K^{-1} k(Z, X) H^\top$, where it was needed already.
    """

    features: Float[Tensor, "*b m k"]
    mean: Float[Tensor, "*b k"]
    spread: Float[Tensor, "*b m k"]
    slack: Float[Tensor, "*b k"]
    weights: Float[Tensor, "*b m k"] | None = None

    def variance(self) -> Float[Tensor, "*b k"]:
        """Variances of the values."""
        return self.spread.square().sum(-2) + self.slack


def predict_nystrom(process: SparseProcess, observation: Observation) -> NystromPredictive:
    """Predict the observed values, before they are observed."""
    X, H, prior = observation.inputs, observation.projection, process.prior
    phi, prior_mean = process.features(X), prior.mean(X)
    if H is None:
        slack = prior.variance(X) - phi.square().sum(-2)
    else:
        slack = (H @ (prior.covariance(X, X) - phi.mT @ phi) @ H.mT).diagonal(dim1=-2, dim2=-1)
        phi, prior_mean = phi @ H.mT, apply(H, prior_mean)
    mean = prior_mean + apply(phi.mT, process.whitened_mean)
    return NystromPredictive(phi, mean, process.whitened_root.mT @ phi, slack.clamp_min(0.0))
