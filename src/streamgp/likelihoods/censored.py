"""Real numbers with Gaussian noise, some of which are only known to be beyond a bound, or between two."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike
from streamgp.errors import ValueRangeError
from streamgp.likelihoods.gaussian import Gaussian
from streamgp.likelihoods.intervals import interval_derivatives, log_interval, standardized
from streamgp.likelihoods.links import AbstractIdentityLink
from streamgp.likelihoods.parameters import Probabilities, check_broadcasts, finite_exp, to_float, to_parameter

__all__ = ["Censored"]


@final
@dataclass(frozen=True, eq=False, init=False)
class Censored(AbstractIdentityLink):
    r"""Targets $y = f + \varepsilon$, $\varepsilon \sim \mathcal N(0, \sigma^2)$, within limits of detection.

    A target at its lower limit, or below, says that the value is no larger than the limit, one at its upper limit, or
    above, that it is no smaller; others are values. Limits may be one for all observations, one for each, or infinite.
    Where `is_between` is one, a target between both limits says no more than that. Predictions are those of the
    quantity itself, without limits.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    y = (3 * X[:, 0]).sin().clamp_min(0.5)  # what is below one half is reported as one half
    result = sg.fit(X, y, likelihood=sg.likelihoods.Censored(0.01, lower=0.5), num_inducing=10)
    result.predict(X[:3]).mean  # below one half
    ```

    Attributes:
        noise_variance: The variance $\sigma^2$.
        lower: Lower limits; minus infinity for none.
        upper: Upper limits; infinity for none.
        is_between: One where targets between the limits are not known any closer, zero elsewhere.
        is_learned: Whether training may change the noise.
        num_nodes: Number of Gauss–Hermite nodes.

    References:
        Tobin (1958), Estimation of relationships for limited dependent variables.
    """

    name: ClassVar[str] = "censored"
    is_log_concave: ClassVar[bool] = True
    is_location_scale: ClassVar[bool] = False  # limits would have to be shifted with the targets

    noise_variance: Float[Tensor, "..."]
    lower: Float[Tensor, "..."]
    upper: Float[Tensor, "..."]
    is_between: Float[Tensor, "..."]
    is_learned: bool
    num_nodes: int

    def __init__(
        self,
        noise_variance: ArrayLike = 0.1,
        *,
        lower: ArrayLike = -math.inf,
        upper: ArrayLike = math.inf,
        is_between: ArrayLike = False,
        is_learned: bool = True,
        num_nodes: int = 32,
    ) -> None:
        r"""Check and keep noise and limits.

        Args:
            noise_variance: The variance $\sigma^2$, positive.
            lower: Lower limits.
            upper: Upper limits, above the lower ones.
            is_between: Whether targets between the limits are only known to be there.
            is_learned: Whether training may change a noise that is the same for all.
            num_nodes: Number of Gauss–Hermite nodes.
        """
        variance = to_parameter(noise_variance, "noise_variance", above=0.0)
        low, high, between = (to_float(each, "limits") for each in (lower, upper, is_between))
        is_good = low < high
        if not bool(is_good.all()):
            raise ValueRangeError(
                "lower must be below upper for every observation, but is not for "
                f"{int((~is_good).sum())} of {is_good.numel()}. Pass -inf or inf where there is no limit."
            )
        self._freeze(
            noise_variance=variance,
            lower=low,
            upper=high,
            is_between=between,
            is_learned=is_learned and variance.dim() == 0,
            num_nodes=num_nodes,
        )

    @classmethod
    def starting(cls) -> "Censored":
        """Make one for targets of unit variance, without limits."""
        return cls(0.05)

    @classmethod
    def at_bounds(
        cls, noise_variance: ArrayLike, y: Float[Tensor, " n"], sides: Float[Tensor, " n"], *, is_learned: bool = True
    ) -> "Censored":
        r"""Make one for targets some of which are bounds.

        Args:
            noise_variance: The variance $\sigma^2$, positive.
            y: Values and bounds.
            sides: Negative where the value is at most $y$, positive where it is at least $y$, zero where it is $y$.
            is_learned: Whether training may change the noise.
        """
        lower, upper = torch.where(sides < 0, y, -math.inf), torch.where(sides > 0, y, math.inf)
        return cls(noise_variance, lower=lower, upper=upper, is_learned=is_learned)

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are finite."""
        y = to_float(y, "y")
        for name, limits in self.constants().items():
            check_broadcasts(y, limits, name)
        return super().check_targets(y)

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \mathcal N(y \mid f, \sigma^2)$, or the log probability of what is known."""
        return self.log_predictive_density(f, torch.zeros_like(f), y)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives of the log density."""
        return self.log_predictive_derivatives(f, torch.zeros_like(f), y)

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate the same with a noise variance of $\sigma^2 + v$."""
        total = variance + self.noise_variance.to(mean)
        exact = -0.5 * ((y.to(mean) - mean).square() / total + total.log() + math.log(2.0 * math.pi))
        is_exact, low, high = self._known(y, mean, total.sqrt())
        return torch.where(is_exact, exact, log_interval(low, high).to(mean))

    def log_predictive_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives of the log predictive density in the mean."""
        total = variance + self.noise_variance.to(mean)
        is_exact, low, high = self._known(y, mean, total.sqrt())
        first, second = (each.to(mean) for each in interval_derivatives(low, high))
        residual = (y.to(mean) - mean) / total
        return torch.where(is_exact, residual, first / total.sqrt()), torch.where(is_exact, -1.0, second) / total

    @property
    def uncensored(self) -> Gaussian:
        """The likelihood of a measurement without limits, whose predictions these are."""
        return Gaussian(self.noise_variance, is_learned=self.is_learned)

    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the noise variance."""
        return self.predictive_variance(f, torch.zeros_like(f))

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Return the mean of the quantity."""
        return self.uncensored.predictive_mean(mean, variance)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $v + \sigma^2$."""
        return self.uncensored.predictive_variance(mean, variance)

    def predictive_quantiles(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], probabilities: Probabilities
    ) -> Float[Tensor, "..."]:
        """Evaluate quantiles of a measurement without limits."""
        return self.uncensored.predictive_quantiles(mean, variance, probabilities)

    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $P(Y \le y)$ of a measurement without limits."""
        return self.uncensored.predictive_cumulative(mean, variance, y)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw measurements without limits."""
        return self.uncensored.sample(f, generator=generator)

    def learnable(self) -> dict[str, Tensor]:
        """Return the logarithm of the noise variance, if it is learned."""
        return {"noise_variance": self.noise_variance.log()} if self.is_learned else {}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "Censored":
        return replace(self, noise_variance=finite_exp(values["noise_variance"]))

    def _known(self, y: Tensor, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Find targets that are values, and the ends of where the others are, in standard deviations from the mean."""
        y, low, high, between = (each.to(mean) for each in (y, self.lower, self.upper, self.is_between))
        is_below, is_above = y <= low, y >= high
        is_within = (between != 0) & ~is_below & ~is_above
        start = torch.where(is_above, high, torch.where(is_within, low, -math.inf))
        end = torch.where(is_below, low, torch.where(is_within, high, math.inf))
        is_exact = ~(is_below | is_above | is_within)
        return is_exact, standardized(start, mean, deviation), standardized(end, mean, deviation)
