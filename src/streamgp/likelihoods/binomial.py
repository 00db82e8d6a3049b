"""Successes out of a known number of trials."""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike, check_count
from streamgp.errors import ValueRangeError
from streamgp.likelihoods.counts import AbstractCountLikelihood
from streamgp.likelihoods.links import AbstractLogitLink
from streamgp.likelihoods.logistic import (
    expected_logistic_derivatives,
    expected_logistic_log_density,
    expected_sigmoid,
    log_beta,
    logistic_derivatives,
    logistic_log_density,
)
from streamgp.likelihoods.parameters import check_broadcasts, check_support, to_float, to_parameter
from streamgp.likelihoods.quadrature import expectation
from streamgp.likelihoods.quantiles import threshold_cumulative

__all__ = ["Binomial"]


@final
@dataclass(frozen=True, eq=False, init=False)
class Binomial(AbstractLogitLink, AbstractCountLikelihood):
    r"""Counts $y \sim \mathrm{Binomial}(N, \sigma(f))$.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    trials = torch.full((60,), 10.0, dtype=torch.float64)
    successes = torch.binomial(trials, X[:, 0])
    result = sg.fit(X, successes, likelihood=sg.likelihoods.Binomial(trials), num_inducing=10)
    latent = result.predict(X[:3])
    sg.likelihoods.Binomial(1).predictive_mean(latent.mean, latent.variance)  # probabilities of a success
    ```

    Attributes:
        total_count: Number of trials $N$, one for all observations or one for each; may be zero.
        num_nodes: Number of Gauss–Hermite nodes.
    """

    name: ClassVar[str] = "binomial"
    is_log_concave: ClassVar[bool] = True
    row_data: ClassVar[str | None] = "total_count"
    needs_row_data: ClassVar[bool] = True

    total_count: Float[Tensor, "..."]
    num_nodes: int

    def __init__(self, total_count: ArrayLike, *, num_nodes: int = 32) -> None:
        """Check and keep the number of trials."""
        total = to_parameter(total_count, "total_count")
        is_count = (total >= 0) & (total == total.round())
        if not bool(is_count.all()):
            raise ValueRangeError(
                f"total_count must hold whole numbers of at least 0, but has {total[~is_count][0].item():g}. "
                "Pass the number of trials of each observation, not a proportion."
            )
        self._freeze(total_count=total, num_nodes=check_count(num_nodes, "num_nodes"))

    @classmethod
    def starting(cls) -> "Binomial":
        """Make one of single trials; `with_row_data` sets how many each observation had."""
        return cls(1)

    def per_unit(self) -> "Binomial":
        """Return the likelihood of one trial."""
        return replace(self, total_count=torch.ones((), dtype=torch.float64))

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are whole and at most the number of trials."""
        y = to_float(y, "y")
        check_broadcasts(y, self.total_count, "total_count")
        return check_support(
            y,
            (y >= 0) & (y == y.round()) & (y <= self.total_count.to(y)),
            expected="Binomial targets must be whole numbers from 0 to total_count",
            advice="Pass numbers of successes; a proportion becomes one with (y * total_count).round().",
        )

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \binom{N}{y} + y \log \sigma(f) + (N - y) \log \sigma(-f)$."""
        successes = y.to(f.device).double()
        failures = self.total_count.to(f.device).double() - successes
        log_choices = -torch.log1p(successes + failures) - log_beta(successes + 1.0, failures + 1.0)
        return logistic_log_density(f, successes, failures, log_constant=log_choices)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $y - N \sigma$ and $-N \sigma (1 - \sigma)$."""
        y = y.to(f)
        return logistic_derivatives(f, y, self.total_count.to(f) - y)

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        """Evaluate the expectations of both derivatives in numbers."""
        failures = float(self.total_count) - y
        return expected_logistic_derivatives(mean, variance, successes=y, failures=failures, num_nodes=self.num_nodes)

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        """Evaluate the expected log density in numbers, without the binomial coefficient."""
        failures = float(self.total_count) - y
        return expected_logistic_log_density(mean, variance, successes=y, failures=failures, num_nodes=self.num_nodes)

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $N \, \mathbb{E}[\sigma(f)]$."""
        return self.total_count.to(mean) * expected_sigmoid(mean, variance)

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $N p (1 - p) + N (N - 1) \operatorname{Var}[\sigma(f)]$ with $p = \mathbb{E}[\sigma(f)]$."""
        total, p = self.total_count.to(mean), expected_sigmoid(mean, variance)
        spread = expectation(lambda f: (torch.sigmoid(f) - p).square(), mean, variance, num_nodes=self.num_nodes)
        return total * p * expected_sigmoid(-mean, variance) + (total * (total - 1.0)).clamp(min=0.0) * spread

    def conditional_mean(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $N \, \sigma(f)$."""
        return self.total_count.to(f) * torch.sigmoid(f)

    def conditional_variance(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $N \, \sigma(f) \, \sigma(-f)$."""
        return self.total_count.to(f) * torch.sigmoid(f) * torch.sigmoid(-f)

    def _log_probability(self, f: Tensor, count: Tensor) -> Tensor:
        total = self.total_count.to(count)
        return torch.where(count > total, -torch.inf, self.log_density(f, torch.minimum(count, total)))

    @torch.no_grad()
    def predictive_cumulative(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Integrate; the threshold of $y \le k$ is the logit of a $\mathrm{Beta}(k + 1, N - k)$ variable."""
        total, k = self.total_count.to(mean.device).double(), y.double().floor().clamp_min(0.0)
        a, b = k + 1.0, (total - k).clamp(min=1.0)
        constant = -log_beta(a, b)
        below = threshold_cumulative(
            lambda g: logistic_log_density(g, a, b, log_constant=constant),
            mode=a.log() - b.log(),
            curvature=a * b / (a + b),
            mean=mean.double(),
            variance=variance.double(),
        )
        return torch.where(y < 0, 0.0, torch.where(k >= total, torch.ones_like(below), below))

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw numbers of successes."""
        total, probability = torch.broadcast_tensors(self.total_count.to(f), torch.sigmoid(f.detach()))
        return torch.binomial(total.contiguous(), probability.contiguous(), generator=generator)
