"""A sparse GP is conditioned on new data, beside an exact GP that sees the same."""

import math
from dataclasses import dataclass
from typing import final

import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from streamgp.cli.demo.scene import AbstractScene, Track
from streamgp.cli.pictures import COLORS, draw_belief, style_axes
from streamgp.conditioning import SparseGP
from streamgp.likelihoods import Gaussian
from streamgp.training import fit

__all__ = ["Belief", "ConditioningScene", "Problem", "distance", "make_problem", "play_conditioning"]

_NOISE_VARIANCE = 0.01
_NUM_INDUCING = 25


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """First data, new data, and the grid on which models are compared."""

    inputs: Float[Tensor, "n 1"]
    targets: Float[Tensor, " n"]
    new_inputs: Float[Tensor, "k 1"]
    new_targets: Float[Tensor, " k"]
    grid: Float[Tensor, "g 1"]
    truth: Float[Tensor, " g"]


@final
@dataclass(frozen=True, eq=False)
class Belief:
    """Mean and variance of a model on the grid."""

    mean: Float[Tensor, " g"]
    variance: Float[Tensor, " g"]


@final
@dataclass(frozen=True, eq=False)
class ConditioningScene(AbstractScene):
    """Beliefs of the sparse and of the exact GP, before and after the new data."""

    problem: Problem
    sparse: tuple[Belief, Belief]
    exact: tuple[Belief, Belief]
    inducing_points: Float[Tensor, " m"]

    def sentences(self) -> str:
        before, after = (distance(ours, exact) for ours, exact in zip(self.sparse, self.exact, strict=True))
        p, n, k = len(self.inducing_points), len(self.problem.targets), len(self.problem.new_targets)
        return (
            f"A sparse GP with {p} inducing points learned {n} observations, and was then conditioned on {k} new ones "
            f"without being fitted again. An exact GP with the same kernel, which keeps all {n + k}, is at most "
            f"{before:.3f} of its standard deviations away before and {after:.3f} after."
        )

    def draw(self, left: Axes, right: Axes) -> None:
        for axes, sparse, exact in zip((left, right), self.sparse, self.exact, strict=True):
            x = self.problem.grid.squeeze(-1)
            draw_belief(axes, x, sparse.mean, sparse.variance)
            axes.plot(x, exact.mean, ":", color=COLORS["first data"], linewidth=1.6, label="exact GP")
            axes.plot(x, self.problem.truth, "--", color=COLORS["truth"], linewidth=1.0, label="truth")
            self._draw_data(axes, "first data", self.problem.inputs, self.problem.targets)
            height = torch.full_like(self.inducing_points, -1.93)
            axes.plot(self.inducing_points, height, "|", color=COLORS["inducing"], markersize=8, label="inducing")
            axes.set(xlim=(-4, 7), ylim=(-2.05, 2.75), xlabel="x")
            style_axes(axes)
        self._draw_data(right, "new data", self.problem.new_inputs, self.problem.new_targets)
        left.set_title("Before the new data")
        right.set_title("After it")
        handles, labels = right.get_legend_handles_labels()
        left.legend(handles, labels, loc="upper center", ncols=4, fontsize=8, framealpha=0.9)

    @staticmethod
    def _draw_data(axes: Axes, label: str, X: Float[Tensor, "n 1"], y: Float[Tensor, " n"]) -> None:
        axes.plot(X, y, "x", color=COLORS[label], markersize=4.5, label=label)


def make_problem(seed: int) -> Problem:
    r"""Observe $f(x) = \sin(2|x| + x^2/2)$ with noise: 100 inputs around zero, then 25 in [2.5, 5.5]."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(100, 1, generator=generator, dtype=torch.float64)
    X_new = 2.5 + 3.0 * torch.rand(25, 1, generator=generator, dtype=torch.float64)
    noise = math.sqrt(_NOISE_VARIANCE) * torch.randn(125, generator=generator, dtype=torch.float64)
    grid = torch.linspace(-4.0, 7.0, 400, dtype=torch.float64).unsqueeze(-1)
    y, y_new = _function(X) + noise[:100], _function(X_new) + noise[100:]
    return Problem(X, y, new_inputs=X_new, new_targets=y_new, grid=grid, truth=_function(grid))


def play_conditioning(*, seed: int, track: Track) -> ConditioningScene:
    """Fit a sparse GP, and condition it and an exact one.

    Args:
        seed: Seed of the data.
        track: Shows the progress.
    """
    problem = make_problem(seed)
    for _ in track([None]):
        likelihood = Gaussian(_NOISE_VARIANCE, is_learned=False)
        gp = fit(
            problem.inputs,
            problem.targets,
            likelihood=likelihood,
            kernel=ScaleKernel(RBFKernel()),
            num_inducing=_NUM_INDUCING,
        ).gp
        conditioned = gp.condition(problem.new_inputs, problem.new_targets, noise_variance=_NOISE_VARIANCE)
        before, after = (each.predict(problem.grid) for each in (gp, conditioned))
    X = torch.cat([problem.inputs, problem.new_inputs])
    y = torch.cat([problem.targets, problem.new_targets])
    return ConditioningScene(
        problem,
        sparse=(Belief(before.mean, before.variance), Belief(after.mean, after.variance)),
        exact=(_exact(gp, problem.inputs, problem.targets, problem.grid), _exact(gp, X, y, problem.grid)),
        inducing_points=gp.inducing_points.squeeze(-1),
    )


def distance(belief: Belief, reference: Belief) -> float:
    """The largest distance between the means, in standard deviations of the reference."""
    return float(((belief.mean - reference.mean).abs() / reference.variance.sqrt()).max())


def _exact(gp: SparseGP, X: Float[Tensor, "n 1"], y: Float[Tensor, " n"], grid: Float[Tensor, "g 1"]) -> Belief:
    """Predict with the exact GP that has the prior of a sparse one."""
    prior = gp.process.prior
    L = torch.linalg.cholesky(prior.covariance(X, X) + _NOISE_VARIANCE * torch.eye(len(y), dtype=y.dtype))
    half = torch.linalg.solve_triangular(L, prior.covariance(X, grid), upper=False)
    whitened = torch.linalg.solve_triangular(L, (y - prior.mean(X)).unsqueeze(-1), upper=False)
    return Belief(prior.mean(grid) + (half.mT @ whitened).squeeze(-1), prior.variance(grid) - half.square().sum(0))


def _function(X: Float[Tensor, "n 1"]) -> Float[Tensor, " n"]:
    x = X.squeeze(-1)
    return torch.sin(2 * x.abs() + x.square() / 2)
