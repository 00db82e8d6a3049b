"""Sums and integrals over outcomes: moments, quantiles and samples of any likelihood, from its log density alone."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods.quadrature import gauss_legendre, nodes_first

__all__ = ["outcome_quantiles", "outcome_variance"]

# Maps outcomes with new axes in front to their log densities or log probabilities; in double precision.
LogDensity = Callable[[Float[Tensor, "..."]], Float[Tensor, "..."]]

# The coordinate in which outcomes are searched for; exp(40) and sinh(40) are beyond what is observed.
_RANGE = 40.0
# Panels halve toward the peak until they are this fine.
_NUM_HALVINGS = 28
_NUM_NODES = 16
# Counts are summed until what is left is below this, or until so many.
_LEAST_REST, _MOST_COUNTS = 1e-12, 2**17
# Each halves the interval that holds a quantile.
_NUM_BISECTIONS = 40


class _Panels(NamedTuple):
    """Panels over a coordinate $u$ of outcomes, with the probability of each."""

    edges: Float[Tensor, "e ..."]
    mass: Float[Tensor, "k ..."]


def outcome_variance(log_density: LogDensity, *, kind: str, support: tuple[float, float], like: Tensor) -> Tensor:
    """Evaluate the variance of outcomes.

    Args:
        log_density: Of outcomes.
        kind: `"real"`, `"count"` or `"class"`.
        support: Ends of the support.
        like: A tensor with the axes, the dtype and the device of the result.
    """
    if kind == "real":
        panels = _find_panels(log_density, support, like)
        u, step = _panel_nodes(panels.edges)
        y, weight = _outcome(u, support), step * _density(log_density, u, support)
        y, weight = y.flatten(0, 1), weight.flatten(0, 1)
    else:
        y, weight = _counts(log_density, support, like)
    weight = weight / weight.sum(0)
    mean = (weight * y).sum(0)
    return (weight * (y - mean).square()).sum(0).to(like)


def outcome_quantiles(
    log_density: LogDensity, wanted: Float[Tensor, "p ..."], *, kind: str, support: tuple[float, float], like: Tensor
) -> Float[Tensor, "p ..."]:
    """Find the smallest outcomes whose cumulative probabilities reach the wanted ones.

    Args:
        log_density: Of outcomes.
        wanted: Probabilities; float64.
        kind: `"real"`, `"count"` or `"class"`.
        support: Ends of the support.
        like: A tensor with the axes, the dtype and the device of the result.
    """
    shape = (wanted.shape[0], *like.shape)
    if kind != "real":
        y, weight = _counts(log_density, support, like)
        cumulative = weight.cumsum(0)
        short = (cumulative.unsqueeze(1) < (wanted - _LEAST_REST).unsqueeze(0)).sum(0)
        return (y.flatten()[0] + short.clamp(max=len(cumulative) - 1)).expand(shape).to(like)
    panels = _find_panels(log_density, support, like)
    cumulative = panels.mass.cumsum(0)
    wanted = (wanted * cumulative[-1]).expand(shape)
    index = (cumulative.unsqueeze(1) < wanted.unsqueeze(0)).sum(0).clamp(max=len(panels.mass) - 1)
    before = torch.cat([torch.zeros_like(cumulative[:1]), cumulative])
    start, rest = panels.edges.gather(0, index), wanted - before.gather(0, index)
    low, high = start, panels.edges.gather(0, index + 1)
    for _ in range(_NUM_BISECTIONS):
        middle = 0.5 * (low + high)
        is_short = _mass_between(log_density, start, middle, support) < rest
        low, high = torch.where(is_short, middle, low), torch.where(is_short, high, middle)
    return _outcome(0.5 * (low + high), support).to(like)


def _find_panels(log_density: LogDensity, support: tuple[float, float], like: Tensor) -> _Panels:
    """Find the peak, and lay panels around it that halve toward it."""
    peak = torch.zeros(like.shape, dtype=torch.float64, device=like.device)
    grid = torch.linspace(-1.0, 1.0, 161).to(peak)
    offsets = nodes_first(_RANGE * grid, like.dim())
    for level in range(9):
        values = _log_density(log_density, peak + offsets, support).expand(len(offsets), *like.shape)
        peak = (peak + offsets).expand_as(values).gather(0, values.argmax(0, keepdim=True)).squeeze(0)
        offsets = nodes_first(0.5 * 0.1**level * grid[::8], like.dim())
    halves = _RANGE * torch.exp2(-torch.arange(_NUM_HALVINGS).to(peak))
    grid = torch.cat([-halves, torch.zeros_like(halves[:1]), halves.flip(0)])
    edges = peak + nodes_first(grid, like.dim())
    u, step = _panel_nodes(edges)
    return _Panels(edges, (step * _density(log_density, u, support)).sum(1))


def _panel_nodes(edges: Float[Tensor, "e ..."]) -> tuple[Float[Tensor, "k g ..."], Float[Tensor, "k g ..."]]:
    """Gauss–Legendre nodes of all panels, and their weights."""
    nodes, weights = (
        nodes_first(each, edges.dim() - 1) for each in gauss_legendre(_NUM_NODES, edges.dtype, edges.device)
    )
    length = edges.diff(dim=0).unsqueeze(1)
    return edges[:-1].unsqueeze(1) + length * nodes, length * weights


def _mass_between(log_density: LogDensity, low: Tensor, high: Tensor, support: tuple[float, float]) -> Tensor:
    nodes, weights = (nodes_first(each, low.dim()) for each in gauss_legendre(_NUM_NODES, low.dtype, low.device))
    return ((high - low) * weights * _density(log_density, low + (high - low) * nodes, support)).sum(0)


def _outcome(u: Tensor, support: tuple[float, float]) -> Tensor:
    """Outcomes inside an open interval, as a function of a coordinate that may be any number."""
    low, high = support
    if low == -float("inf") and high == float("inf"):
        return torch.sinh(u)
    if high == float("inf"):
        return (low + u.exp()).clamp(min=low + torch.finfo(u.dtype).tiny)
    margin = (high - low) * torch.finfo(u.dtype).eps
    return (low + (high - low) * torch.sigmoid(u)).clamp(low + margin, high - margin)


def _log_slope(u: Tensor, support: tuple[float, float]) -> Tensor:
    low, high = support
    if low == -float("inf") and high == float("inf"):
        return torch.logaddexp(u, -u)
    if high == float("inf"):
        return u
    return torch.nn.functional.logsigmoid(u) + torch.nn.functional.logsigmoid(-u)


def _log_density(log_density: LogDensity, u: Tensor, support: tuple[float, float]) -> Tensor:
    """The log density in the coordinate, up to a constant."""
    return (log_density(_outcome(u, support)) + _log_slope(u, support)).nan_to_num(
        nan=-torch.inf, posinf=-torch.inf, neginf=-torch.inf
    )


def _density(log_density: LogDensity, u: Tensor, support: tuple[float, float]) -> Tensor:
    low, high = support
    factor = 0.5 if low == -float("inf") else (high - low if high < float("inf") else 1.0)
    return factor * _log_density(log_density, u, support).exp()


def _counts(log_density: LogDensity, support: tuple[float, float], like: Tensor) -> tuple[Tensor, Tensor]:
    """All whole numbers that matter, on a first axis, and their probabilities."""
    low, high = support
    most = int(high - low) if high < float("inf") else 63
    while True:
        y = nodes_first(low + torch.arange(most + 1, dtype=torch.float64, device=like.device), like.dim())
        weight = log_density(y).exp().expand(most + 1, *like.shape)
        if high < float("inf") or most > _MOST_COUNTS or bool((1.0 - weight.sum(0) < _LEAST_REST).all()):
            return y, weight
        most = 4 * most + 3
