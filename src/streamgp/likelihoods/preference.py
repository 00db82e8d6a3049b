"""Comparisons: which of two inputs was preferred."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_count
from streamgp.likelihoods.binary import AbstractBinaryLikelihood
from streamgp.likelihoods.parameters import check_support, finite_exp, to_float, to_parameter
from streamgp.likelihoods.probit import (
    expected_log_probit,
    expected_probit_derivatives,
    log_probit,
    probit_derivatives,
    signs,
)
from streamgp.likelihoods.quadrature import nodes_first

__all__ = ["Preference"]

# Nodes of the trapezoidal rule for the information of a comparison, within so many standard deviations.
_NUM_NODES, _RANGE = 801, 8.0


@final
@dataclass(frozen=True, eq=False, init=False)
class Preference(AbstractBinaryLikelihood):
    r"""The choice between two inputs, $P(y = 1) = \Phi(g / (\sqrt{2} s))$ with $g = f(x_1) - f(x_2)$.

    Each utility is seen with independent Gaussian noise of standard deviation $s$, and the larger one
    wins; $y = 1$ says that the first was preferred. Every `f` and `mean` here is the difference $g$.

    ```python
    import torch

    gp = sg.fit(torch.rand(20, 2, dtype=torch.float64), torch.rand(20, dtype=torch.float64), num_inducing=10).gp
    pairs = torch.rand(10, 2, 2, dtype=torch.float64)  # ten pairs of inputs
    choices = (pairs[:, 0].sum(-1) > pairs[:, 1].sum(-1)).double()  # 1: the first was preferred
    gp.condition(pairs, choices, likelihood=sg.likelihoods.Preference(noise_scale=0.1))
    ```

    Attributes:
        noise_scale: The standard deviation $s$ of the noise of one utility.
        is_learned: Whether training may change it.
        num_nodes: Number of Gauss–Hermite nodes.

    References:
        Chu and Ghahramani (2005), Preference learning with Gaussian processes.
    """

    name: ClassVar[str] = "preference"
    num_inputs: ClassVar[int] = 2
    link: ClassVar[str] = "probit"  # type: ignore[misc]

    noise_scale: Float[Tensor, "..."]
    is_learned: bool
    num_nodes: int

    def __init__(self, noise_scale: Tensor | float = 1.0, *, is_learned: bool = False, num_nodes: int = 32) -> None:
        """Check and keep the noise.

        Args:
            noise_scale: The standard deviation $s$; positive.
            is_learned: Whether training may change it. Comparisons only tell the ratio of the scale
                of $f$ to $s$, so that learning both needs a prior on one.
            num_nodes: Number of Gauss–Hermite nodes.
        """
        self._freeze(
            noise_scale=to_parameter(noise_scale, "noise_scale", above=0.0),
            is_learned=is_learned,
            num_nodes=check_count(num_nodes, "num_nodes"),
        )

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are 0 or 1."""
        y = to_float(y, "y")
        return check_support(
            y,
            (y == 0) | (y == 1),
            expected="Preference targets must be 1 (the first of the pair was preferred) or 0 (the second was)",
            advice="Leave out ties.",
        )

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \Phi(\pm g / (\sqrt{2} s))$."""
        return log_probit(signs(y.to(f)) * f / self._width(f))

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the probability that the first of the pair is preferred."""
        probability: Tensor = torch.special.ndtr(f / self._width(f))
        return probability

    def inverse_response(self, response: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Find the difference of utilities at which the first is preferred with a probability."""
        response = self.check_response(response)
        score: Tensor = torch.special.ndtri(response)
        return self._width(response) * score

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives in the difference."""
        sign, width = signs(y.to(f)), self._width(f)
        first, second = probit_derivatives(sign * f / width)
        return sign * first / width, second / width.square()

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        """Evaluate the expectations of both derivatives in numbers."""
        scale = (2.0 * y - 1.0) / (math.sqrt(2.0) * float(self.noise_scale))
        first, second = expected_probit_derivatives(scale * mean, scale**2 * variance, num_nodes=self.num_nodes)
        return scale * first, scale**2 * second

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        """Evaluate the expected log density in numbers."""
        scale = (2.0 * y - 1.0) / (math.sqrt(2.0) * float(self.noise_scale))
        return expected_log_probit(scale * mean, scale**2 * variance, num_nodes=self.num_nodes)

    def expected_information(self, variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the expected Fisher information of a comparison on the difference of two utilities.

        With $z = g / (\sqrt 2 s)$ it is $\mathbb E[\phi(z)^2 / (\Phi(z) \Phi(-z))] / (2 s^2)$, where
        $g \sim \mathcal N(0, v)$; by the trapezoidal rule, as $s$ may be much smaller than $\sqrt v$.
        """
        width = self._width(variance)
        spread = variance.sqrt() / width
        nodes = nodes_first(torch.linspace(-1.0, 1.0, _NUM_NODES).to(variance), variance.dim())
        z = nodes * _RANGE * spread.clamp_max(1.0)
        log_information = -z.square() - math.log(2.0 * math.pi) - log_probit(z) - log_probit(-z)
        log_density = -0.5 * (z / spread).square() - torch.log(spread) - 0.5 * math.log(2.0 * math.pi)
        return torch.trapezoid((log_information + log_density).exp(), z, dim=0) / width.square()

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \Phi(\pm m / \sqrt{2 s^2 + v})$."""
        return log_probit(signs(y.to(mean)) * mean / (self._width(mean).square() + variance).sqrt())

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw choices."""
        return torch.bernoulli(self.response(f).detach(), generator=generator)

    def learnable(self) -> dict[str, Tensor]:
        """Return the logarithm of the noise scale, if it is learned."""
        return {"noise_scale": self.noise_scale.log()} if self.is_learned else {}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Preference":
        return replace(self, noise_scale=finite_exp(values["noise_scale"]))

    def _width(self, like: Tensor) -> Tensor:
        return math.sqrt(2.0) * self.noise_scale.to(like)
