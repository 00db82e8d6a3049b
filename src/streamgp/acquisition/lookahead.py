r"""Look-ahead to what an observation tells of a region: joint probabilities of its outcome and of each place.

For a candidate $x$ and targets $t$ with $c_t = k_q(x, t)$ and a probit, $y = 1$ means $\varepsilon < f(x)$, so that
nothing has to be moment-matched:

$$
P(y = 1, f_t < \theta) = \Phi(h) \Phi(k) + \delta, \quad h = \frac{m_x}{\sqrt{1 + v_x}}, \quad
k = \frac{\theta - m_t}{\sqrt{v_t}}, \quad \rho = \frac{-c_t}{\sqrt{(1 + v_x) v_t}},
$$

where $\delta = \Phi_2(h, k; \rho) - \Phi(h) \Phi(k)$ is an integral of the bivariate density over $0 \dots \rho$.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.quadrature import gauss_hermite

__all__ = ["Lookahead", "bivariate_excess"]

# Nodes of the integral over the correlation: 6e-9 up to |rho| = .95, 1e-6 to .99.
_NUM_RHO = 10
# The largest correlation: a candidate that is its own target, without noise.
_MOST_RHO = 1.0 - 1e-7
# Nodes over the candidate's latent value where there is no closed form, and outcomes of a likelihood with many.
_NUM_LATENT, _NUM_OUTCOMES = 32, 32
# Counts are looked at within this many standard deviations of their prediction.
_REACH = 5.0
_TINY = 1e-12


@final
class _BivariateExcess(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, k: Tensor, rho: Tensor) -> Tensor:
        angle = torch.asin(rho)
        nodes, weights = np.polynomial.legendre.leggauss(_NUM_RHO)
        total, product, squares = torch.zeros_like(angle), h * k, h.square() + k.square()
        for node, weight in zip((0.5 * nodes + 0.5).tolist(), (0.5 * weights).tolist(), strict=True):
            sine = torch.sin(angle * node)
            total += weight * torch.exp((product * sine - 0.5 * squares) / (1.0 - sine.square()))
        ctx.save_for_backward(h, k, rho)
        return total * angle / (2.0 * math.pi)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (grad,) = grads
        h, k, rho = ctx.saved_tensors
        rest = (1.0 - rho.square()).sqrt()
        density = torch.exp((h * k * rho - 0.5 * (h.square() + k.square())) / rest.square())

        def along(one: Tensor, other: Tensor) -> Tensor:
            normal = torch.exp(-0.5 * one.square()) / math.sqrt(2.0 * math.pi)
            return normal * (torch.special.ndtr((other - rho * one) / rest) - torch.special.ndtr(other))

        parts = (along(h, k), along(k, h), density / (2.0 * math.pi * rest))
        reduced = [(grad * part).sum_to_size(x.shape) for part, x in zip(parts, (h, k, rho), strict=True)]
        return reduced[0], reduced[1], reduced[2]


def bivariate_excess(
    h: Float[Tensor, "*#b"], k: Float[Tensor, "*#b"], rho: Float[Tensor, "*#b"]
) -> Float[Tensor, "*b"]:
    r"""Evaluate $\Phi_2(h, k; \rho) - \Phi(h) \Phi(k)$, differentiable once.

    Args:
        h: First argument.
        k: Second argument.
        rho: Correlation.
    """
    h, k, rho = torch.broadcast_tensors(h, k, rho.clamp(-_MOST_RHO, _MOST_RHO))
    apply: Any = _BivariateExcess.apply  # torch leaves it untyped
    excess: Tensor = apply(h, k, rho)
    return excess


@final
@dataclass(frozen=True, eq=False)
class Lookahead:
    r"""Candidates, targets and the joint belief about them.

    Attributes:
        likelihood: Of an observation of each candidate.
        mean: $m_x$.
        variance: $v_x$.
        cross: $c_t(x)$.
        target_mean: $m_t$.
        target_variance: $v_t$.
        weights: How much each target counts.
        edges: Latent values between which the region lies; one, above which it does, or two.
        pending_variance: What pending observations take from the variance of targets, and give to their means.
    """

    likelihood: AbstractLikelihood
    mean: Float[Tensor, " c"]
    variance: Float[Tensor, " c"]
    cross: Float[Tensor, "c t"]
    target_mean: Float[Tensor, " t"]
    target_variance: Float[Tensor, " t"]
    weights: Float[Tensor, " t"]
    edges: tuple[float, ...]
    pending_variance: Float[Tensor, " t"]

    @cached_property
    def standardized(self) -> Float[Tensor, "e t"]:
        r"""The edges, $k$, in standard deviations of each target."""
        deviation = self.target_variance.clamp_min(_TINY).sqrt()
        return torch.stack([(edge - self.target_mean) / deviation for edge in self.edges])

    @cached_property
    def outside(self) -> Float[Tensor, " t"]:
        """Probability that a target is below the region, or, of two edges, within it."""
        below = torch.special.ndtr(self.standardized)
        return below[0] if len(below) == 1 else below[1] - below[0]

    @cached_property
    def scenarios(self) -> tuple[Float[Tensor, "c o"], Float[Tensor, "o c t"]]:
        r"""Probabilities $p$ of outcomes, and $\delta = P(y, t) - p \, P(t)$, which sum to zero over outcomes."""
        if self.likelihood.outcome_kind == "class" and self.likelihood.link == "probit":
            return self._probit()
        noise = self.likelihood.gaussian_noise_variance
        return self._general() if noise is None else self._gaussian(noise)

    def variance_drop(self) -> Float[Tensor, " c"]:
        r"""Expected drop of $\sum_t w_t P_t (1 - P_t)$: $\sum_t w_t \sum_y \delta_y^2 / p_y$."""
        noise = self.likelihood.gaussian_noise_variance
        if noise is not None:
            return self._gaussian_drop(noise)
        probability, excess = self.scenarios
        drop = torch.zeros_like(self.mean)
        for p, delta in zip(probability.unbind(-1), excess, strict=True):
            drop = drop + (delta.square() @ self.weights) / p.clamp_min(_TINY)
        return drop

    def information(self) -> Float[Tensor, " c"]:
        r"""Mutual information of the outcome and each target, summed: $\sum_t w_t (H(P_t) - \sum_y p_y H(P_{t|y}))$."""
        probability, excess = self.scenarios
        before = _entropy(self.outside) @ self.weights
        after = torch.zeros_like(self.mean)
        for p, delta in zip(probability.unbind(-1), excess, strict=True):
            after = after + p * (_entropy(self.outside + delta / p.clamp_min(_TINY).unsqueeze(-1)) @ self.weights)
        return before - after

    def volume_change(self) -> Float[Tensor, " c"]:
        r"""Expected absolute change of the volume: $\sum_y \lvert \sum_t w_t \delta_{y, t} \rvert$."""
        _, excess = self.scenarios
        return (excess @ self.weights).abs().sum(0)

    def error_drop(self) -> Float[Tensor, " c"]:
        r"""Drop of $\sum_t w_t v_t$ by an observation with the expected curvature $\tau$: exact if Gaussian."""
        precision = self.likelihood.expected_curvature(self.mean, self.variance).clamp_min(0.0)
        return (self.cross.square() @ self.weights) * precision / (1.0 + precision * self.variance)

    def _probit(self) -> tuple[Tensor, Tensor]:
        scale = (1.0 + self.variance).sqrt()
        h = self.mean / scale
        one = self._over_edges(h, -self.cross / scale.unsqueeze(-1))
        success = torch.special.ndtr(h)
        return torch.stack([1.0 - success, success], -1), torch.stack([-one, one])

    def _over_edges(self, h: Float[Tensor, " c"], covariance: Float[Tensor, "c t"]) -> Float[Tensor, "c t"]:
        rho = covariance / self.target_variance.clamp_min(_TINY).sqrt()
        parts = [bivariate_excess(h.unsqueeze(-1), edge.unsqueeze(0), rho) for edge in self.standardized]
        return parts[0] if len(parts) == 1 else parts[1] - parts[0]

    def _gaussian_drop(self, noise: Tensor) -> Float[Tensor, " c"]:
        r"""Of two copies of $f_t$ that share what is observed, both are outside with $\Phi_2(k, k; r)$, exactly.

        What is pending is observed, too: $r = (u_t + c_t^2 / (v_x + \sigma^2)) / (v_t + u_t)$ with the variance $u_t$
        that it takes.
        """
        total = (self.target_variance + self.pending_variance).clamp_min(_TINY)
        k = torch.stack([(edge - self.target_mean) / total.sqrt() for edge in self.edges])
        before = self.pending_variance / total
        gained = self.cross.square() / (self.variance + noise.to(self.mean)).unsqueeze(-1) / total
        after = before + gained

        def agreement(r: Tensor) -> Tensor:
            shared = bivariate_excess(k[0], k[0], r)
            if len(k) == 1:
                return shared
            return shared - 2.0 * bivariate_excess(k[0], k[1], r) + bivariate_excess(k[1], k[1], r)

        return (agreement(after) - agreement(before).unsqueeze(0)) @ self.weights

    def _gaussian(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Outcomes at quadrature nodes, each of which moves all means and leaves the same variances."""
        nodes, weights = gauss_hermite(_NUM_OUTCOMES, self.mean.dtype, self.mean.device)
        step = self.cross / (self.variance + noise.to(self.mean)).sqrt().unsqueeze(-1)
        rest = (self.target_variance - step.square()).clamp_min(_TINY).sqrt()
        after = torch.stack([self._probability(self.target_mean + node * step, rest) for node in nodes])
        excess = weights[:, None, None] * (after - torch.tensordot(weights, after, dims=1))
        return weights.expand(len(self.mean), -1), excess

    def _probability(self, mean: Float[Tensor, "..."], deviation: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        below = [torch.special.ndtr((edge - mean) / deviation) for edge in self.edges]
        return below[0] if len(below) == 1 else below[1] - below[0]

    def _general(self) -> tuple[Tensor, Tensor]:
        """Outcomes of any likelihood, by quadrature over the candidate's value, given which targets are normal."""
        nodes, weights = gauss_hermite(_NUM_LATENT, self.mean.dtype, self.mean.device)
        spread = self.variance.clamp_min(_TINY).sqrt()
        y, measure = _outcomes(self.likelihood, self.mean.detach(), self.variance.detach())
        slope = self.cross / spread.unsqueeze(-1)
        rest = (self.target_variance - slope.square()).clamp_min(_TINY).sqrt()
        by_outcome = []
        for node in nodes:
            log_density = self.likelihood.with_axis().log_density((self.mean + spread * node).unsqueeze(-1), y)
            by_outcome.append(torch.softmax(log_density + measure.log(), dim=-1))
        chance = torch.stack(by_outcome) * weights[:, None, None]  # nodes, candidates, outcomes
        probability = chance.sum(0)
        joint = torch.zeros(y.shape[-1], *self.cross.shape, dtype=self.cross.dtype)
        total = torch.zeros_like(self.cross)
        for node, weight, share in zip(nodes, weights, chance, strict=True):
            outside = self._probability(self.target_mean + node * slope, rest)
            total = total + weight * outside
            joint = joint + share.mT.unsqueeze(-1) * outside
        return probability, joint - probability.mT.unsqueeze(-1) * total


def _outcomes(
    likelihood: AbstractLikelihood, mean: Float[Tensor, " c"], variance: Float[Tensor, " c"]
) -> tuple[Float[Tensor, "c o"], Float[Tensor, "c o"]]:
    """Outcomes that stand for all, and the measure of each: how many it stands for, or how wide its part is."""
    low, high = likelihood.support
    if likelihood.outcome_kind == "class":
        y = torch.arange(low, high + 1.0).to(mean).expand(len(mean), -1)
        return y, torch.ones_like(y)
    center = likelihood.predictive_mean(mean, variance)
    spread = likelihood.predictive_variance(mean, variance).clamp_min(_TINY).sqrt()
    if likelihood.outcome_kind == "real":
        nodes, weights = gauss_hermite(_NUM_OUTCOMES, mean.dtype, mean.device)
        # Weights over the normal density of the nodes, so that they integrate any density of about this spread.
        measure = weights * torch.exp(0.5 * nodes.square()) * math.sqrt(2.0 * math.pi)
        y = center.unsqueeze(-1) + spread.unsqueeze(-1) * nodes
        is_possible = (y > low) & (y < high)
        y = torch.where(is_possible, y, center.unsqueeze(-1))
        return y, torch.where(is_possible, spread.unsqueeze(-1) * measure, 0.0)
    trials = likelihood.row_values if likelihood.row_data == "total_count" else None
    most = torch.full_like(center, high) if trials is None else trials.to(center).expand_as(center)
    first = (center - _REACH * spread).floor().clamp_min(low)
    last = torch.minimum((center + _REACH * spread).ceil().clamp_min(1.0), most)
    steps = torch.linspace(0.0, 1.0, _NUM_OUTCOMES + 1).to(mean)
    low_root, high_root = first.sqrt().unsqueeze(-1), last.sqrt().unsqueeze(-1)
    y = (low_root + (high_root - low_root) * steps).square().round()  # roots of counts have equal deviations
    gaps = torch.cat([y.diff(dim=-1), torch.ones_like(y[:, :1])], dim=-1)
    return y, gaps  # a count that stands twice has measure zero the first time


def _entropy(p: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    p = p.clamp(_TINY, 1.0 - _TINY)
    return -p * p.log() - (1.0 - p) * torch.log1p(-p)
