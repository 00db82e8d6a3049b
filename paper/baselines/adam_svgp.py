"""SVGPs trained as the paper trains them, by Adam on the uncollapsed bound, and a loop that asks with them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import gpytorch
import torch
from botorch.optim.stopping import ExpMAStoppingCriterion
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import Likelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import VariationalELBO
from gpytorch.models import ApproximateGP
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy
from jaxtyping import Float
from torch import Tensor

from streamgp.acquisition import AbstractRule, Context, Search
from streamgp.acquisition.feasible_objective import FeasibleMean, FeasibleObjective
from streamgp.conditioning import SparseGP, from_gpytorch
from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import pivoted_cholesky
from streamgp.loops.cube_space import Box
from streamgp.models import OnlineGP
from streamgp.seeds import derived_seed

__all__ = ["AdamLoop", "PoissonOutcomes", "train_svgp"]

# BoTorch's rate, which the code takes as it passes none, and its most steps.
_RATE, MOST_STEPS = 0.05, 1000
# Salt of the seeds of recommendations.
_BEST = 1


@final
class PoissonOutcomes(gpytorch.likelihoods._OneDimensionalLikelihood):  # type: ignore[misc] # GPyTorch has no types
    """Counts of rate exp(f), for GPyTorch."""

    def forward(self, function_samples: Tensor, *args: Any, **kwargs: Any) -> torch.distributions.Poisson:
        return torch.distributions.Poisson(function_samples.clamp_max(10.0).exp())


class _SVGP(ApproximateGP):  # type: ignore[misc] # GPyTorch has no types
    def __init__(self, points: Tensor, kernel: Kernel) -> None:
        super().__init__(VariationalStrategy(self, points, CholeskyVariationalDistribution(len(points))))
        self.mean_module, self.covar_module = ConstantMean(), kernel

    def forward(self, x: Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


def train_svgp(
    X: Float[Tensor, "n d"],
    y: Float[Tensor, " n"],
    *,
    likelihood: Likelihood,
    kernel: Kernel,
    num_inducing: int,
    most_steps: int = MOST_STEPS,
) -> SparseGP:
    """Train a whitened SVGP from scratch by Adam: kernel, mean, points and belief.

    Points start as pivots of the kernel at the inputs. It stops where an exponential moving average of the loss changes
    by less than 1e-5 of itself.

    Args:
        X: Inputs.
        y: Outcomes.
        likelihood: Of GPyTorch; its noise, if it has one, is kept.
        kernel: Kernel with its priors, which is changed.
        num_inducing: Number of points, at most one for each input.
        most_steps: Steps after which it stops in any case.
    """
    with torch.no_grad():
        pivots = pivoted_cholesky(
            lambda A, B: kernel(A, B).to_dense(),
            X,
            min(num_inducing, len(X)),
            variance=kernel(X, diag=True),
        ).pivots
    model = _SVGP(X[pivots].clone(), kernel).double()
    likelihood = likelihood.double()
    for parameter in likelihood.parameters():
        parameter.requires_grad_(False)
    bound = VariationalELBO(likelihood, model, num_data=len(y))
    steps = torch.optim.Adam(model.parameters(), lr=_RATE)
    stop, is_done = ExpMAStoppingCriterion(maxiter=most_steps, n_window=10, eta=1.0, rel_tol=1e-5), False
    model.train()
    while not is_done:
        steps.zero_grad()
        loss = -bound(model(X), y)
        loss.backward()
        steps.step()
        is_done = bool(stop(loss.detach()))
    gp = from_gpytorch(model.eval())
    assert isinstance(gp, SparseGP)
    return gp


@final
@dataclass(frozen=True)
class _Recommended:
    X: Float[Tensor, " d"]


@final
class AdamLoop:
    """Ask and tell with models that are trained anew before each suggestion, in the units of the problem.

    Attributes:
        X: All points that were told.
        Y: Outcomes there, the objective first and then the constraint, which holds up to zero.
    """

    def __init__(
        self,
        bounds: Tensor,
        rule: AbstractRule,
        *,
        likelihoods: Sequence[AbstractLikelihood],
        make_kernel: Any,
        num_inducing: int,
        search: Search,
        seed: int,
        most_steps: int = MOST_STEPS,
    ) -> None:
        """Start without data.

        Args:
            bounds: Of the unit cube, `(2, d)`, in which models see points as they are.
            rule: What chooses.
            likelihoods: Of the objective and of the constraint: Poisson, or Gaussian with known noise.
            make_kernel: Function that returns a new kernel with its priors.
            num_inducing: Number of inducing points.
            search: Effort of a suggestion.
            seed: Of everything random.
            most_steps: Most steps of a training.
        """
        self.most_steps = most_steps
        self.space = Box.from_bounds(bounds)
        self.rule, self.likelihoods, self.make_kernel = rule, tuple(likelihoods), make_kernel
        self.num_inducing, self.search, self.seed, self.num_asks = num_inducing, search, seed, 0
        self.X, self.Y = bounds.new_zeros(0, bounds.shape[1]), bounds.new_zeros(0, len(self.likelihoods))

    def tell(self, X: Float[Tensor, "k d"], Y: Float[Tensor, "k o"]) -> None:
        """Add outcomes."""
        self.X, self.Y = torch.cat([self.X, X]), torch.cat([self.Y, Y])

    def ask(self, q: int) -> Float[Tensor, "q d"]:
        """Train models, and choose the next points."""
        self.num_asks += 1
        return self.rule.choose(self._context(), q, seed=derived_seed(self.seed, self.num_asks)).points

    def best(self, *, anywhere: bool) -> _Recommended:
        """Point whose expected feasible outcome is largest, by models trained anew, evaluated or not."""
        assert anywhere
        context = self._context()
        function = FeasibleMean(context.model, context.objective)
        seed = derived_seed(self.seed, self.num_asks, _BEST)
        found = self.space.maximize(function, 1, self.search, seed=seed, centers=context.centers())
        return _Recommended(found[0])

    def _context(self) -> Context:
        torch.manual_seed(derived_seed(self.seed, self.num_asks))
        gps = [
            train_svgp(
                self.X,
                self.Y[:, output],
                likelihood=_for_gpytorch(likelihood),
                kernel=self.make_kernel(),
                num_inducing=self.num_inducing,
                most_steps=self.most_steps,
            )
            for output, likelihood in enumerate(self.likelihoods)
        ]
        model, objective = OnlineGP(gps, list(self.likelihoods)), FeasibleObjective(limits=((None, 0.0),))
        posterior: Any = model.posterior(self.X)
        return Context(
            model=model,
            # One unit below the worst mean, so that to be feasible is worth something everywhere.
            objective=replace(objective, cost=1.0 - float(objective.score(posterior.mean).min())),
            space=self.space,
            baseline=self.X,
            observed=self.Y[:, 0],
            pending=self.X[:0],
            search=self.search,
            taken=self.X,
        )


def _for_gpytorch(likelihood: AbstractLikelihood) -> Likelihood:
    variance = likelihood.gaussian_noise_variance
    if variance is None:
        return PoissonOutcomes()
    mine = gpytorch.likelihoods.GaussianLikelihood()
    mine.noise = variance
    return mine
