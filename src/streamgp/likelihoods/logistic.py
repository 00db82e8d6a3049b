r"""The logistic curve $\sigma(f) = 1 / (1 + e^{-f})$, as binary, binomial and negative binomial targets use it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.marginal import log_concave_marginal
from streamgp.likelihoods.quadrature import gauss_hermite_pairs

__all__ = [
    "expected_logistic_derivatives",
    "expected_logistic_log_density",
    "expected_sigmoid",
    "log_beta",
    "logistic_derivatives",
    "logistic_log_density",
]

# Beyond, the exponential of a number comes near overflow in single precision.
_FAR = 30.0
# From here on the remainder of Stirling's series is exact to rounding.
_STIRLING = 30.0


def logistic_log_density(
    f: Float[Tensor, "..."],
    successes: Float[Tensor, "..."],
    failures: Float[Tensor, "..."],
    *,
    log_constant: Float[Tensor, "..."],
) -> Float[Tensor, "..."]:
    r"""Evaluate $c + a \log \sigma(f) + b \log \sigma(-f)$ without cancellation for large counts.

    In single precision the three terms lose all digits at $a = 10^5$. With the reference point
    $p_0 = (a + 1/2) / (a + b + 1) = \sigma(f_0)$ and $\delta = f - f_0$, the same is

    $$
    c + a \log p_0 + b \log (1 - p_0) + (a - (a + b) p_0) \delta - (a + b) B(\delta), \qquad
    B(\delta) = \log(1 + p_0 (e^\delta - 1)) - p_0 \delta ,
    $$

    where what does not depend on $f$ is computed in double precision.

    Args:
        f: Latent values.
        successes: The number $a$; not negative.
        failures: The number $b$; not negative.
        log_constant: The constant $c$, in double precision.
    """
    a, b = successes.double(), failures.double()
    total = a + b
    p, q = (a + 0.5) / (total + 1.0), (b + 0.5) / (total + 1.0)
    # The logarithm of what is nearly one comes from its small complement.
    log_p, log_q = (torch.where(x < 0.5, x.log(), torch.log1p(-y)) for x, y in ((p, q), (q, p)))
    height = log_constant + a * log_p + b * log_q
    tilt = (a - b) / (2.0 * (total + 1.0))
    delta = f - (log_p - log_q).to(f)
    # B is the same with 1 - p and -delta in place of p and delta: take the smaller share, which keeps its digits.
    share = torch.minimum(p, q).to(f)
    away = torch.where(p <= q, delta, -delta)
    far = away > _FAR
    near = torch.where(far, 0.0, away)
    bregman = torch.where(
        far, away + torch.log(share + (1.0 - share) * torch.exp(-away)), torch.log1p(share * torch.expm1(near))
    )
    return height.to(f) + tilt.to(f) * delta - total.to(f) * (bregman - share * away)


def logistic_derivatives(
    f: Float[Tensor, "..."], successes: Float[Tensor, "..."], failures: Float[Tensor, "..."]
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    r"""Evaluate both derivatives of $a \log \sigma(f) + b \log \sigma(-f)$."""
    up, down = torch.sigmoid(f), torch.sigmoid(-f)
    return successes * down - failures * up, -(successes + failures) * up * down


def expected_logistic_derivatives(
    mean: float, variance: float, *, successes: float, failures: float, num_nodes: int
) -> tuple[float, float]:
    r"""Evaluate the expectations of both derivatives under $f \sim \mathcal{N}(m, v)$, in numbers.

    In $t = \tanh(f / 2)$ they are those of $\frac12 (a - b) - \frac12 (a + b) t$ and $-\frac14 (a + b)(1 - t^2)$.
    """
    center, deviation = 0.5 * mean, 0.5 * math.sqrt(variance)
    average = square = 0.0
    for node, weight in gauss_hermite_pairs(num_nodes):
        t = math.tanh(center + deviation * node)
        average += weight * t
        square += weight * t * t
    total = successes + failures
    return 0.5 * (successes - failures - total * average), -0.25 * total * (1.0 - square)


def expected_logistic_log_density(
    mean: float, variance: float, *, successes: float, failures: float, num_nodes: int
) -> float:
    r"""Evaluate the expectation of $a \log \sigma(f) + b \log \sigma(-f)$ in numbers.

    In $h = f / 2$ it is that of $(a - b) h - (a + b) \log(e^h + e^{-h})$.
    """
    center, deviation = 0.5 * mean, 0.5 * math.sqrt(variance)
    average = 0.0
    for node, weight in gauss_hermite_pairs(num_nodes):
        size = abs(center + deviation * node)
        average += weight * (size + math.log1p(math.exp(-2.0 * size)))
    return (successes - failures) * center - (successes + failures) * average


def expected_sigmoid(mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Evaluate $\mathbb{E}[\sigma(f)]$ under $f \sim \mathcal{N}(m, v)$; accurate when small, and for large $v$."""
    return log_concave_marginal(
        torch.nn.functional.logsigmoid,
        lambda f: (torch.sigmoid(-f), -torch.sigmoid(f) * torch.sigmoid(-f)),
        mean,
        variance,
    ).exp()


def log_beta(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""Evaluate the logarithm of the beta function, also where one argument is far larger than the other.

    With the larger argument $c$ and the smaller $d$, $\log \Gamma(c + d) - \log \Gamma(c)$ is the difference of huge
    numbers; by Stirling's series it is $(c + d - \frac12) \log(1 + d / c) + d \log c - d$ and a small remainder.
    """
    c, d = torch.maximum(a, b), torch.minimum(a, b)
    direct = torch.lgamma(c + d) - torch.lgamma(c)
    large = c.clamp(min=_STIRLING)
    series = (large + d - 0.5) * torch.log1p(d / large) + d * large.log() - d
    series = series + _stirling_remainder(large + d) - _stirling_remainder(large)
    return torch.lgamma(d) - torch.where(c < _STIRLING, direct, series)


def _stirling_remainder(x: Tensor) -> Tensor:
    inverse = 1.0 / x
    return inverse * (1.0 / 12.0 - inverse.square() * (1.0 / 360.0 - inverse.square() / 1260.0))
