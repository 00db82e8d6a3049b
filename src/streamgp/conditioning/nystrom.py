"""Moments of observed values, as far as inducing points explain them."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from streamgp.conditioning.observation import Observation
from streamgp.gp import SparseProcess
from streamgp.linalg import apply

__all__ = ["NystromPredictive", "predict_nystrom"]


class NystromPredictive(NamedTuple):
    r"""Moments of values $f(X)$, or of rows of evidence, split into what inducing points explain and the rest.

    Attributes:
        features: $\phi(X)$.
        mean: Mean of the values.
        spread: $W = R^\top \phi(X)$; the explained covariance is $W^\top W$.
        slack: The diagonal of $K_{xx} - Q_{xx}$, the variance that the inducing points leave; not negative.
        weights: $K^{-1} k(Z, X)$, where it was needed already.
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
    X, prior = observation.inputs, process.prior
    phi = process.features(X)
    slack = prior.variance(X) - phi.square().sum(-2)
    mean = prior.mean(X) + apply(phi.mT, process.whitened_mean)
    return NystromPredictive(phi, mean, process.whitened_root.mT @ phi, slack.clamp_min(0.0))
