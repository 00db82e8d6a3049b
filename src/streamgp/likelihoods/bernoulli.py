"""Two classes."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import check_choice, check_count
from streamgp.likelihoods.binary import AbstractBinaryLikelihood
from streamgp.likelihoods.logistic import (
    expected_logistic_derivatives,
    expected_logistic_log_density,
    logistic_derivatives,
)
from streamgp.likelihoods.parameters import check_support, to_float
from streamgp.likelihoods.probit import (
    expected_log_probit,
    expected_probit_derivatives,
    log_probit,
    probit_derivatives,
    signs,
)

__all__ = ["Bernoulli"]


@final
@dataclass(frozen=True, eq=False, init=False)
class Bernoulli(AbstractBinaryLikelihood):
    r"""Classes 0 and 1 with $P(y = 1 \mid f) = \sigma(f)$ (logit) or $\Phi(f)$ (probit).

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    passed = (X[:, 0] > 0.4).double()
    result = sg.fit(X, passed, likelihood=sg.likelihoods.Bernoulli("probit"), num_inducing=10)
    latent = result.predict(X[:3])
    result.likelihood.predictive_mean(latent.mean, latent.variance)  # probabilities of a one
    ```

    Attributes:
        link: Either "logit" or "probit".
        num_nodes: Number of Gauss–Hermite nodes.
    """

    name: ClassVar[str] = "bernoulli"

    link: str
    num_nodes: int

    def __init__(self, link: str = "logit", *, num_nodes: int = 32) -> None:
        """Check and keep the link."""
        self._freeze(
            link=check_choice(link, ("logit", "probit"), "link"), num_nodes=check_count(num_nodes, "num_nodes")
        )

    def check_targets(self, y: object) -> Tensor:
        """Return `y` as floating-point numbers if all are 0 or 1."""
        y = to_float(y, "y")
        if y.numel() == 1 and float(y) in (0.0, 1.0):
            return y  # one row of a stream, for which tensors take ten times as long
        return check_support(
            y,
            (y == 0) | (y == 1),
            expected="Bernoulli targets must be 0 or 1",
            advice="Labels -1 and 1 become 0 and 1 with (y + 1) / 2.",
        )

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \sigma(\pm f)$ or $\log \Phi(\pm f)$."""
        signed = signs(y.to(f)) * f
        return torch.nn.functional.logsigmoid(signed) if self.link == "logit" else log_probit(signed)

    def response(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $\sigma(f)$ or $\Phi(f)$, the probability of 1."""
        probability: Tensor = torch.sigmoid(f) if self.link == "logit" else torch.special.ndtr(f)
        return probability

    def inverse_response(self, response: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate the logit or $\Phi^{-1}$ of a probability."""
        response = self.check_response(response)
        latent: Tensor = torch.logit(response) if self.link == "logit" else torch.special.ndtri(response)
        return latent

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $y - \sigma$ and $-\sigma (1 - \sigma)$, or the same for the probit link."""
        y = y.to(f)
        if self.link == "logit":
            return logistic_derivatives(f, y, 1.0 - y)
        first, second = probit_derivatives(signs(y) * f)
        return signs(y) * first, second

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        """Evaluate the expectations of both derivatives in numbers."""
        if self.link == "probit":
            sign = 2.0 * y - 1.0
            first, second = expected_probit_derivatives(sign * mean, variance, num_nodes=self.num_nodes)
            return sign * first, second
        return expected_logistic_derivatives(mean, variance, successes=y, failures=1.0 - y, num_nodes=self.num_nodes)

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        """Evaluate the expected log density in numbers."""
        if self.link == "probit":
            return expected_log_probit((2.0 * y - 1.0) * mean, variance, num_nodes=self.num_nodes)
        return expected_logistic_log_density(mean, variance, successes=y, failures=1.0 - y, num_nodes=self.num_nodes)

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate $\log \Phi(\pm m / \sqrt{1 + v})$ for the probit link, an integral for the logit link."""
        if self.link == "probit":
            return log_probit(signs(y.to(mean)) * mean / (1.0 + variance).sqrt())
        return super().log_predictive_density(mean, variance, y)

    def log_predictive_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]] | None:
        r"""Evaluate the derivatives of $\log \Phi(\pm m / \sqrt{1 + v})$ for the probit link."""
        if self.link != "probit":
            return None
        scale = signs(y.to(mean)) / (1.0 + variance).sqrt()
        first, second = probit_derivatives(scale * mean)
        return scale * first, scale.square() * second

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw classes."""
        return torch.bernoulli(self.response(f).detach(), generator=generator)
