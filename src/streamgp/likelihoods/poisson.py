"""Counts."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike
from streamgp.likelihoods.counts import AbstractCountLikelihood, sample_counts
from streamgp.likelihoods.links import AbstractLogLink
from streamgp.likelihoods.parameters import (
    check_broadcasts,
    check_counts,
    finite_exp,
    largest_exponent,
    to_float,
    to_parameter,
)
from streamgp.likelihoods.quantiles import threshold_cumulative

__all__ = ["Poisson"]

_LARGEST_EXPONENT = largest_exponent(torch.float64)


@final
@dataclass(frozen=True, eq=False, init=False)
class Poisson(AbstractLogLink, AbstractCountLikelihood):
    r"""Counts $y \sim \mathrm{Poisson}(e \exp(f))$ with exposure $e$.

    Rates are exact up to $e^{78.7}$ in single and $e^{699.8}$ in double precision, and held constant
    beyond, so that nothing overflows.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    hours = torch.full((60,), 2.0, dtype=torch.float64)
    calls = torch.poisson(hours * torch.exp(2 * X[:, 0]))
    result = sg.fit(X, calls, likelihood=sg.likelihoods.Poisson(exposure=hours), num_inducing=10)
    latent = result.predict(X[:3])
    sg.likelihoods.Poisson().predictive_mean(latent.mean, latent.variance)  # calls in one hour
    ```

    Attributes:
        exposure: The exposure $e$ (area, time, population), one for all observations or one for each.
    """

    name: ClassVar[str] = "poisson"
    row_data: ClassVar[str | None] = "exposure"

    exposure: Float[Tensor, "..."]

    def __init__(self, exposure: ArrayLike = 1.0) -> None:
        """Check and keep the exposure, which must be positive."""
        self._freeze(exposure=to_parameter(exposure, "exposure", above=0.0))

    def per_unit(self) -> "Poisson":
        """Return the likelihood of a unit of exposure."""
        return replace(self, exposure=torch.ones((), dtype=torch.float64))

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are whole and not negative."""
        y = to_float(y, "y")
        check_broadcasts(y, self.exposure, "exposure")
        return check_counts(y, "Poisson")

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $y (f + \log e) - e \exp(f) - \log y!$."""
        return self.expected_log_density(f, torch.zeros_like(f), y)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $y - e \exp(f)$ and $-e \exp(f)$."""
        return self.expected_derivatives(f, torch.zeros_like(f), y)

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $y (m + \log e) - e \exp(m + v / 2) - \log y!$.

        At a count of $10^5$ these terms cancel to nothing in single precision. With $\hat y = \max(y, 1)$
        and $\eta = m + \log e - \log \hat y$ the same is $y \eta - \hat y (\exp(\eta + v / 2) - 1)$ and
        a constant, which is computed in double precision.
        """
        count = y.to(mean.device).double()
        reference = count.clamp(min=1.0)
        eta = self._log_ratio(mean, reference)
        growth = self._growth(eta + 0.5 * variance, reference)
        constant = torch.where(count > 0, _log_peak(reference), -1.0)
        return count.to(mean) * eta - reference.to(mean) * growth + constant.to(mean)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $y - e \exp(m + v / 2)$ and $-e \exp(m + v / 2)$."""
        count = y.to(mean.device).double()
        reference = count.clamp(min=1.0)
        growth = self._growth(self._log_ratio(mean, reference) + 0.5 * variance, reference)
        excess = reference.to(mean) * growth
        return (count - reference).to(mean) - excess, -(reference.to(mean) + excess)

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        """Evaluate the same in numbers, where rounding needs no reference count."""
        rate = self._expected_rate_of_one(mean, variance)
        return y - rate, -rate

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        r"""Evaluate $y m - e \exp(m + v / 2)$ in numbers."""
        return y * mean - self._expected_rate_of_one(mean, variance)

    def _expected_rate_of_one(self, mean: float, variance: float) -> float:
        return math.exp(min(mean + 0.5 * variance + math.log(float(self.exposure)), _LARGEST_EXPONENT))

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $M = e \exp(m + v / 2)$."""
        return self.conditional_mean(mean + 0.5 * variance)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $M + M^2 (e^v - 1)$."""
        log_square = 2.0 * (mean + self.exposure.to(mean).log() + variance)
        return self.predictive_mean(mean, variance) - finite_exp(log_square) * torch.expm1(-variance)

    @torch.no_grad()
    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Integrate; the threshold of $y \le k$ has the density $(k + 1) \, p(y = k + 1 \mid f)$ in $f$."""
        above = y.double().floor().clamp_min(0.0) + 1.0
        mode = above.log() - self.exposure.to(mean.device).double().log()
        constant = _log_peak(above) + above.log()

        def log_density(g: Tensor) -> Tensor:
            return above * (g - mode - self._growth(g - mode, above)) + constant

        below = threshold_cumulative(
            log_density, mode=mode, curvature=above, mean=mean.double(), variance=variance.double()
        )
        return torch.where(y < 0, 0.0, below)

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw counts; rates above 1e18 are taken as 1e18."""
        return sample_counts(self.conditional_mean(f.detach()), generator=generator)

    def conditional_mean(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $e \exp(f)$."""
        return finite_exp(f + self.exposure.to(f).log())

    def _log_ratio(self, f: Tensor, reference: Tensor) -> Tensor:
        """Evaluate the logarithm of the rate over the reference count."""
        return f + (self.exposure.to(f.device).double().log() - reference.log()).to(f)

    def _growth(self, log_ratio: Tensor, reference: Tensor) -> Tensor:
        """Evaluate the rate over the reference count, less one, without overflow."""
        largest = largest_exponent(log_ratio.dtype) - reference.log().to(log_ratio)
        return torch.expm1(torch.minimum(log_ratio, largest))


def _log_peak(count: Tensor) -> Tensor:
    r"""Evaluate $y \log y - y - \log y!$ for $y \ge 1$ in double precision, by Stirling's series from 100 on."""
    exact = count * count.log() - count - torch.lgamma(count + 1.0)
    series = -0.5 * torch.log(2.0 * math.pi * count) - 1.0 / (12.0 * count) + 1.0 / (360.0 * count**3)
    return torch.where(count < 100.0, exact, series)
