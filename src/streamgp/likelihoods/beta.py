"""Proportions between zero and one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.links import AbstractLogitLink
from streamgp.likelihoods.parameters import finite_exp, to_parameter
from streamgp.shapes import broadcast_shapes

__all__ = ["Beta"]

# Means beyond the logistic of this are held constant: closer to 0 or 1 the density is that of an atom.
_LARGEST_LATENT = 20.0


@final
@dataclass(frozen=True, eq=False, init=False)
class Beta(AbstractLogitLink):
    r"""Proportions $y \sim \mathrm{Beta}(c \mu, c (1 - \mu))$ with mean $\mu = \sigma(f)$.

    The variance is $\mu (1 - \mu) / (1 + c)$. The log density is not concave in $f$ for all $y$.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    share = torch.distributions.Beta(1 + 5 * X[:, 0], 2.0).sample()
    result = sg.fit(X, share, likelihood=sg.likelihoods.Beta(), num_inducing=10)
    result.likelihood.concentration  # learned
    ```

    Attributes:
        concentration: The number $c$; the larger, the less noise.
        is_learned: Whether training may change it.
        num_nodes: Number of Gauss–Hermite nodes.
    """

    name: ClassVar[str] = "beta"
    outcome_kind: ClassVar[str] = "real"
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)

    concentration: Float[Tensor, "..."]
    is_learned: bool
    num_nodes: int

    def __init__(self, concentration: Tensor | float = 10.0, *, is_learned: bool = True, num_nodes: int = 64) -> None:
        """Check and keep the concentration, which must be positive."""
        self._freeze(
            concentration=to_parameter(concentration, "concentration", above=0.0),
            is_learned=is_learned,
            num_nodes=num_nodes,
        )

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $(c \mu - 1) \log y + (c (1 - \mu) - 1) \log (1 - y) - \log B(c \mu, c (1 - \mu))$."""
        c, a, b = self._shapes(f)
        log_y, log_rest = y.to(f).log(), torch.log1p(-y.to(f))
        constant = torch.lgamma(c) - torch.lgamma(a) - torch.lgamma(b)
        return constant + (a - 1.0) * log_y + (b - 1.0) * log_rest

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $c \mu' D$ and $c (\mu'' D - c \mu'^2 (\psi_1(c \mu) + \psi_1(c (1 - \mu))))$.

        Here $D = \operatorname{logit} y - \psi(c \mu) + \psi(c (1 - \mu))$.
        """
        c, a, b = self._shapes(f)
        slope = (a * b) / c  # c times the derivative of the mean
        difference = torch.logit(y.to(f)) - torch.digamma(a) + torch.digamma(b)
        bend = torch.polygamma(1, a) + torch.polygamma(1, b)
        is_inside = (f.abs() < _LARGEST_LATENT).to(f)
        first, second = slope * difference, slope * (b - a) / c * difference - slope.square() * bend
        return is_inside * first, is_inside * second

    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\mu (1 - \mu) / (1 + c)$."""
        return torch.sigmoid(f) * torch.sigmoid(-f) / (1.0 + self.concentration.to(f))

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw the share of one of two Gamma variables."""
        _, a, b = self._shapes(f.detach())
        shape = broadcast_shapes(a.shape, b.shape)
        first, second = (
            torch._standard_gamma(each.detach().expand(shape).contiguous(), generator=generator) for each in (a, b)
        )
        tiny = torch.finfo(f.dtype).tiny
        share = first.clamp(min=tiny) / (first.clamp(min=tiny) + second.clamp(min=tiny))
        return share.clamp(tiny, 1.0 - torch.finfo(f.dtype).eps)

    def learnable(self) -> dict[str, Tensor]:
        """Return the logarithm of the concentration, if it is learned."""
        return {"concentration": self.concentration.log()} if self.is_learned else {}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Beta":
        return replace(self, concentration=finite_exp(values["concentration"]))

    def _shapes(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The concentration, and its shares of both ends."""
        c, g = self.concentration.to(f), f.clamp(-_LARGEST_LATENT, _LARGEST_LATENT)
        return c, c * torch.sigmoid(g), c * torch.sigmoid(-g)
