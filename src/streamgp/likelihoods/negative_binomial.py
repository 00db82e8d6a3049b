"""Counts that vary more than a Poisson distribution allows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_count
from streamgp.likelihoods.counts import AbstractCountLikelihood, sample_counts
from streamgp.likelihoods.links import AbstractLogLink
from streamgp.likelihoods.logistic import (
    expected_logistic_derivatives,
    expected_logistic_log_density,
    log_beta,
    logistic_derivatives,
    logistic_log_density,
)
from streamgp.likelihoods.parameters import check_counts, finite_exp, to_float, to_parameter
from streamgp.likelihoods.quantiles import threshold_cumulative
from streamgp.shapes import broadcast_shapes

__all__ = ["NegativeBinomial"]

_PRIOR_DEVIATION = 2.0


@final
@dataclass(frozen=True, eq=False, init=False)
class NegativeBinomial(AbstractLogLink, AbstractCountLikelihood):
    r"""Counts with mean $\mu = \exp(f)$ and variance $\mu + \mu^2 / r$.

    They are Poisson counts whose rate is $\mu$ times a Gamma variable of mean 1 and shape $r$; a large
    dispersion $r$ is a Poisson distribution. In $\delta = f - \log r$ the density is that of a
    binomial with $y$ successes and $r$ failures, $\sigma(\delta)^y \sigma(-\delta)^r$.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    rates = torch.exp(2 * X[:, 0]) * torch.rand(60, dtype=torch.float64) * 2
    result = sg.fit(X, torch.poisson(rates), likelihood=sg.likelihoods.NegativeBinomial(), num_inducing=10)
    result.likelihood.dispersion  # learned
    ```

    Attributes:
        dispersion: The number $r$.
        is_learned: Whether training may change it.
        num_nodes: Number of Gauss–Hermite nodes.
    """

    name: ClassVar[str] = "negative_binomial"

    dispersion: Float[Tensor, "..."]
    is_learned: bool
    num_nodes: int

    def __init__(self, dispersion: Tensor | float = 1.0, *, is_learned: bool = True, num_nodes: int = 32) -> None:
        """Check and keep the dispersion, which must be positive."""
        self._freeze(
            dispersion=to_parameter(dispersion, "dispersion", above=0.0),
            is_learned=is_learned,
            num_nodes=check_count(num_nodes, "num_nodes"),
        )

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are whole and not negative."""
        return check_counts(to_float(y, "y"), "NegativeBinomial")

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \frac{\Gamma(y + r)}{y! \, \Gamma(r)} + y \log \sigma(\delta) + r \log \sigma(-\delta)$."""
        count, r = y.to(f.device).double(), self.dispersion.to(f.device).double()
        constant = torch.lgamma(count + r) - torch.lgamma(r) - torch.lgamma(count + 1.0)
        return logistic_log_density(f - r.log().to(f), count, r, log_constant=constant)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $y \sigma(-\delta) - r \sigma(\delta)$ and $-(y + r) \sigma(\delta) \sigma(-\delta)$."""
        r = self.dispersion.to(f)
        return logistic_derivatives(f - r.log(), y.to(f), r)

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        """Evaluate the expectations of both derivatives in numbers."""
        r = float(self.dispersion)
        return expected_logistic_derivatives(
            mean - math.log(r), variance, successes=y, failures=r, num_nodes=self.num_nodes
        )

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        """Evaluate the expected log density in numbers, without what depends on count and dispersion alone."""
        r = float(self.dispersion)
        return expected_logistic_log_density(
            mean - math.log(r), variance, successes=y, failures=r, num_nodes=self.num_nodes
        )

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $M = \exp(m + v / 2)$, held constant near overflow."""
        average = finite_exp(mean + 0.5 * variance)
        return average.expand(broadcast_shapes(average.shape, self.dispersion.shape))

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $M + M^2 (e^v (1 + 1 / r) - 1)$."""
        excess = 1.0 / self.dispersion.to(mean) - torch.expm1(-variance)
        return self.predictive_mean(mean, variance) + finite_exp(2.0 * (mean + variance)) * excess

    @torch.no_grad()
    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Integrate; in $\delta$ the threshold of $y \le k$ is the logit of a $\mathrm{Beta}(k + 1, r)$ variable."""
        r, a = self.dispersion.to(mean.device).double(), y.double().floor().clamp_min(0.0) + 1.0
        constant = -log_beta(a, r)
        below = threshold_cumulative(
            lambda g: logistic_log_density(g, a, r, log_constant=constant),
            mode=a.log() - r.log(),
            curvature=a * r / (a + r),
            mean=mean.double() - r.log(),
            variance=variance.double(),
        )
        return torch.where(y < 0, 0.0, below)

    def conditional_mean(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\exp(f)$."""
        return finite_exp(f) + torch.zeros_like(self.dispersion.to(f))

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw a Gamma variable, then a count; rates above 1e18 are taken as 1e18."""
        r = self.dispersion.detach().to(f)
        shape = broadcast_shapes(f.shape, r.shape)
        factor = torch._standard_gamma(r.expand(shape).contiguous(), generator=generator) / r
        return sample_counts(finite_exp(f.detach()) * factor, generator=generator)

    def log_prior(self) -> Float[Tensor, ""]:
        r"""Evaluate the log density of $\log r \sim \mathcal{N}(0, 2^2)$ up to a constant, if it is learned.

        The standard deviation of two spans dispersions from 0.02 (far more spread than a Poisson distribution) to 50
        (hardly more) within two of them.
        """
        log_r = self.dispersion.log().sum() if self.is_learned else torch.zeros((), dtype=torch.float64)
        return -0.5 * (log_r / _PRIOR_DEVIATION).square()

    def learnable(self) -> dict[str, Tensor]:
        """Return the logarithm of the dispersion, if it is learned."""
        return {"dispersion": self.dispersion.log()} if self.is_learned else {}

    def _from_unconstrained(self, values: Mapping[str, Tensor]) -> "NegativeBinomial":
        return replace(self, dispersion=finite_exp(values["dispersion"]))
