"""The common part of likelihoods whose response is one function of the latent value."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.parameters import finite_exp
from streamgp.shapes import broadcast_shapes

__all__ = ["AbstractIdentityLink", "AbstractLogLink", "AbstractLogitLink"]


class AbstractIdentityLink(AbstractLikelihood):
    """Real targets that are latent values with noise."""

    outcome_kind: ClassVar[str] = "real"
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    is_location_scale: ClassVar[bool] = True

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the latent value."""
        return f

    def inverse_response(self, response: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the response, which is the latent value."""
        return self.check_response(response)

    def response_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the variance of the latent value."""
        return variance.expand(broadcast_shapes(mean.shape, variance.shape))


class AbstractLogLink(AbstractLikelihood):
    r"""Targets that are not negative, whose mean $\exp(f)$ is positive."""

    support: ClassVar[tuple[float, float]] = (0.0, math.inf)
    response_range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    link: ClassVar[str] = "log"  # type: ignore[misc]
    is_log_concave: ClassVar[bool] = True

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the mean $\exp(f)$ of a unit of exposure, held constant near overflow."""
        return finite_exp(f)

    def inverse_response(self, response: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the logarithm of a mean."""
        return self.check_response(response).log()

    def response_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $e^{2 (m + v)} (1 - e^{-v})$, held constant near overflow."""
        return finite_exp(2.0 * (mean + variance)) * -torch.expm1(-variance)


class AbstractLogitLink(AbstractLikelihood):
    r"""Targets whose mean is a proportion $\sigma(f)$ between 0 and 1, or that many times the number of trials."""

    response_range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    link: ClassVar[str] = "logit"  # type: ignore[misc]

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the proportion $\sigma(f)$."""
        return torch.sigmoid(f)

    def inverse_response(self, response: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the logit of a proportion."""
        return torch.logit(self.check_response(response))
