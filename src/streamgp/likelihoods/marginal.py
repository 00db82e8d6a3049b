r"""The log density of one observation, $\log \int p(y \mid f) \, \mathcal{N}(f \mid m, v) \, df$.

Nodes that follow the Gaussian miss a likelihood that is much narrower, as that of a large count. Both
integrals here first find out where the integrand lives. They work in $t = (f - m) / \sqrt{v}$, on

$$
h(t) = \log p(y \mid m + \sqrt{v}\, t) - t^2 / 2 .
$$

The nodes carry no gradient; the integrand does, in $m$, $v$ and the parameters of the likelihood.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.quadrature import gauss_legendre, nodes_first, standard_deviation

__all__ = ["concave_drops", "log_concave_marginal", "log_marginal"]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)

# What lies below exp(-36) = 2e-16 of the peak does not show in double precision.
DROP = 36.0

# With 96 nodes over +-8.5 standard deviations the error for a logistic curve is below 1e-9 while the
# standard deviation is at most 5 (see `quadrature.expectation` for the rate).
_NUM_CONCAVE_NODES = 96

Curve = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]
Slopes = Callable[[Float[Tensor, "..."]], tuple[Float[Tensor, "..."], Float[Tensor, "..."]]]


def log_concave_marginal(
    log_density: Curve, derivatives: Slopes, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    r"""Integrate a log-concave likelihood by the trapezoidal rule between the feet of its peak.

    As $h'' \le -1$, the integrand has one peak, and falls by the factor $e^{-36}$ within 8.5 of it. The
    trapezoidal rule converges exponentially for an analytic function that vanishes at both ends.

    Args:
        log_density: The function $\log p(y \mid f)$ of $f$, for the observed $y$.
        derivatives: Its first and second derivative.
        mean: Means $m$.
        variance: Variances $v$; zero is allowed.
    """
    deviation = standard_deviation(variance)

    def curve(t: Tensor) -> Tensor:
        return log_density(mean + deviation * t) - 0.5 * t.square()

    with torch.no_grad():
        peak = _concave_peak(derivatives, mean, deviation)
        below, above = concave_drops(curve, peak, widest=math.sqrt(2.0 * DROP))
        grid = torch.linspace(0.0, 1.0, _NUM_CONCAVE_NODES, dtype=peak.dtype, device=peak.device)
        nodes = peak + (nodes_first(grid, peak.dim()) * (below + above) - below)
        log_step = ((below + above) / (_NUM_CONCAVE_NODES - 1)).log()
    return curve(nodes).logsumexp(0) + log_step - _LOG_ROOT_TWO_PI


def concave_drops(
    curve: Curve, peak: Float[Tensor, "..."], *, widest: Tensor | float, num_halvings: int = 20
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Find how far left and right of its peak a concave curve has fallen by 36, to within a factor of two.

    Args:
        curve: The concave function.
        peak: Where it is highest.
        widest: A distance at which it has surely fallen.
        num_halvings: How often that distance is halved, at most.
    """
    halves = torch.exp2(-torch.arange(num_halvings + 1, dtype=peak.dtype, device=peak.device))
    distances = widest * nodes_first(torch.cat([-halves, halves, halves.new_zeros(1)]), peak.dim())
    values = curve(peak + distances)
    has_fallen = values[:-1] <= values[-1] - DROP
    # On each side the curve is seen from afar to near: the last distance that has fallen.
    count = has_fallen.unflatten(0, (2, -1)).to(peak.dtype).sum(1) - 1.0
    left, right = widest * torch.exp2(-count.clamp(min=0.0))
    return left, right


