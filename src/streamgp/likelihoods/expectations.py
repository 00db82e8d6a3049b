"""A log density, its derivatives, and their expectations when the latent value is Gaussian."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.quadrature import expectation, gauss_hermite, nodes_first, standard_deviation
from streamgp.likelihoods.row_constants import RowConstants

__all__ = ["Expectations"]


class Expectations(RowConstants, ABC):
    r"""Expectations of $p(y \mid f)$ that sites and bounds need: by automatic differentiation and quadrature.

    Attributes:
        num_nodes: Number of Gauss–Hermite nodes of expectations.
    """

    num_nodes: int = 32

    @abstractmethod
    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log p(y \mid f)$, with all constants."""

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate the first and second derivative of $\log p(y \mid f)$ in $f$."""
        return _differentiate_twice(lambda g: self.log_density(g, y), f)

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\mathbb{E}[\log p(y \mid f)]$ under $f \sim \mathcal{N}(m, v)$."""
        num_axes = self._num_axes(mean, variance, y)
        return expectation(
            lambda f: self.log_density(f, y), mean, variance, num_nodes=self.num_nodes, num_axes=num_axes
        )

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate the expectations of both derivatives under $f \sim \mathcal{N}(m, v)$.

        They are also $\partial_m$ and $2 \partial_v$ of the expected log density.
        """
        nodes, weights = gauss_hermite(self.num_nodes, mean.dtype, mean.device)
        f = mean + standard_deviation(variance) * nodes_first(nodes, self._num_axes(mean, variance, y))
        first, second = self.derivatives(f, y)
        return torch.tensordot(weights, first, dims=1), torch.tensordot(weights, second, dims=1)

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        """Evaluate `expected_derivatives` of one observation, in numbers of double precision.

        The site of a single observation is found through this, in a few calls. Override it where numbers or fewer
        tensors do, as a tensor operation costs a hundred times one on numbers.

        Args:
            mean: Mean of the latent value.
            variance: Its variance.
            y: The observation.
        """
        with torch.no_grad():
            first, second = self.expected_derivatives(*torch.tensor([[mean], [variance], [y]], dtype=torch.float64))
        return float(first), float(second)

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        """Evaluate `expected_log_density` of one observation in numbers, up to what depends on the observation alone.

        It judges steps toward the site of a single observation; override it likewise.
        """
        with torch.no_grad():
            return float(self.expected_log_density(*torch.tensor([[mean], [variance], [y]], dtype=torch.float64)))


def _differentiate_twice(
    log_density: Callable[[Tensor], Tensor], f: Float[Tensor, "..."]
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Evaluate the first and second derivative of a function of each element.

    Args:
        log_density: A function that may bring in more axes.
        f: Where; gradients flow back to it and to what the function closes over, where they are enabled.
    """
    is_tracked = torch.is_grad_enabled()
    with torch.enable_grad():
        point = (f + torch.zeros_like(log_density(f))).clone()
        point = point if is_tracked and point.requires_grad else point.detach().requires_grad_()
        (first,) = torch.autograd.grad(log_density(point).sum(), point, create_graph=True)
        second = torch.zeros_like(first)
        if first.requires_grad:
            (slope,) = torch.autograd.grad(first.sum(), point, create_graph=is_tracked, allow_unused=True)
            second = second if slope is None else slope
    return (first, second) if is_tracked else (first.detach(), second.detach())
