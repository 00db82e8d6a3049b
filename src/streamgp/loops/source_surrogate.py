r"""The model of sources: cheaper and dearer ways to measure, each of which tells of the one that matters.

Sources are outputs of one coregionalized belief. With one function $g$ that all share and one $h_s$ that each but the
target has for itself, all with the same kernel,

$$
f_s(x) = \mu_s + a_s g(x) + b_s h_s(x), \qquad b_\text{target} = 0,
$$

so that $\operatorname{corr}(f_s, f_\text{target}) = a_s / \sqrt{a_s^2 + b_s^2}$ is learned: a source that lies has next
to none, and then tells nothing. Each source has noise of its own.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from botorch.models.model import Model
from gpytorch.kernels import MaternKernel
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.conditioning import MultiOutputGP, SparseGP
from streamgp.gp.coregionalization import CoregionalizationKernel, OutputMean
from streamgp.linalg import cholesky, solve_lower
from streamgp.loops.observations import Observations
from streamgp.loops.settings import LoopSettings
from streamgp.loops.surrogate import AbstractSurrogate
from streamgp.loops.units import OutcomeUnits
from streamgp.models.multi_task import OnlineMultiTaskGP
from streamgp.storage import register
from streamgp.threads import limit_threads
from streamgp.training.lbfgs import maximize

__all__ = ["SourceSurrogate", "fit_sources"]

# Iterations from the hyperparameters before, and from none.
_WARM_ITERATIONS, _COLD_ITERATIONS = 15, 100
# Means and deviations of normal priors, of outcomes standardized by source: of the logarithms of noise variances, of
# what sources share, of the logarithm of what each has for itself, and of constants. The first is wide, as simulations
# have no noise; larger shares are believed sooner.
_LOG_NOISE, _SHARED, _LOG_OWN, _MEAN = (-6.0, 2.5), (1.0, 0.5), (-1.0, 1.0), (0.0, 0.5)
_LEAST_LOG_NOISE, _REACH = math.log(1e-6), 12.0


@register
@final
@dataclass(frozen=True, eq=False)
class SourceSurrogate(AbstractSurrogate):
    """A belief about all sources.

    Attributes:
        gp: The belief, in the units of the target; outputs are sources.
        noise_variance: Of each source.
        units: Those of the target.
        correlation: Of each source with the target.
        learned: All that was learned, as one vector, from which the next fit starts.
        target: Number of the target.
        num_fitted: Number of rows.
    """

    gp: MultiOutputGP
    noise_variance: Float[Tensor, " s"]
    units: tuple[OutcomeUnits, ...]
    correlation: Float[Tensor, " s"]
    learned: Float[Tensor, " p"]
    target: int
    num_fitted: int
    knows_success = False

    def noise_share(self, output: int) -> float:
        """The noise variance of the target relative to the function's prior variance."""
        row = self.gp.row_gp.inducing_points[:1].clone()
        row[:, -1] = self.target
        return float(self.noise_variance[self.target] / self.gp.row_gp.process.prior.variance(row)[0])

    def model(self) -> "SourceModel":
        """The model for rules."""
        return self._model

    @cached_property
    def _model(self) -> "SourceModel":
        return SourceModel(OnlineMultiTaskGP(self.gp, self.noise_variance, output_task=self.target))


@final
class SourceModel(Model):
    """A model of sources whose inputs end in a column for each source, one of them 1."""

    def __init__(self, tasks: OnlineMultiTaskGP) -> None:
        """Keep the model of tasks.

        Args:
            tasks: The sources, by their number in the last column.
        """
        super().__init__()
        self.tasks = tasks

    @property
    def num_outputs(self) -> int:
        """One: the source that is looked at."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Leading axes of the model."""
        return self.tasks.batch_shape

    def rows(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n e"]:
        """Inputs with the number of the source instead of its columns."""
        return source_rows(X, self.tasks.num_tasks)

    def posterior(self, X: Tensor, *args: Any, **options: Any) -> Any:
        """Predict the source of each input."""
        return self.tasks.posterior(self.rows(X), *args, **options)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **options: Any) -> "SourceModel":
        """Condition exactly on outcomes `(n, 1)`."""
        return SourceModel(self.tasks.condition_on_observations(self.rows(X), Y, **options))


def source_rows(X: Float[Tensor, "*b n d"], num_sources: int) -> Float[Tensor, "*b n e"]:
    """Inputs with the number of the source in the last column."""
    number = X[..., -num_sources:].argmax(-1, keepdim=True).to(X)
    return torch.cat([X[..., :-num_sources], number], dim=-1)


