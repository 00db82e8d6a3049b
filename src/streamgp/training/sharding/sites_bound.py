"""The bound of observations of any likelihood over shards, at sites that stay where their observations are."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from streamgp.linalg import apply, cholesky, solve_lower, solve_vector
from streamgp.training.features import Observed, observed_features
from streamgp.training.parameters import Hyperparameters
from streamgp.training.sharding.place import Layout, Place
from streamgp.training.sharding.shards import AbstractShards
from streamgp.training.sharding.sites import KeptSites, added, site_blocks, site_totals

__all__ = ["sites_objective"]


def sites_objective(shards: AbstractShards, layout: Layout) -> Any:
    """The bound at fixed sites as a differentiable function of the coordinates that a layout has."""
    summed: Any = _SummedSitesBound
    return lambda x: summed.apply(x, shards, layout)


class _SummedSitesBound(torch.autograd.Function):
    r"""Three passes: sums over sites, the expected log density at the belief they lead to, and the gradient.

    With $A = I + \phi \operatorname{diag}(\tau) \phi^\top$, $b = \phi (\lambda - \tau \mu)$ and $c = A^{-1} b$ the
    bound is $\sum_i \ell_i(\mu_i + \phi_i^\top c, s_i + \phi_i^\top A^{-1} \phi_i) - \frac12 (c^\top c +
    \operatorname{tr} A^{-1} - m + \log \lvert A \rvert)$. The second pass brings the derivatives of the sum in $c$ and
    $A^{-1}$, with which those in $A$ and $b$ follow here.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, shards: AbstractShards, layout: Layout) -> Tensor:
        place = Place(layout, x.detach())
        totals = site_totals(shards, place)
        m, R, divergence = totals.belief().moments()
        (look,) = shards.ask(_Slope(place, m, R), plus=_Slopes.plus)
        ctx.shards, ctx.place, ctx.totals, ctx.look, ctx.moments = shards, place, totals, look, (m, R)
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
        question = _DifferentiateSites(ctx.place, mean, root, 0.5 * (by_A + by_A.mT), by_b)
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
    place: Place
    mean: Tensor
    root: Tensor

    def __call__(self, index: int, shard: Any, kept: KeptSites) -> _Slopes:
        likelihood, parts = self.place.setting.likelihood, []
        for _, data in site_blocks(self.place, index, shard):
            with torch.no_grad():
                features = observed_features(self.place.setting, data)
            phi = features.phi
            mean = (features.mean + phi.mT @ self.mean).requires_grad_(True)
            variance = (features.slack + (self.root.mT @ phi).square().sum(-2)).requires_grad_(True)
            with torch.enable_grad():
                fit = likelihood.expected_log_density(mean, variance, data.targets).sum()
                by_mean, by_variance = torch.autograd.grad(fit, (mean, variance))
            parts.append(_Slopes(fit.detach(), apply(phi, by_mean), (phi * by_variance) @ phi.mT))
        return added(parts)


@final
@dataclass(frozen=True, eq=False)
class _DifferentiateSites:
    place: Place
    mean: Tensor
    root: Tensor
    by_precision: Tensor
    by_pull: Tensor

    def __call__(self, index: int, shard: Any, kept: KeptSites) -> Tensor:
        gradient = torch.zeros_like(self.place.x)
        for rows, data in site_blocks(self.place, index, shard):

            def product(s: Hyperparameters, data: Observed = data, rows: slice = rows) -> Tensor:
                features = observed_features(s, data)
                phi, (pull, tau) = features.phi, kept.sites[:, rows]
                mean = features.mean + phi.mT @ self.mean
                variance = features.slack + (self.root.mT @ phi).square().sum(-2)
                fit = s.likelihood.expected_log_density(mean, variance, data.targets).sum()
                by_precision = (tau * ((self.by_precision @ phi) * phi).sum(-2)).sum()
                return fit + by_precision + self.by_pull @ apply(phi, pull - tau * features.mean)

            leaf = self.place.x.clone().requires_grad_(True)
            with torch.enable_grad():
                (part,) = torch.autograd.grad(self.place.space.evaluate(leaf, product), leaf)
            gradient += part
        return gradient
