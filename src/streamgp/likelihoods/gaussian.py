"""Real numbers with Gaussian noise."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike
from streamgp.likelihoods.links import AbstractIdentityLink
from streamgp.likelihoods.parameters import (
    Probabilities,
    finite_exp,
    to_parameter,
    to_probabilities,
)
from streamgp.shapes import broadcast_shapes

__all__ = ["Gaussian"]


@final
@dataclass(frozen=True, eq=False, init=False)
class Gaussian(AbstractIdentityLink):
    r"""Targets $y = f + \varepsilon$ with $\varepsilon \sim \mathcal{N}(0, \sigma^2)$.

    Everything has a closed form.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    y = torch.sin(6 * X[:, 0])
    known = sg.likelihoods.Gaussian(0.01, is_learned=False)  # a known noise; a tensor has one for each observation
    sg.fit(X, y, likelihood=known, num_inducing=10).predict(X).mean
    ```

    Attributes:
        noise_variance: The variance $\sigma^2$.
        is_learned: Whether training may change it.
    """

    name: ClassVar[str] = "gaussian"
    is_log_concave: ClassVar[bool] = True
    row_data: ClassVar[str | None] = "noise_variance"

    noise_variance: Float[Tensor, "..."]
    is_learned: bool

    def __init__(self, noise_variance: ArrayLike = 0.1, *, is_learned: bool = True) -> None:
        r"""Check and keep the noise.

        Args:
            noise_variance: The variance $\sigma^2$, positive: a number, or one for each observation.
            is_learned: Whether training may change a single number. Variances given for each
                observation are data, and stay as they are.
        """
        variance = to_parameter(noise_variance, "noise_variance", above=0.0)
        self._freeze(noise_variance=variance, is_learned=is_learned and variance.dim() == 0)

    @classmethod
    def starting(cls) -> "Gaussian":
        """Make one for targets of unit variance, most of which is signal."""
        return cls(0.05)

    @property
    def gaussian_noise_variance(self) -> Float[Tensor, "..."]:
        """The noise variance."""
        return self.noise_variance

    def rescaled(self, scale: Tensor | float) -> "Gaussian":
        """Return the likelihood of targets and latent values that are both divided by `scale`."""
        return replace(self, noise_variance=self.noise_variance / scale**2)

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \mathcal{N}(y \mid f, \sigma^2)$."""
        return _log_normal(y.to(f) - f, self.noise_variance.to(f))

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $(y - f) / \sigma^2$ and $-1 / \sigma^2$."""
        first = (y.to(f) - f) / self.noise_variance.to(f)
        return first, (-1.0 / self.noise_variance.to(f)).expand_as(first)

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \mathcal{N}(y \mid m, \sigma^2) - v / (2 \sigma^2)$."""
        return self.log_density(mean, y) - 0.5 * variance / self.noise_variance.to(mean)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives at the mean: the first is linear, the second constant."""
        first, second = self.derivatives(mean, y)
        shape = broadcast_shapes(first.shape, variance.shape)
        return first.expand(shape), second.expand(shape)

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \mathcal{N}(y \mid m, v + \sigma^2)$."""
        return _log_normal(y.to(mean) - mean, variance + self.noise_variance.to(mean))

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the mean."""
        return mean.expand(broadcast_shapes(mean.shape, variance.shape, self.noise_variance.shape))

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $v + \sigma^2$."""
        total = variance + self.noise_variance.to(mean)
        return total.expand(broadcast_shapes(mean.shape, total.shape))

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $m + \sqrt{v + \sigma^2} \, \Phi^{-1}(p)$; differentiable."""
        scores: Tensor = torch.special.ndtri(to_probabilities(probabilities, mean)).to(mean)
        return mean.unsqueeze(-1) + self.predictive_variance(mean, variance).sqrt().unsqueeze(-1) * scores

    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\Phi((y - m) / \sqrt{v + \sigma^2})$."""
        below: Tensor = torch.special.ndtr((y.to(mean) - mean) / self.predictive_variance(mean, variance).sqrt())
        return below

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Add Gaussian noise to `f`."""
        deviation = self.noise_variance.to(f).sqrt()
        shape = broadcast_shapes(f.shape, deviation.shape)
        return f + deviation * torch.randn(shape, dtype=f.dtype, device=f.device, generator=generator)

    def learnable(self) -> dict[str, Tensor]:
        """Return the logarithm of the noise variance, if it is learned."""
        return {"noise_variance": self.noise_variance.log()} if self.is_learned else {}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Gaussian":
        return replace(self, noise_variance=finite_exp(values["noise_variance"]))


def _log_normal(residual: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    return -0.5 * (residual.square() / variance + variance.log() + math.log(2.0 * math.pi))
