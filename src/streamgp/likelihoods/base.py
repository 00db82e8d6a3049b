"""What every likelihood of one observation given one latent value can do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError

__all__ = ["AbstractLikelihood"]

# Not typing.Self, which beartype refuses on the methods of a class that it does not decorate.
Likelihood = TypeVar("Likelihood", bound="AbstractLikelihood")


class AbstractLikelihood(ABC):
    r"""The distribution $p(y \mid f)$ of an observation $y$ given a latent value $f$.

    A likelihood is a frozen value. Its methods work on each element and broadcast: `f`, `mean`,
    `variance`, `y` and the constants of the likelihood (noise, totals, exposure) may have any axes
    that broadcast. Results have the dtype and device of `f` or `mean`.

    Targets are trusted everywhere but in `check_targets`; call that once, where data enters.

    Attributes:
        num_inputs: How many inputs one observation looks at. With 2, the likelihood is one of the
            difference $g = f(x_1) - f(x_2)$, and every `f` and `mean` here is that difference.
        is_log_concave: Whether $\log p(y \mid f)$ is concave in $f$ for every $y$, so that second
            derivatives are never positive.
    """

    num_inputs: ClassVar[int] = 1
    is_log_concave: ClassVar[bool]

    @abstractmethod
    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all of it can be observed.

        Raises:
            SupportError: If a target is NaN, infinite or outside the support; names the first one.
        """

    @abstractmethod
    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log p(y \mid f)$, with all constants."""

    @abstractmethod
    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate the first and second derivative of $\log p(y \mid f)$ in $f$."""

    @abstractmethod
    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\mathbb{E}[\log p(y \mid f)]$ under $f \sim \mathcal{N}(m, v)$."""

    @abstractmethod
    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate the expectations of both derivatives under $f \sim \mathcal{N}(m, v)$.

        They are also $\partial_m$ and $2 \partial_v$ of the expected log density.
        """

    def expected_derivatives_of_one(self, mean: float, variance: float, y: Tensor) -> tuple[float, float]:
        """Evaluate `expected_derivatives` of one observation, in numbers of double precision.

        The site of a single observation is found through this, in a few calls. Override it where numbers or fewer
        tensors do, as a tensor operation costs a hundred times one on numbers.

        Args:
            mean: Mean of the latent value.
            variance: Its variance.
            y: The observation: one element with any axes.
        """
        point = torch.tensor([mean, variance], dtype=torch.float64, device=y.device)
        first, second = self.expected_derivatives(point[:1], point[1:], y.double())
        return float(first), float(second)

    @abstractmethod
    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \int p(y \mid f) \, \mathcal{N}(f \mid m, v) \, df$."""

    @abstractmethod
    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the mean of $y$ when $f \sim \mathcal{N}(m, v)$."""

    @abstractmethod
    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the variance of $y$ when $f \sim \mathcal{N}(m, v)$."""

    @abstractmethod
    def predictive_quantiles(
        self,
        mean: Float[Tensor, "..."],
        variance: Float[Tensor, "..."],
        probabilities: Sequence[float] | Tensor,
    ) -> Float[Tensor, "..."]:
        r"""Find quantiles of $y$ when $f \sim \mathcal{N}(m, v)$, along a new last axis.

        For counts and classes a quantile is the smallest value whose cumulative probability
        reaches the given one. Quantiles found by bisection carry no gradient.
        """

    @abstractmethod
    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw one $y$ for each latent value; the same generator state gives the same draw."""

    @abstractmethod
    def learnable(self) -> dict[str, Tensor]:
        """Return the parameters to be learned, by name, as values that may take any real number."""

    @final
    def with_learnable(self: Likelihood, values: Mapping[str, Tensor]) -> Likelihood:
        """Return a likelihood whose learned parameters have new unconstrained values.

        Args:
            values: One tensor for each name of `learnable`. Gradients flow back to them.
        """
        expected = sorted(self.learnable())
        if sorted(values) != expected:
            raise OptionError(
                f"values must have the names {expected}, one for each learnable parameter of "
                f"{type(self).__name__}, but has {sorted(values)}. Start from likelihood.learnable()."
            )
        return self._from_unconstrained(values)

    @abstractmethod
    def _from_unconstrained(self: Likelihood, values: Mapping[str, Tensor]) -> Likelihood:
        """Return a copy with these values, whose names have been checked."""

    @final
    def _freeze(self, **fields: object) -> None:
        """Set the fields of a frozen dataclass, once, from its constructor."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)
