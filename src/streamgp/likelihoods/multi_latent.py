"""Likelihoods of several latent functions: one observation looks at all of them."""

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtri
from scipy.stats import qmc
from torch import Tensor

from streamgp.errors import UnsupportedError
from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.quadrature import gauss_hermite, standard_deviation

__all__ = ["AbstractMultiLatentLikelihood"]

# Gauss–Hermite nodes for each of two latent values, and points for more.
_NUM_PAIRS, _NUM_POINTS = 24, 256
# Below this standard deviation a latent value is known: differences of gradients would be rounding.
_LEAST_DEVIATION = 1e-5


class AbstractMultiLatentLikelihood(AbstractLikelihood):
    r"""The distribution $p(y \mid f_1, \dots, f_C)$ of an observation given $C$ latent values.

    Latent values lie on the axis before that of observations, as a batch of $C$ GPs predicts them: every `f`, `mean`
    and `variance` here has shape `(..., C, n)`. Targets are `(n,)`, or have that axis, too, of size one or $C$.

    Beliefs about different latent functions are kept independent. Their variational sites are then the fixed point of

    $$
    \tau_c = -\mathbb{E}_q[\partial_c^2 \log p(y \mid f)], \quad g_c = \mathbb{E}_q[\partial_c \log p(y \mid f)], \quad
    q = \prod_c \mathcal N(m_c, v_c),
    $$

    the best belief that factorizes over latent functions: expectations couple them, correlations that the observation
    brings about are left out.
    """

    num_latents: int  # type: ignore[misc] # a field or a constant of the class
    has_response: ClassVar[bool] = False

    @abstractmethod
    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log p(y \mid f)$ for `f` of shape `(..., C, n)`, with the latent axis kept at size one."""

    @abstractmethod
    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $\partial_{f_c} \log p$ and $\partial_{f_c}^2 \log p$ for each latent value."""

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Refuse: there is no single response of several latent values."""
        raise UnsupportedError(
            f"A {type(self).__name__} likelihood looks at {self.num_latents} latent functions, and has no response of "
            "one. Use its predictive moments or probabilities."
        )

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\mathbb{E}_q[\log p(y \mid f)]$, with the latent axis kept at size one."""
        return self.expectation(lambda f: self.log_density(f, y), mean, variance)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate the expectations of both derivatives under $q$.

        The second ones as $\mathbb{E}[z_c \, \partial_c \log p] / \sqrt{v_c}$ with $f = m + \sqrt{v} z$, so that they
        are $2 \partial_{v_c}$ of the expected log density as the nodes average it, and their fixed point is where that
        bound is highest.
        """
        nodes, weights = self._nodes_like(mean.double())
        deviation = variance.double().clamp_min(_LEAST_DEVIATION**2).sqrt()
        first, _ = self.derivatives(mean.double() + deviation * nodes, y)
        gradient, slope = (torch.tensordot(weights, each, dims=1) for each in (first, first * nodes))
        return gradient.to(mean), (slope / deviation).to(mean)

    def expectation(
        self,
        function: Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]],
        mean: Float[Tensor, "..."],
        variance: Float[Tensor, "..."],
    ) -> Float[Tensor, "..."]:
        """Average a function over independent latent values, by nodes that are the same for all calls.

        For two latent functions by Gauss–Hermite quadrature, for more by quasi-Monte Carlo points.

        Args:
            function: Of values with the nodes on a new first axis.
            mean: Means `(..., C, n)`.
            variance: Variances, likewise.
        """
        nodes, weights = self._nodes_like(mean)
        average: Tensor = torch.tensordot(weights, function(mean + standard_deviation(variance) * nodes), dims=1)
        return average

    def _nodes_like(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Nodes `(k, ..., C, 1)` and weights for latent values `(..., C, n)`."""
        nodes, weights = _nodes(self.num_latents, mean.dtype, mean.device)
        return nodes.reshape(len(nodes), *[1] * (mean.dim() - 2), -1, 1), weights


@lru_cache(maxsize=32)
def _nodes(num_latents: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Nodes `(k, C)` and weights of standard normal vectors; with moments that are exact up to the second."""
    with torch.inference_mode(False):
        if num_latents == 2:
            nodes, weights = gauss_hermite(_NUM_PAIRS, torch.float64, torch.device("cpu"))
            return (
                torch.cartesian_prod(nodes, nodes).to(dtype=dtype, device=device),
                torch.outer(weights, weights).flatten().to(dtype=dtype, device=device),
            )
        points = ndtri(qmc.Sobol(num_latents, rng=np.random.default_rng(0)).random(_NUM_POINTS // 2))
        points = np.concatenate([points, -points])
        # Decorrelated and of unit variance, so that quadratic functions are averaged exactly.
        points = np.linalg.solve(np.linalg.cholesky(points.T @ points / len(points)), points.T).T
        weights = torch.full((len(points),), 1.0 / len(points), dtype=dtype, device=device)
        return torch.as_tensor(points, dtype=dtype, device=device), weights