def fit_sources(data: Observations, settings: LoopSettings, start: SourceSurrogate | None) -> SourceSurrogate:
    """Fit the belief to all data, exactly: by the marginal likelihood with weak priors.

    Args:
        data: All data, with one real outcome.
        settings: Of the loop, whose rule knows the sources.
        start: The last fit.
    """
    rule, objective, known = settings.rule.innermost, settings.objectives[0], data.rows(data.is_informative)
    assert isinstance(rule, KnowledgePerCost)
    names, target = rule.names, rule.target
    rows = source_rows(settings.space.inputs(known.points), len(names))
    source, y = rows[:, -1].long(), -known.y[:, 0] if objective.is_reversed else known.y[:, 0]
    offset, scale = _standards(y, source, len(names))
    problem = _SourceProblem(rows[:, :-1], source, (y - offset[source]) / scale[source], len(names), target)
    first = problem.start() if start is None else start.learned
    most = _COLD_ITERATIONS if start is None else _WARM_ITERATIONS
    with limit_threads(len(y) ** 3):
        ascent = maximize(
            problem.objective, first, bounds=problem.bounds(), max_iterations=most, tolerance=1e-4, scale=float(len(y))
        )
    lengthscale, mixing, noise, mean = problem.unpack(ascent.x.detach())
    # From the units of each source to those of the target.
    factor = scale / scale[target]
    kernel = CoregionalizationKernel(_kernel(lengthscale), num_outputs=len(names), num_latents=len(names)).double()
    kernel.initialize(mixing=mixing * factor.unsqueeze(-1))
    means = OutputMean(num_outputs=len(names)).double()
    means.initialize(constants=(offset + scale * mean - offset[target]) / scale[target])
    noise = noise * factor.square()
    inside = (y - offset[target]) / scale[target]
    gp = SparseGP.from_prior(kernel, torch.unique(rows, dim=0), mean=means)
    gp, _ = gp.absorb(rows, inside, noise_variance=noise[source], inducing="keep")
    sign = -1.0 if objective.is_reversed else 1.0
    units = OutcomeUnits(offset=sign * float(offset[target]), scale=sign * float(scale[target]))
    correlation = mixing[:, 0] / mixing.square().sum(-1).sqrt()
    return SourceSurrogate(MultiOutputGP(gp), noise, (units,), correlation, ascent.x.detach(), target, len(y))


def _standards(y: Float[Tensor, " n"], source: Int[Tensor, " n"], num_sources: int) -> tuple[Tensor, Tensor]:
    """Mean and deviation of each source; those of all where it has told too little."""
    offset, scale = y.mean().repeat(num_sources), y.std(correction=0).repeat(num_sources)
    for s in range(num_sources):
        own = y[source == s]
        if len(own) > 1 and float(own.std(correction=0)) > 0.0:
            offset[s], scale[s] = own.mean(), own.std(correction=0)
    return offset, torch.where(scale > 0.0, scale, 1.0)


def _kernel(lengthscale: Float[Tensor, " d"]) -> MaternKernel:
    kernel = MaternKernel(2.5, ard_num_dims=len(lengthscale)).double()
    kernel.lengthscale = lengthscale
    return kernel.requires_grad_(False)


@final
class _SourceProblem:
    """The marginal likelihood as a function of one vector: lengthscales, shares, own parts, noise and means."""

    def __init__(
        self,
        inputs: Float[Tensor, "n d"],
        source: Int[Tensor, " n"],
        targets: Float[Tensor, " n"],
        num_sources: int,
        target: int,
    ) -> None:
        self.inputs, self.source, self.targets = inputs, source, targets
        d, s = inputs.shape[-1], num_sources
        self.sizes = [d, s, s, s, s]
        self.is_other = torch.ones(s, dtype=torch.float64)
        self.is_other[target] = 0.0
        location = math.sqrt(2.0) + 0.5 * math.log(d)
        # Of the logarithm of a LogNormal value, whose density counts: that of BoTorch's lengthscales.
        self.prior = [(location - 3.0, math.sqrt(3.0)), _SHARED, _LOG_OWN, _LOG_NOISE, _MEAN]
        self.squares = (inputs.unsqueeze(1) - inputs).square()

    def start(self) -> Tensor:
        values = [math.log(0.29 * math.sqrt(self.sizes[0])), 1.0, _LOG_OWN[0], _LOG_NOISE[0], 0.0]
        return torch.cat([torch.full((k,), v, dtype=torch.float64) for k, v in zip(self.sizes, values, strict=True)])

    def bounds(self) -> tuple[Tensor, Tensor]:
        ends = [(-5.0, 6.0), (-_REACH, _REACH), (-6.0, 3.0), (_LEAST_LOG_NOISE, 1.0), (-_REACH, _REACH)]
        lower, upper = (
            torch.cat([torch.full((k,), e[side], dtype=torch.float64) for k, e in zip(self.sizes, ends, strict=True)])
            for side in (0, 1)
        )
        return lower, upper

    def unpack(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lengthscales, mixing, noise variances and means."""
        logs, shared, own, noise, mean = x.split(self.sizes)
        mixing = torch.cat([shared.unsqueeze(-1), self._own(own)], dim=-1)
        return logs.exp(), mixing, noise.exp(), mean

    def _own(self, logs: Tensor) -> Tensor:
        """Parts that each source but the target has for itself, a column for each of these."""
        return (logs.exp() * self.is_other).diag()[:, self.is_other > 0.0]

    def objective(self, x: Tensor) -> Tensor:
        """The log likelihood and the log density of the priors."""
        lengthscale, mixing, noise, mean = self.unpack(x)
        r = (5.0 * (self.squares / lengthscale.square()).sum(-1) + 1e-12).sqrt()
        between = (mixing @ mixing.mT)[self.source.unsqueeze(1), self.source]
        K = (1.0 + r + r.square() / 3.0) * torch.exp(-r) * between + torch.diag(noise[self.source])
        factor, _ = cholesky(K, scale=K.diagonal(), name="the covariance of outcomes")
        residual = (self.targets - mean[self.source]).unsqueeze(-1)
        fit = -0.5 * solve_lower(factor, residual).square().sum() - factor.diagonal().log().sum()
        parts = zip(x.split(self.sizes), self.prior, strict=True)
        return fit - 0.5 * sum((((v - m) / s).square().sum() for v, (m, s) in parts), start=x.new_zeros(()))
