"""Gaussian sites of observations over shards, and the bound at them: sites stay with their observations."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.errors import ConvergenceError
from streamgp.linalg import apply, cholesky, solve_lower, solve_vector
from streamgp.training.collapsed import NaturalBelief
from streamgp.training.features import Features, Observed, observed_features
from streamgp.training.parameters import Hyperparameters
from streamgp.training.sharding.shards import AbstractShards, ParameterPoint

__all__ = ["SiteTotals", "find_sites_over_shards", "sites_objective"]

# As in `streamgp.sites.rules`: precision of sites that say nothing, relative to the prior; the most that precision
# times variance may gain in one step; what rounding may lower the objective by; and when a result is worthless.
_LEAST_PRECISION, _LARGEST_GAIN, _ROUNDING, _WORTHLESS = 1e-8, 1e3, 1e-12, 1.0


class SiteTotals(NamedTuple):
    r"""Sums over sites of precision $\tau$ and pull $\lambda$, with $\phi = L^{-1} K_{zx}$.

    Attributes:
        precision: $\phi \operatorname{diag}(\tau) \phi^\top$.
        pull: $\phi (\lambda - \tau \mu)$.
        slack: $\sum_i \tau_i s_i$, $s$ what the inducing points leave unexplained.
        num_data: $n$.
    """

    precision: Float[Tensor, "m m"]
    pull: Float[Tensor, " m"]
    slack: Tensor
    num_data: int

    def plus(self, other: "SiteTotals", share: float = 1.0) -> "SiteTotals":
        """The sum with a share of another."""
        first, second = self.precision + share * other.precision, self.pull + share * other.pull
        return SiteTotals(first, second, self.slack + share * other.slack, self.num_data + other.num_data)

    def toward(self, other: "SiteTotals", share: float) -> "SiteTotals":
        """The totals of sites that went a share of the way to others."""
        moved = [a + share * (b - a) for a, b in zip(self[:3], other[:3], strict=True)]
        return SiteTotals(moved[0], moved[1], moved[2], self.num_data)

    def belief(self) -> NaturalBelief:
        """The prior times the sites."""
        eye = torch.eye(len(self.pull), dtype=self.pull.dtype, device=self.pull.device)
        return NaturalBelief(eye + self.precision, self.pull)


class _KeptSites(NamedTuple):
    """Sites on a shard: where they are, and where the fixed-point map leads from there."""

    sites: Tensor
    goal: Tensor
    tried: Tensor
    tried_goal: Tensor


class _SiteReport(NamedTuple):
    """Report of a shard on the sites that were tried."""

    fit: Tensor
    residual: float
    gain: float
    goal: SiteTotals

    def plus(self, other: "_SiteReport") -> "_SiteReport":
        return _SiteReport(
            self.fit + other.fit,
            max(self.residual, other.residual),
            max(self.gain, other.gain),
            self.goal.plus(other.goal),
        )


def _added(parts: list[Any]) -> Any:
    """The sum of what blocks of rows tell, by their `plus`."""
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def find_sites_over_shards(
    shards: AbstractShards, point: ParameterPoint, *, tolerance: float, max_iterations: int = 100
) -> tuple[SiteTotals, float]:
    """Find the sites that maximize the bound, by the iteration of `streamgp.sites`, one pass for each step.

    Returns:
        Their totals, and the bound.
    """
    # Those of an earlier search would save few steps, and would have to be remembered for as long as there is a fit.
    (totals,) = shards.run(_Begin(point), is_first=True, plus=SiteTotals.plus)
    value, report = _look(shards, point, totals, _Move(None, 0.0))
    length, move = 1.0, _Move(True, 0.0)
    for _ in range(max_iterations):
        if report.residual <= tolerance:
            break
        share = min(length, _LARGEST_GAIN / max(report.gain, _LARGEST_GAIN))
        tried = totals.toward(report.goal, share)
        new_value, new = _look(shards, point, tried, _Move(move.is_taken, share))
        is_better = new_value >= value - _ROUNDING * max(abs(value), 1.0)
        is_better = is_better or (new.residual < report.residual < 1.0)
        if is_better:
            totals, value, report = tried, new_value, new
        length = min(2.0 * length, 1.0) if is_better else 0.5 * length
        move = _Move(is_better, 0.0)
    shards.run(_Settle(move.is_taken))
    if report.residual > _WORTHLESS:
        raise ConvergenceError(
            f"The sites of the observations did not converge in {max_iterations} steps: their residual is "
            f"{report.residual:.1e} posterior standard deviations, and {tolerance:.1e} was asked for. Check the scale "
            "of kernel and targets, or use more inducing points."
        )
    return totals, value


class _Move(NamedTuple):
    """Decision on the sites tried last, and the share of the way to the goal that is tried next."""

    is_taken: bool | None
    share: float


def _look(shards: AbstractShards, point: ParameterPoint, totals: SiteTotals, move: _Move) -> tuple[float, _SiteReport]:
    """The bound at sites of given totals, after shards have moved theirs there."""
    m, R, divergence = totals.belief().moments()
    (report,) = shards.run(_Improve(point, m, R, move), plus=_SiteReport.plus)
    value = float(report.fit - divergence)
    return (value if torch.isfinite(report.fit) else -torch.inf), report


def _site_blocks(point: ParameterPoint, index: int, shard: Any) -> Iterator[tuple[slice, Observed]]:
    """The rows of a shard in blocks, each with its point among the sites that the shard keeps."""
    start = 0
    for data in point.blocks_of(index, shard):
        yield slice(start, start + data.num_data), data
        start += data.num_data


@final
@dataclass(frozen=True, eq=False)
class _Begin:
    """Sites that say nothing."""

    point: ParameterPoint

    def __call__(self, index: int, shard: Any, kept: Any) -> tuple[Any, SiteTotals]:
        parts, totals = [], []
        with torch.no_grad():
            for _, data in _site_blocks(self.point, index, shard):
                features = observed_features(self.point.setting, data)
                variance = features.phi.square().sum(-2)
                least = _LEAST_PRECISION / variance.clamp_min(torch.finfo(variance.dtype).eps)
                parts.append(torch.stack([least * features.mean, least]))
                totals.append(_totals(features, parts[-1]))
        sites = torch.cat(parts, -1)
        return _KeptSites(sites, sites, sites, sites), _added(totals)


@final
@dataclass(frozen=True, eq=False)
class _Improve:
    """Move the sites, and find where the fixed-point map leads from there."""

    point: ParameterPoint
    mean: Tensor
    root: Tensor
    move: _Move

    def __call__(self, index: int, shard: Any, kept: _KeptSites) -> tuple[_KeptSites, _SiteReport]:
        kept = _settled(kept, self.move.is_taken)
        sites, goal = kept.sites, kept.goal
        tried = sites if self.move.is_taken is None else sites + self.move.share * (goal - sites)
        likelihood, reports, goals = self.point.setting.likelihood, [], []
        with torch.no_grad():
            for rows, data in _site_blocks(self.point, index, shard):
                features = observed_features(self.point.setting, data)
                phi, y, tau = features.phi, data.targets, tried[1, rows]
                shift, variance = phi.mT @ self.mean, (self.root.mT @ phi).square().sum(-2)
                latent = features.mean + shift, variance + features.slack
                first, second = likelihood.expected_derivatives(*latent, y)
                prior_variance = phi.square().sum(-2).clamp_min(torch.finfo(phi.dtype).eps)
                precision = torch.maximum(-second, _LEAST_PRECISION / prior_variance)
                # In the value itself, not in its shift from the prior mean.
                goals.append(torch.stack([first + precision * latent[0], precision]))
                force = tried[0, rows] - tau * latent[0]
                residual = torch.maximum((first - force).abs() * variance.sqrt(), (precision - tau).abs() * variance)
                reports.append(
                    _SiteReport(
                        likelihood.expected_log_density(*latent, y).sum(),
                        float(residual.nan_to_num(nan=torch.inf).max()),
                        float((precision * variance).max()),
                        _totals(features, goals[-1]),
                    )
                )
        return _KeptSites(sites, goal, tried, torch.cat(goals, -1)), _added(reports)


@final
@dataclass(frozen=True, eq=False)
class _Settle:
    """Keep the sites that were taken last."""

    is_taken: bool | None

    def __call__(self, index: int, shard: Any, kept: _KeptSites) -> tuple[_KeptSites, None]:
        return _settled(kept, self.is_taken), None


def _settled(kept: _KeptSites, is_taken: bool | None) -> _KeptSites:
    return _KeptSites(kept.tried, kept.tried_goal, kept.tried, kept.tried_goal) if is_taken else kept


def _totals(features: Features, sites: Tensor) -> SiteTotals:
    phi, (pull, tau) = features.phi, sites
    return SiteTotals(
        (phi * tau) @ phi.mT, apply(phi, pull - tau * features.mean), (tau * features.slack).sum(), phi.shape[-1]
    )


def _site_totals(shards: AbstractShards, point: ParameterPoint) -> SiteTotals:
    """The sums over the sites that shards keep, at given hyperparameters."""
    (totals,) = shards.ask(_SumSites(point), plus=SiteTotals.plus)
    return totals


@final
@dataclass(frozen=True, eq=False)
class _SumSites:
    point: ParameterPoint

    def __call__(self, index: int, shard: Any, kept: _KeptSites) -> SiteTotals:
        with torch.no_grad():
            parts = [
                _totals(observed_features(self.point.setting, data), kept.sites[:, rows])
                for rows, data in _site_blocks(self.point, index, shard)
            ]
        return _added(parts)


def sites_objective(shards: AbstractShards, start: ParameterPoint) -> Any:
    """The bound at fixed sites as a differentiable function of the coordinates of a point."""
    summed: Any = _SummedSitesBound
    return lambda x: summed.apply(x, shards, start)


class _SummedSitesBound(torch.autograd.Function):
    r"""Three passes: sums over sites, the expected log density at the belief they lead to, and the gradient.

    With $A = I + \phi \operatorname{diag}(\tau) \phi^\top$, $b = \phi (\lambda - \tau \mu)$ and $c = A^{-1} b$ the
    bound is $\sum_i \ell_i(\mu_i + \phi_i^\top c, s_i + \phi_i^\top A^{-1} \phi_i) - \frac12 (c^\top c +
    \operatorname{tr} A^{-1} - m + \log \lvert A \rvert)$. The second pass brings the derivatives of the sum in $c$ and
    $A^{-1}$, with which those in $A$ and $b$ follow here.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, shards: AbstractShards, start: ParameterPoint) -> Tensor:
        point = replace(start, x=x.detach())
        totals = _site_totals(shards, point)
        m, R, divergence = totals.belief().moments()
        (look,) = shards.ask(_Slope(point, m, R), plus=_Slopes.plus)
        ctx.shards, ctx.point, ctx.totals, ctx.look, ctx.moments = shards, point, totals, look, (m, R)
        return look.fit - divergence

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        belief, look = ctx.totals.belief(), ctx.look
        A, b = belief.precision.clone().requires_grad_(True), belief.pull.clone().requires_grad_(True)
        with torch.enable_grad():
            L, _ = cholesky(A, name="the precision of the belief")
            c = solve_vector(L, solve_vector(L, b), is_transposed=True)
            R = solve_lower(L, torch.eye(len(b), dtype=b.dtype, device=b.device)).mT
            log_determinant = 2.0 * L.diagonal().log().sum()
            divergence = 0.5 * (c @ c + R.square().sum() - len(b) + log_determinant)
            value = look.by_mean @ c + (look.by_covariance * (R @ R.mT)).sum() - divergence
            by_A, by_b = torch.autograd.grad(value, (A, b))
        mean, root = ctx.moments
        question = _DifferentiateSites(ctx.point, mean, root, 0.5 * (by_A + by_A.mT), by_b)
        (gradient,) = ctx.shards.ask(question, plus=torch.add)
        return g * gradient, None, None


