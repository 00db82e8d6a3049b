"""Returns whose standard deviation is the latent function."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_count
from streamgp.errors import ShapeError
from streamgp.likelihoods.base import AbstractLikelihood
from streamgp.likelihoods.parameters import Probabilities, finite_exp, to_parameter
from streamgp.likelihoods.quadrature import expectation, gauss_hermite, standard_deviation
from streamgp.likelihoods.quantiles import continuous_quantiles

__all__ = ["Volatility"]

# The smallest standard deviation, and the range of slopes and offsets, are those of the model in Fig. 1 c.
_FLOOR = 1e-6
_RANGE = 3.0
# Training may come this near to the ends of the range, in the units of tanh.
_LARGEST_TANH = 1.0 - 1e-6


@final
@dataclass(frozen=True, eq=False, init=False)
class Volatility(AbstractLikelihood):
    r"""Targets $y \sim \mathcal{N}(0, s(f)^2)$ with a learned scale function.

    $$
    s(f) = 10^{-6} + \sum_{j=1}^J a_j \log(1 + \exp(b_j f + c_j)), \qquad a_j > 0, \quad b_j, c_j \in (-3, 3) .
    $$

    The log density is not concave, and with slopes of both signs it has two peaks.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    returns = torch.exp(2 * X[:, 0]) * torch.randn(60, dtype=torch.float64)  # they spread more and more
    result = sg.fit(X, returns, likelihood=sg.likelihoods.Volatility(), num_inducing=10, max_iterations=20)
    latent = result.predict(X[-1:])
    result.likelihood.predictive_variance(latent.mean, latent.variance)
    ```

    Attributes:
        weights: The weights $a_j$.
        slopes: The slopes $b_j$.
        offsets: The offsets $c_j$.
        is_learned: Whether training may change them.
        num_nodes: Number of Gauss–Hermite nodes.

    References:
        Wilson and Ghahramani (2010), Copula processes.
    """

    name: ClassVar[str] = "volatility"
    outcome_kind: ClassVar[str] = "real"
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    is_log_concave: ClassVar[bool] = False
    has_response: ClassVar[bool] = False

    weights: Float[Tensor, " j"]
    slopes: Float[Tensor, " j"]
    offsets: Float[Tensor, " j"]
    is_learned: bool
    num_nodes: int

    def __init__(
        self,
        weights: Tensor | None = None,
        slopes: Tensor | None = None,
        offsets: Tensor | None = None,
        *,
        is_learned: bool = True,
        num_nodes: int = 75,
    ) -> None:
        """Check and keep the parameters of the scale function.

        Args:
            weights: The weights $a_j$; positive. By default equal, and such that $s(0) = 1$.
            slopes: The slopes $b_j$; by default five from 0.5 to 1.5.
            offsets: The offsets $c_j$; by default five from -1 to 1.
            is_learned: Whether training may change them.
            num_nodes: Number of Gauss–Hermite nodes.
        """
        b = torch.linspace(0.5, 1.5, 5, dtype=torch.float64) if slopes is None else slopes
        c = torch.linspace(-1.0, 1.0, len(b), dtype=torch.float64) if offsets is None else offsets
        a = (1.0 / _softplus(c.detach()).sum()).expand(len(c)) if weights is None else weights
        if not a.dim() == b.dim() == c.dim() == 1 or not len(a) == len(b) == len(c):
            raise ShapeError(
                "weights, slopes and offsets must be vectors of the same length, one entry for each term, but have "
                f"shapes {tuple(a.shape)}, {tuple(b.shape)} and {tuple(c.shape)}. Pass all three."
            )
        self._freeze(
            weights=to_parameter(a, "weights", above=0.0),
            slopes=to_parameter(b, "slopes", above=-_RANGE, below=_RANGE),
            offsets=to_parameter(c, "offsets", above=-_RANGE, below=_RANGE),
            is_learned=is_learned,
            num_nodes=check_count(num_nodes, "num_nodes"),
        )

    @classmethod
    def random(cls, generator: torch.Generator, *, num_terms: int = 5) -> "Volatility":
        """Start at random, as the paper does: softplus of uniform weights, uniform slopes and offsets."""
        uniform = torch.rand(3, check_count(num_terms, "num_terms"), dtype=torch.float64, generator=generator)
        slopes, offsets = _RANGE * (2.0 * uniform[1:] - 1.0) * _LARGEST_TANH
        return cls(_softplus(uniform[0]), slopes, offsets)

    def scale(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the standard deviation $s(f)$ of $y$."""
        a, _, z = self._terms(f)
        return _FLOOR + (a * _softplus(z)).sum(-1)

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \mathcal{N}(y \mid 0, s(f)^2)$."""
        s = self.scale(f)
        return -0.5 * (y.to(f) / s).square() - s.log() - 0.5 * math.log(2.0 * math.pi)

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return zero, the mean of all returns."""
        return torch.zeros_like(f)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $g (\rho - 1)$ and $(h - g^2)(\rho - 1) - 2 \rho g^2$.

        Here $g = s' / s$, $h = s'' / s$ and $\rho = y^2 / s^2$.
        """
        a, b, z = self._terms(f)
        s = _FLOOR + (a * _softplus(z)).sum(-1)
        up = torch.sigmoid(z)
        g = (a * b * up).sum(-1) / s
        h = (a * b.square() * up * torch.sigmoid(-z)).sum(-1) / s
        rho = (y.to(f) / s).square()
        return g * (rho - 1.0), (h - g.square()) * (rho - 1.0) - 2.0 * rho * g.square()

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return zero."""
        return torch.zeros_like(mean + variance)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\mathbb{E}[s(f)^2]$."""
        return expectation(lambda f: self.scale(f).square(), mean, variance, num_nodes=self.num_nodes)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        r"""Bisect the mixture $\mathbb{E}[\Phi(y / s(f))]$."""
        spread = self.predictive_variance(mean, variance).sqrt()
        nodes, weights = gauss_hermite(self.num_nodes, torch.float64, mean.device)
        shape = (-1, 1, *([1] * spread.dim()))  # the second axis is that of the probabilities
        with torch.no_grad():
            deviation = self.scale(mean.double() + standard_deviation(variance.double()) * nodes.reshape(shape))

        def cumulative(c: Tensor) -> Tensor:
            below: Tensor = torch.special.ndtr(c / deviation)
            return (weights.reshape(shape) * below).sum(0)

        return continuous_quantiles(cumulative, torch.zeros_like(spread), spread, probabilities)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw returns."""
        return self.scale(f) * torch.randn(f.shape, dtype=f.dtype, device=f.device, generator=generator)

    def learnable(self) -> dict[str, Tensor]:
        r"""Return $\log a_j$, $\tanh^{-1}(b_j / 3)$ and $\tanh^{-1}(c_j / 3)$, if they are learned."""
        if not self.is_learned:
            return {}
        return {
            "weights": self.weights.log(),
            "slopes": torch.atanh(self.slopes / _RANGE),
            "offsets": torch.atanh(self.offsets / _RANGE),
        }

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Volatility":
        return replace(
            self,
            weights=finite_exp(values["weights"]),
            slopes=_RANGE * torch.tanh(values["slopes"]).clamp(-_LARGEST_TANH, _LARGEST_TANH),
            offsets=_RANGE * torch.tanh(values["offsets"]).clamp(-_LARGEST_TANH, _LARGEST_TANH),
        )

    def _broadcast_fields(self) -> tuple[str, ...]:
        return ()

    def _terms(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return weights, slopes and the arguments $b_j f + c_j$, with the terms on a new last axis."""
        a, b, c = self.weights.to(f), self.slopes.to(f), self.offsets.to(f)
        return a, b, f.unsqueeze(-1) * b + c


def _softplus(z: Tensor) -> Tensor:
    # torch's softplus turns linear at 20, which is wrong by 2e-9 in double precision.
    return torch.logaddexp(z, torch.zeros_like(z))
