"""Quantiles of mixtures: of counts through their latent thresholds, and of continuous targets."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.inversion import Cumulative, invert_cumulative
from streamgp.likelihoods.marginal import concave_drops
from streamgp.likelihoods.parameters import Probabilities, to_probabilities
from streamgp.likelihoods.quadrature import gauss_legendre, nodes_first, standard_deviation

__all__ = [
    "SLACK",
    "are_few",
    "binary_quantiles",
    "continuous_quantiles",
    "count_quantiles",
    "first_cumulatives",
    "first_reaching",
    "threshold_cumulative",
]

# A cumulative probability this close below the asked one has reached it; it is the error of the integrals,
# measured for counts up to 1e6, dispersions from 0.02 and variances up to 9.
SLACK = 3e-8

# A Gaussian falls by 36 within 8.5 standard deviations; a threshold with an exponential tail needs more,
# 420 times that at a slope of 1e-4 (a negative binomial of dispersion 1e-4).
_WIDEST = 8.5 * 512.0

# Thresholds of more than this curvature are Gaussian to 1e-9; of much more, they are narrower than numbers can tell.
_NARROW = 1e16

# How many counts are summed at once.
_NUM_COUNTS = 32
# Where a Gaussian has fallen by the factor 2e-16, and numbers that a summation over counts may take.
_REACH, _MOST_NUMBERS = 8.5, 1_000_000


def threshold_cumulative(
    log_threshold_density: Callable[[Tensor], Tensor],
    *,
    mode: Float[Tensor, "..."],
    curvature: Float[Tensor, "..."],
    mean: Float[Tensor, "..."],
    variance: Float[Tensor, "..."],
) -> Float[Tensor, "..."]:
    r"""Evaluate $P(y \le k)$ for a count when $f \sim \mathcal{N}(m, v)$.

    The larger $f$, the larger the count, so $P(y \le k \mid f)$ falls from 1 to 0: it is the
    probability $P(G > f)$ that a random threshold lies above $f$. With the density $\rho$ of $G$,

    $$
    P(y \le k) = \int \Phi\left( \frac{g - m}{\sqrt{v}} \right) \rho(g) \, dg .
    $$

    The two factors may differ in width by any amount. The range is cut at the mode of the threshold
    and beside it, and where the normal probability is 0 or 1, so that the integrand is smooth on each panel.
    A threshold that hardly varies is taken as Gaussian.

    Args:
        log_threshold_density: The function $\log \rho$, concave.
        mode: Where it is highest.
        curvature: Its second derivative there, times -1.
        mean: Means $m$; float64.
        variance: Variances $v$; float64.
    """
    deviation = standard_deviation(variance)
    widest = _WIDEST / curvature.sqrt()
    left, right = concave_drops(log_threshold_density, mode, widest=widest, num_halvings=11)
    lower, upper = mode - left, mode + right
    cuts = [lower, mode - left / 8.0, mode, mode + right / 64.0, mode + right / 8.0, upper]
    cuts += [torch.clamp(mean + z * deviation, lower, upper) for z in (-8.5, -2.5, 2.5, 8.5)]
    edges = torch.stack(torch.broadcast_tensors(*cuts)).sort(0).values
    nodes, weights = gauss_legendre(16, mean.dtype, mean.device)
    lengths = edges.diff(dim=0).unsqueeze(1)
    points = edges[:-1].unsqueeze(1) + lengths * nodes_first(nodes, edges.dim() - 1)
    mass = lengths * nodes_first(weights, edges.dim() - 1) * log_threshold_density(points).exp()
    above: Tensor = torch.special.ndtr((points - mean) / deviation)
    beyond = torch.special.ndtr((mode - mean) / (variance + 1.0 / curvature).sqrt())
    return torch.where(curvature > _NARROW, beyond, (mass * above).sum((0, 1)).clamp(max=1.0))


@torch.no_grad()
def count_quantiles(
    log_probability: Callable[[Tensor, Tensor], Tensor],
    cumulative: Cumulative,
    conditional_mean: Callable[[Tensor], Tensor],
    *,
    mean: Float[Tensor, "..."],
    variance: Float[Tensor, "..."],
    moments: Callable[[], tuple[Float[Tensor, "..."], Float[Tensor, "..."]]],
    probabilities: Probabilities,
) -> Float[Tensor, "... p"]:
    r"""Find the smallest count whose cumulative probability reaches each probability.

    Where counts are small, all of them are summed at once. Otherwise they are searched for. Quantiles rise with their
    probabilities, whatever rounding does to the integrals.

    Args:
        log_probability: $\log p(y = k \mid f)$ of latent values and counts.
        cumulative: $P(y \le k)$ of counts $k$ with new axes in front; float64.
        conditional_mean: The mean count given $f$; at the quantile of $f$ it tells whether counts are small.
        mean: Means $m$.
        variance: Variances $v$.
        moments: Mean and variance of the counts, from which the search starts; float64.
        probabilities: The probabilities, each between 0 and 1.
    """
    vector = to_probabilities(probabilities, mean)
    wanted = nodes_first(vector, conditional_mean(mean + variance).dim())
    latent = mean.double() + standard_deviation(variance.double()) * torch.special.ndtri(wanted)
    guess = conditional_mean(latent)
    likely = guess + 5.0 * guess.sqrt() + 5.0
    if not likely.numel():
        return likely.movedim(0, -1).to(mean.dtype)
    if are_few(likely):
        num_values = wanted[0].numel() * max(mean.numel(), variance.numel())
        below = first_cumulatives(
            log_probability,
            mean=mean.double(),
            variance=variance.double(),
            num_axes=wanted.dim() - 1,
            num_values=num_values,
        )
        few = None if below is None else first_reaching(below, wanted)
        if few is not None:
            return few.movedim(0, -1).to(mean.dtype)
    center, square = moments()
    high = invert_cumulative(cumulative, wanted - SLACK, center=center, deviation=square.sqrt(), is_whole=True)
    order = vector.argsort()
    rising = high[order].cummax(0).values
    return rising[order.argsort()].movedim(0, -1).to(mean.dtype)


@torch.no_grad()
def first_cumulatives(
    log_probability: Callable[[Tensor, Tensor], Tensor],
    *,
    mean: Float[Tensor, "..."],
    variance: Float[Tensor, "..."],
    num_axes: int,
    num_values: int,
) -> Float[Tensor, "k ..."] | None:
    r"""Evaluate $P(y \le k)$ of the first counts, by their probabilities; None if it takes too much.

    As a function of $f$ the probability of a count $k$ is a bump of width $k^{-1/2}$. The trapezoidal rule with spacing
    $h k^{-1/2}$ is wrong by about $\exp(-2 \pi^2 / h^2)$, which is 1e-9 for $h = 0.95$.

    Args:
        log_probability: $\log p(y = k \mid f)$ of latent values and counts.
        mean: Means $m$; float64.
        variance: Variances $v$; float64.
        num_axes: Number of axes of the result but for the first.
        num_values: Number of values of which there is one for each count.
    """
    deviation = standard_deviation(variance)
    num_nodes = 64 + math.ceil(2.0 * _REACH * float(deviation.amax()) * math.sqrt(_NUM_COUNTS) / 0.95)
    if num_nodes * _NUM_COUNTS * num_values > _MOST_NUMBERS:
        return None
    t = torch.linspace(-_REACH, _REACH, num_nodes, dtype=mean.dtype, device=mean.device)
    weights = torch.softmax(-0.5 * t.square(), 0)
    counts = torch.arange(_NUM_COUNTS).to(mean)
    f = mean + deviation * nodes_first(t, num_axes)
    probability = log_probability(f.unsqueeze(1), nodes_first(counts, num_axes)).exp()
    below: Tensor = torch.tensordot(weights, probability, dims=1).cumsum(0)
    return below


def first_reaching(below: Float[Tensor, "k ..."], wanted: Float[Tensor, "p ..."]) -> Float[Tensor, "p ..."] | None:
    """Find which of the first counts reaches each probability; None if one is reached by none of them."""
    is_short = below.unsqueeze(1) < wanted - SLACK
    return None if bool(is_short[-1].any()) else is_short.sum(0).double()


def are_few(likely: Float[Tensor, "..."]) -> bool:
    """Tell if the largest of likely counts is so small that the first counts are worth a look."""
    return float(likely.amax()) < 2.0 * _NUM_COUNTS


@torch.no_grad()
def continuous_quantiles(
    cumulative: Cumulative,
    center: Float[Tensor, "..."],
    scale: Float[Tensor, "..."],
    probabilities: Probabilities,
) -> Float[Tensor, "... p"]:
    r"""Invert a continuous cumulative distribution.

    Args:
        cumulative: $P(y \le c)$ of values $c$ with an axis in front, of any length; float64.
        center: Where to start, such as the mean.
        scale: A first step away from it, such as the standard deviation.
        probabilities: The probabilities, each between 0 and 1.
    """
    center, scale = torch.broadcast_tensors(center, scale)
    wanted = nodes_first(to_probabilities(probabilities, center), center.dim())
    found = invert_cumulative(cumulative, wanted, center=center.double(), deviation=scale.double(), is_whole=False)
    return found.movedim(0, -1).to(center.dtype)


def binary_quantiles(failure_probability: Float[Tensor, "..."], probabilities: Probabilities) -> Float[Tensor, "... p"]:
    """Find quantiles of a target that is 0 or 1: zero as long as $P(y = 0)$ reaches the probability."""
    wanted = to_probabilities(probabilities, failure_probability)
    slack = max(SLACK, 4.0 * torch.finfo(failure_probability.dtype).eps)
    is_one = failure_probability.detach().double().unsqueeze(-1) < wanted - slack
    return is_one.to(failure_probability.dtype)
