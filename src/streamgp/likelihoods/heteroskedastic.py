"""Real numbers whose noise depends on the input."""

import math
from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.multi_latent import AbstractMultiLatentLikelihood
from streamgp.likelihoods.parameters import finite_exp
from streamgp.likelihoods.quadrature import expectation

__all__ = ["HeteroskedasticGaussian"]

_LOG_TWO_PI = math.log(2.0 * math.pi)
# Of the log noise variance; the error of log densities is 2e-13 where its variance is at most one.
_NUM_NODES = 64
# Where the noise variance starts, relative to that of the targets.
_START_NOISE = 0.1


@final
@dataclass(frozen=True, eq=False)
class HeteroskedasticGaussian(AbstractMultiLatentLikelihood):
    r"""Targets $y \sim \mathcal N(f_1, e^{f_2})$: the second latent function is the log noise variance.

    Give the GP of the log variance a prior mean: without one, the noise is one where there is no data, in the units of
    the targets. All expectations have closed forms.

    ```python
    import torch

    X = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    y = torch.sin(6 * X[:, 0]) + X[:, 0] * torch.randn(60, dtype=torch.float64)
    result = sg.fit(X, y, likelihood="heteroskedastic", num_inducing=10)
    function, log_noise_variance = result.predict(X).mean
    ```
    """

    name: ClassVar[str] = "heteroskedastic"
    outcome_kind: ClassVar[str] = "real"
    support: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    num_latents: ClassVar[int] = 2  # type: ignore[misc]

    def log_density(self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $-\frac12 (\log 2 \pi + f_2 + (y - f_1)^2 e^{-f_2})$."""
        return self.expected_log_density(f, torch.zeros_like(f), y)

    def derivatives(
        self, f: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Evaluate both derivatives in both latent values."""
        return self.expected_derivatives(f, torch.zeros_like(f), y)

    def expected_log_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        r"""Evaluate the same with $((y - m_1)^2 + v_1) e^{-m_2 + v_2 / 2}$ in the place of the last term."""
        square, precision, _ = _parts(mean, variance, y)
        return -0.5 * (_LOG_TWO_PI + mean[..., 1:, :] + square * precision)

    def expected_derivatives(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
        r"""Evaluate $(y - m_1) w$ and $-w$, and $\frac12 (s w - 1)$ and $-\frac12 s w$.

        Here $w = e^{-m_2 + v_2 / 2}$ and $s = (y - m_1)^2 + v_1$.
        """
        square, precision, residual = _parts(mean, variance, y)
        share = 0.5 * square * precision
        return torch.cat([residual * precision, share - 0.5], dim=-2), torch.cat([-precision, -share], dim=-2)

    def starting_latents(self, y: Float[Tensor, " n"]) -> tuple[Float[Tensor, " c"], Float[Tensor, " c"]]:
        """The mean of the targets and the logarithm of a tenth of their variance; the variance, and one."""
        variance = y.var(correction=0)
        variance = torch.where(variance > 0, variance, 1.0)
        mean = torch.stack([y.mean(), (_START_NOISE * variance).log()])
        return mean, torch.stack([variance, torch.ones_like(variance)])

    def predictive_mean(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Evaluate the mean of the targets, with the latent axis kept at size one."""
        return mean[..., :1, :]

    def predictive_variance(self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        r"""Evaluate $v_1 + e^{m_2 + v_2 / 2}$."""
        return variance[..., :1, :] + finite_exp(mean[..., 1:, :] + 0.5 * variance[..., 1:, :])

    def log_predictive_density(
        self, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], y: Float[Tensor, "..."]
    ) -> Float[Tensor, "..."]:
        """Evaluate the log density of targets, by quadrature over the log noise variance."""
        residual = (_rows(y, mean) - mean[..., :1, :]).square()
        num_axes = max(mean.dim(), variance.dim(), residual.dim())

        def density(f: Tensor) -> Tensor:
            total = variance[..., :1, :] + finite_exp(f)
            return torch.exp(-0.5 * (_LOG_TWO_PI + total.log() + residual / total))

        return expectation(
            density, mean[..., 1:, :], variance[..., 1:, :], num_nodes=_NUM_NODES, num_axes=num_axes
        ).log()

    def sample(self, f: Float[Tensor, "..."], *, generator: torch.Generator | None = None) -> Float[Tensor, "..."]:
        """Draw targets `(..., n)`."""
        f = f.detach()
        noise = torch.randn(f[..., 0, :].shape, dtype=f.dtype, device=f.device, generator=generator)
        return f[..., 0, :] + finite_exp(0.5 * f[..., 1, :]) * noise


def _parts(mean: Tensor, variance: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The expected square of the residual, the expected precision of the noise, and the residual."""
    residual = _rows(y, mean) - mean[..., :1, :]
    square = residual.square() + variance[..., :1, :]
    return square, finite_exp(0.5 * variance[..., 1:, :] - mean[..., 1:, :]), residual


def _rows(y: Tensor, like: Tensor) -> Tensor:
    """Targets with a latent axis of size one, or with none."""
    return y.to(like)[..., :1, :] if y.dim() > 1 else y.to(like)