def _concave_peak(
    derivatives: Slopes, mean: Float[Tensor, "..."], deviation: Float[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Find the peak of a concave $h$ to a twentieth of its width, by Newton steps within a bracket.

    The slope of the log density falls, so the peak lies between 0 and its slope there. A Newton step
    that leaves the bracket, or that follows one which gained less than a digit, gives way to the middle.
    """
    first, _ = derivatives(mean)
    end = deviation * first
    lower, upper = end.clamp(max=0.0), end.clamp(min=0.0)
    t, previous = torch.zeros_like(end), torch.full_like(end, math.inf)
    for step in range(100):
        first, second = derivatives(mean + deviation * t)
        slope, curvature = deviation * first - t, 1.0 - deviation.square() * second
        if bool((slope.square() <= 0.0025 * curvature).all()):
            break
        lower, upper = torch.where(slope > 0, t, lower), torch.where(slope < 0, t, upper)
        newton = t + slope / curvature
        is_slow = (slope.abs() > 0.1 * previous) if step > 4 else torch.zeros_like(slope, dtype=torch.bool)
        is_kept = (newton >= lower) & (newton <= upper) & ~is_slow
        t, previous = torch.where(is_kept, newton, _middle(lower, upper)), slope.abs()
    return t


def _middle(lower: Float[Tensor, "..."], upper: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Take the middle of a bracket that has 0 outside or at its end: geometric if it spans magnitudes."""
    far = torch.maximum(lower.abs(), upper.abs())
    near = torch.minimum(lower.abs(), upper.abs()).clamp(min=0.5)
    geometric = torch.sign(lower + upper) * near.sqrt() * far.sqrt()
    return torch.where(far > 4.0 * near, geometric, 0.5 * (lower + upper))


def log_marginal(
    log_density: Curve, mean: Float[Tensor, "..."], variance: Float[Tensor, "..."], *, num_axes: int
) -> Float[Tensor, "..."]:
    r"""Integrate any likelihood, also one with several peaks, on panels that crowd around the highest.

    The highest peak is searched for up to 40 standard deviations away. Equal panels cover 9 more than
    that on both sides, as a second peak often mirrors the first; more panels halve toward the peak, until
    1/1024. Each has 8 Gauss–Legendre nodes. A second peak that is narrower than a tenth of a standard
    deviation is not resolved.

    Args:
        log_density: The function $\log p(y \mid f)$ of $f$, for the observed $y$.
        mean: Means $m$.
        variance: Variances $v$; zero is allowed.
        num_axes: Number of axes of the result.
    """
    deviation = standard_deviation(variance)

    def curve(t: Tensor) -> Tensor:
        return log_density(mean + deviation * t) - 0.5 * t.square()

    with torch.no_grad():
        peak = _highest_point(curve, like=mean, num_axes=num_axes)
        uniform = nodes_first(torch.linspace(-1.0, 1.0, 49, dtype=peak.dtype, device=peak.device), peak.dim())
        halves = torch.exp2(-torch.arange(11, dtype=peak.dtype, device=peak.device))
        crowd = peak + nodes_first(torch.cat([-halves, halves, torch.zeros_like(halves[:1])]), peak.dim())
        edges = torch.cat([uniform * (9.0 + peak.abs()), crowd]).sort(0).values
        nodes, weights = gauss_legendre(8, peak.dtype, peak.device)
        lengths = edges.diff(dim=0).unsqueeze(1)
        points = edges[:-1].unsqueeze(1) + lengths * nodes_first(nodes, peak.dim())
        # Panels may be empty where edges coincide; their weight is then zero.
        log_weights = (lengths * nodes_first(weights, peak.dim())).log()
    return (curve(points.flatten(0, 1)) + log_weights.flatten(0, 1)).logsumexp(0) - _LOG_ROOT_TWO_PI


def _highest_point(curve: Curve, *, like: Tensor, num_axes: int) -> Float[Tensor, "..."]:
    """Find the highest point of a curve on [-40, 40], by a grid that is refined around its best point."""
    grid = torch.linspace(-1.0, 1.0, 161, dtype=like.dtype, device=like.device)
    offsets = nodes_first(40.0 * grid, num_axes)
    best = torch.zeros([1] * num_axes, dtype=like.dtype, device=like.device)
    for spacing in (0.5, 0.05, 0.005, 0.0005):
        values = curve(best + offsets)
        index = values.argmax(0, keepdim=True)
        best = (best + offsets).expand_as(values).gather(0, index).squeeze(0)
        offsets = nodes_first(spacing * torch.linspace(-1.0, 1.0, 21, dtype=like.dtype, device=like.device), num_axes)
    return best
