"""Positive numbers whose standard deviation grows with their mean: durations, amounts, concentrations."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.links import AbstractLogLink
from streamgp.likelihoods.parameters import finite_exp, to_parameter
from streamgp.shapes import broadcast_shapes

__all__ = ["AbstractGammaLikelihood", "Exponential", "Gamma"]


class AbstractGammaLikelihood(AbstractLogLink):
    r"""Positive targets with mean $\mu = \exp(f)$ and variance $\mu^2 / a$, Gamma distributed with shape $a$.

    Rates $\exp(\pm f)$ are held constant near overflow.
    """

    outcome_kind: ClassVar[str] = "real"

    @abstractmethod
    def _shape_like(self, like: Tensor) -> Tensor:
        """The shape $a$."""

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $a \log a - \log \Gamma(a) - \log y - a (f - \log y + y e^{-f})$."""
        return self.expected_log_density(f, torch.zeros_like(f), y)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $a (y e^{-f} - 1)$ and $-a y e^{-f}$."""
        return self.expected_derivatives(f, torch.zeros_like(f), y)

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate the same with $\mathbb{E}[e^{-f}] = e^{-m + v / 2}$."""
        a, log_y = self._shape_like(mean), y.to(mean).log()
        ratio = finite_exp(log_y - mean + 0.5 * variance)
        return a * a.log() - torch.lgamma(a) - log_y - a * (mean - log_y + ratio)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $a (y e^{-m + v / 2} - 1)$ and $-a y e^{-m + v / 2}$."""
        a = self._shape_like(mean)
        ratio = finite_exp(y.to(mean).log() - mean + 0.5 * variance)
        return a * (ratio - 1.0), -a * ratio

    def expected_curvature(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $a e^{v}$, the curvature at the mean, as it is linear in $y$."""
        return self._shape_like(mean) * finite_exp(variance)

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\exp(m + v / 2)$."""
        average = finite_exp(mean + 0.5 * variance)
        return average.expand(broadcast_shapes(average.shape, self._shape_like(mean).shape))

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $e^{2 (m + v)} (1 / a + 1 - e^{-v})$."""
        return finite_exp(2.0 * (mean + variance)) * (1.0 / self._shape_like(mean) - torch.expm1(-variance))

    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $e^{2 f} / a$."""
        return finite_exp(2.0 * f) / self._shape_like(f)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw Gamma variables."""
        a = self._shape_like(f).detach()
        shape = broadcast_shapes(f.shape, a.shape)
        drawn = torch._standard_gamma(a.expand(shape).contiguous(), generator=generator) / a
        # A Gamma variable of a small shape can underflow.
        return (finite_exp(f.detach()) * drawn).clamp(min=torch.finfo(f.dtype).tiny)


@final
@dataclass(frozen=True, eq=False, init=False)
class Gamma(AbstractGammaLikelihood):
    r"""Positive targets with mean $\exp(f)$ and variance $\exp(2 f) / a$.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    amounts = torch.distributions.Gamma(3.0, 3.0 / torch.exp(X[:, 0])).sample()
    result = sg.fit(X, amounts, likelihood=sg.likelihoods.Gamma(), num_inducing=10)
    result.likelihood.shape  # learned
    ```

    Attributes:
        shape: The shape $a$; the larger, the less noise.
        is_learned: Whether training may change it.
    """

    name: ClassVar[str] = "gamma"

    shape: Float[Tensor, "..."]
    is_learned: bool

    def __init__(self, shape: Tensor | float = 2.0, *, is_learned: bool = True) -> None:
        """Check and keep the shape, which must be positive."""
        self._freeze(shape=to_parameter(shape, "shape", above=0.0), is_learned=is_learned)

    def _shape_like(self, like: Tensor) -> Tensor:
        return self.shape.to(like)

    def learnable(self) -> dict[str, Tensor]:
        """Return the logarithm of the shape, if it is learned."""
        return {"shape": self.shape.log()} if self.is_learned else {}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Gamma":
        return replace(self, shape=finite_exp(values["shape"]))


@final
@dataclass(frozen=True, eq=False)
class Exponential(AbstractGammaLikelihood):
    r"""Waiting times with mean $\exp(f)$: Gamma distributed with shape one, without a parameter.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    waits = torch.distributions.Exponential(torch.exp(-X[:, 0])).sample()
    sg.fit(X, waits, likelihood=sg.likelihoods.Exponential(), num_inducing=10)
    ```
    """

    name: ClassVar[str] = "exponential"

    def _shape_like(self, like: Tensor) -> Tensor:
        return torch.ones((), dtype=like.dtype, device=like.device)
