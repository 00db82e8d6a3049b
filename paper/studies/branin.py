"""The knowledge gradient over a grid on Branin, for an exact GP and for a sparse one that is conditioned."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from botorch.utils.sampling import draw_sobol_normal_samples
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from gpytorch.priors import GammaPrior
from torch import Tensor

from paper.baselines.exact_gp import ExactGP, fit_exact
from paper.problems import Branin
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.conditioning import SparseGP
from streamgp.likelihoods import Gaussian
from streamgp.training import fit

__all__ = ["STUDY", "BraninSettings"]

# Standard deviation of the noise, in units of that of the observed values.
_NOISE = 0.2

# Means at candidates, given fantasies `(f, g)` of each of the grid's points: `(f, g, c)`.
_Lookahead = Callable[[Tensor], Tensor]


@final
@dataclass(frozen=True)
class BraninSettings:
    """Settings of the picture.

    Attributes:
        num_observations: Observations that are fitted.
        num_inducing: Number of inducing points.
        grid_size: Points along each axis of the grid.
        num_fantasies: Fantasies at each of its points.
        num_candidates: Points among which the best posterior mean is looked for.
    """

    num_observations: int
    num_inducing: int
    grid_size: int
    num_fantasies: int
    num_candidates: int


class _GridBelief(NamedTuple):
    """Moments on the grid, means at the candidates, and how to look ahead."""

    mean: Tensor
    variance: Tensor
    candidate_mean: Tensor
    look_ahead: _Lookahead


def run(problem: str, method: str, seed: int, settings: BraninSettings) -> UnitOutcome:
    """Fit, and look one step ahead from every point of the grid.

    All methods share observations, candidates and the normal numbers behind the fantasies.

    Returns:
        `first` and `second`, the axes of the grid in Branin's units, the map `gain` of the knowledge gradient, by
        rows of equal `second`, in standard deviations of the observed values, and the observed `inputs`.
    """
    generator = torch.Generator().manual_seed(seed)
    lower, upper = Branin().bounds
    X, candidates = (
        torch.rand(count, 2, generator=generator, dtype=torch.float64)
        for count in (settings.num_observations, settings.num_candidates)
    )
    values = Branin().evaluate(lower + (upper - lower) * X)
    y = (values - values.mean()) / values.std() + _NOISE * torch.randn(len(X), generator=generator).double()
    axis = torch.linspace(0.0, 1.0, settings.grid_size, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1).reshape(-1, 2)
    if method == "exact":
        mean = ConstantMean().to(X)
        belief = _exact_belief(fit_exact(X, y, _kernel(X), mean=mean, noise_variance=_NOISE**2), grid, candidates)
    else:
        gp = _fit_sparse(X, y, num_inducing=settings.num_inducing)
        belief = _sparse_belief(gp, grid, candidates, is_absorbed=method == "absorbed")
    gain = _knowledge_gradient(belief, num_fantasies=settings.num_fantasies, seed=seed)
    return {
        "first": rounded(lower[0] + (upper - lower)[0] * axis),
        "second": rounded(lower[1] + (upper - lower)[1] * axis),
        "gain": rounded(gain.reshape(len(axis), len(axis))),
        "inputs": rounded(lower + (upper - lower) * X),
    }


def _kernel(X: Tensor) -> Kernel:
    base = MaternKernel(2.5, ard_num_dims=2, lengthscale_prior=GammaPrior(3.0, 6.0))
    return ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15)).to(X)


def _fit_sparse(X: Tensor, y: Tensor, *, num_inducing: int) -> SparseGP:
    likelihood = Gaussian(_NOISE**2, is_learned=False)
    return fit(X, y, likelihood=likelihood, kernel=_kernel(X), mean=ConstantMean(), num_inducing=num_inducing).gp


def _knowledge_gradient(belief: _GridBelief, *, num_fantasies: int, seed: int) -> Tensor:
    """Expected rise of the best posterior mean among the candidates, by quasi-random normal numbers."""
    normal = draw_sobol_normal_samples(1, num_fantasies, dtype=torch.float64, seed=seed)
    fantasies = belief.mean + (belief.variance + _NOISE**2).sqrt() * normal
    return belief.look_ahead(fantasies).amax(-1).mean(0) - belief.candidate_mean.max()


def _exact_belief(gp: ExactGP, grid: Tensor, candidates: Tensor) -> _GridBelief:
    mean, covariance = gp.predict(torch.cat([grid, candidates]))
    g = len(grid)
    variance = covariance.diagonal()[:g]
    slopes = covariance[:g, g:] / (variance + _NOISE**2).unsqueeze(-1)

    def look_ahead(fantasies: Tensor) -> Tensor:
        return mean[g:] + (fantasies - mean[:g]).unsqueeze(-1) * slopes

    return _GridBelief(mean[:g], variance, mean[g:], look_ahead)


def _sparse_belief(gp: SparseGP, grid: Tensor, candidates: Tensor, *, is_absorbed: bool) -> _GridBelief:
    def condition(fantasies: Tensor) -> Tensor:
        conditioned = gp.condition(grid.unsqueeze(-2), fantasies.unsqueeze(-1), noise_variance=_NOISE**2)
        return conditioned.predict(candidates).mean

    def absorb(fantasies: Tensor) -> Tensor:
        means = [_absorbed_means(gp, x, y, candidates) for x, y in zip(grid, fantasies.mT, strict=True)]
        return torch.stack(means, 1)

    prediction = gp.predict(grid)
    return _GridBelief(
        prediction.mean, prediction.variance, gp.predict(candidates).mean, absorb if is_absorbed else condition
    )


def _absorbed_means(gp: SparseGP, x: Tensor, y: Tensor, candidates: Tensor) -> Tensor:
    """Means at the candidates `(f, c)` after absorbing each of the fantasies `(f,)` at a point.

    A mean is linear in the fantasy, and inducing points are chosen without it: two fantasies give all.
    """
    at_zero, at_one = (
        gp.absorb(x.unsqueeze(0), x.new_full((1,), end), noise_variance=_NOISE**2)[0].predict(candidates).mean
        for end in (0.0, 1.0)
    )
    return at_zero + y.unsqueeze(-1) * (at_one - at_zero)


STUDY = Study(
    name="branin",
    problems={"branin": "Branin on [-5, 10] × [0, 15] with noise"},
    methods={"exact": "exact GP", "conditioned": "SVGP, conditioned", "absorbed": "SVGP, stays sparse"},
    settings=BraninSettings,
    run=run,
)