class _Slopes(NamedTuple):
    """The sum of expected log densities, and its derivatives in the belief's mean and covariance."""

    fit: Tensor
    by_mean: Tensor
    by_covariance: Tensor

    def plus(self, other: "_Slopes") -> "_Slopes":
        return _Slopes(*(a + b for a, b in zip(self, other, strict=True)))


@final
@dataclass(frozen=True, eq=False)
class _Slope:
    point: ParameterPoint
    mean: Tensor
    root: Tensor

    def __call__(self, index: int, shard: Any, kept: _KeptSites) -> _Slopes:
        likelihood, parts = self.point.setting.likelihood, []
        for _, data in _site_blocks(self.point, index, shard):
            with torch.no_grad():
                features = observed_features(self.point.setting, data)
            phi = features.phi
            mean = (features.mean + phi.mT @ self.mean).requires_grad_(True)
            variance = (features.slack + (self.root.mT @ phi).square().sum(-2)).requires_grad_(True)
            with torch.enable_grad():
                fit = likelihood.expected_log_density(mean, variance, data.targets).sum()
                by_mean, by_variance = torch.autograd.grad(fit, (mean, variance))
            parts.append(_Slopes(fit.detach(), apply(phi, by_mean), (phi * by_variance) @ phi.mT))
        return _added(parts)


@final
@dataclass(frozen=True, eq=False)
class _DifferentiateSites:
    point: ParameterPoint
    mean: Tensor
    root: Tensor
    by_precision: Tensor
    by_pull: Tensor

    def __call__(self, index: int, shard: Any, kept: _KeptSites) -> Tensor:
        gradient = torch.zeros_like(self.point.x)
        for rows, data in _site_blocks(self.point, index, shard):

            def product(s: Hyperparameters, data: Observed = data, rows: slice = rows) -> Tensor:
                features = observed_features(s, data)
                phi, (pull, tau) = features.phi, kept.sites[:, rows]
                mean = features.mean + phi.mT @ self.mean
                variance = features.slack + (self.root.mT @ phi).square().sum(-2)
                fit = s.likelihood.expected_log_density(mean, variance, data.targets).sum()
                by_precision = (tau * ((self.by_precision @ phi) * phi).sum(-2)).sum()
                return fit + by_precision + self.by_pull @ apply(phi, pull - tau * features.mean)

            leaf = self.point.x.clone().requires_grad_(True)
            with torch.enable_grad():
                (part,) = torch.autograd.grad(self.point.space.evaluate(leaf, product), leaf)
            gradient += part
        return gradient
