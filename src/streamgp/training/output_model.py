"""The linear model of coregionalization while it is trained: the bound as a function of one vector of numbers."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import final

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.conditioning.multi_output.mixed_likelihood import MixedLikelihood
from streamgp.gp import read_kernel
from streamgp.likelihoods import AbstractLikelihood
from streamgp.linalg import cholesky, solve_lower
from streamgp.training.collapsed import Sums, collapse
from streamgp.training.features import Features
from streamgp.training.scaling import spread
from streamgp.training.sites_bound import FixedSites, bound_at_sites, sites_of

__all__ = ["OutputModel", "OutputProblem"]

# Bounds of what is learned, for targets of unit variance: logarithms of lengthscales relative to the inputs' spread
# and of noise variances, the mixing weights, and values of other likelihoods.
_LOG_LENGTHSCALE, _LOG_NOISE = (math.log(1e-3), math.log(1e3)), (math.log(1e-6), math.log(4.0))
_MOST_WEIGHT, _MOST_VALUE = 20.0, 10.0
# Means and standard deviations of normal priors: of logarithms of lengthscales and of noise variances, and of weights.
# Wide enough to be forgotten after some dozens of outcomes, they keep a few from being taken for noise, or for exact.
_LOG_LENGTHSCALE_PRIOR, _LOG_NOISE_PRIOR, _WEIGHT_PRIOR = (0.5, 1.5), (-4.0, 1.0), (0.0, 1.0)
_JITTER = 1e-8


@final
@dataclass(frozen=True, eq=False)
class OutputProblem:
    """Standardized outcomes, one row for each that was observed.

    Attributes:
        inputs: Inputs, each once.
        points: Inducing points of all latent functions.
        targets: Observed outcomes.
        row: The input of each.
        output: The output of each.
    """

    inputs: Float[Tensor, "n d"]
    points: Float[Tensor, "m d"]
    targets: Float[Tensor, " k"]
    row: Int[Tensor, " k"]
    output: Int[Tensor, " k"]


@final
class OutputModel:
    """The bound as a function of all that is learned, one vector of numbers."""

    def __init__(
        self,
        prototype: Kernel,
        problem: OutputProblem,
        *,
        outputs: str,
        num_latents: int,
        likelihoods: Sequence[AbstractLikelihood],
    ) -> None:
        """Lay out what is learned.

        Args:
            prototype: Kernel of a latent function.
            problem: The outcomes.
            outputs: As for `fit_outputs`.
            num_latents: Number of latent functions.
            likelihoods: Where those of the outputs start.
        """
        self.prototype, self.problem, self.outputs = prototype, problem, outputs
        self.likelihoods, num_outputs = tuple(likelihoods), len(likelihoods)
        self.num_latents, self.num_outputs = num_latents, num_outputs
        self.is_gaussian = all(each.is_gaussian for each in likelihoods)
        # Latent functions of a single output come last.
        self.num_own = 0 if outputs == "icm" else num_outputs
        self.num_shared = num_latents - self.num_own
        self.num_kernels = 1 if outputs == "icm" else num_latents
        self.num_lengthscales = prototype.lengthscale.shape[-1]
        # In units of the spread of the inputs that a lengthscale is for.
        unit = spread(problem.inputs)
        self.spread = unit if self.num_lengthscales > 1 else unit.mean().unsqueeze(-1)
        kernel = deepcopy(prototype).requires_grad_(False)
        kernel.lengthscale = torch.ones_like(kernel.lengthscale)
        self.unit = read_kernel(kernel)

    @property
    def _sizes(self) -> list[int]:
        """Numbers of logarithms of lengthscales, of weights, of values of likelihoods and of means."""
        o = self.num_outputs
        num_weights = o * (1 + self.num_shared) if self.num_own else o * self.num_shared
        num_values = sum(value.numel() for each in self.likelihoods for value in each.learnable().values())
        return [self.num_kernels * self.num_lengthscales, num_weights, num_values, o]

    def unpack(self, x: Tensor) -> tuple[Tensor, Tensor, tuple[AbstractLikelihood, ...], Tensor]:
        """Lengthscales `(kernels, d)`, mixing `(o, l)`, likelihoods and means `(o,)`."""
        o = self.num_outputs
        logs, weights, values, mean = x.split(self._sizes)
        lengthscale = logs.exp().reshape(self.num_kernels, self.num_lengthscales) * self.spread
        shared = weights[: o * self.num_shared].reshape(o, self.num_shared)
        mixing = torch.cat([shared, weights[o * self.num_shared :].diag()], dim=-1) if self.num_own else shared
        return lengthscale, mixing, self._learned(values), mean

    def _learned(self, values: Tensor) -> tuple[AbstractLikelihood, ...]:
        learned, place = [], 0
        for each in self.likelihoods:
            named = {}
            for name, start in each.learnable().items():
                named[name] = values[place : place + start.numel()].reshape(start.shape)
                place += start.numel()
            learned.append(each.with_learnable(named) if named else each)
        return tuple(learned)

    def start(self, standard: Tensor, mean: Tensor) -> Tensor:
        """Principal components of the outcomes, and lengthscales that differ between latent functions.

        Args:
            standard: Outcomes of unit variance `(n, o)`, none missing.
            mean: Means of the latent functions of the outputs.
        """
        o, dims = self.num_outputs, self.num_lengthscales
        steps = torch.arange(self.num_kernels, dtype=torch.float64)
        steps = steps.clamp_max(self.num_shared)
        logs = (math.log(0.5 * math.sqrt(dims)) - math.log(2.0) * steps).unsqueeze(-1).expand(-1, dims)
        _, values, directions = torch.linalg.svd(standard, full_matrices=False)
        kept = min(self.num_shared, len(values))
        shared = torch.full((o, self.num_shared), 0.1, dtype=torch.float64)
        shared[:, :kept] = directions[:kept].mT * (values[:kept] / math.sqrt(len(standard))).clamp_min(0.1)
        own = torch.full((o if self.num_own else 0,), 0.5 if self.num_shared else 1.0, dtype=torch.float64)
        learnable = [v.detach().double().reshape(-1) for each in self.likelihoods for v in each.learnable().values()]
        x = torch.cat([logs.flatten(), shared.flatten(), own, *learnable, mean])
        low, high = self.bounds(mean)
        return x.clamp(low, high)

    def bounds(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Least and largest values, given where means start."""
        num_scales, num_weights, _, _ = self._sizes
        ends = []
        for side in (0, 1):
            sign = 2.0 * side - 1.0
            values = [torch.full((num_scales,), _LOG_LENGTHSCALE[side], dtype=torch.float64)]
            values.append(torch.full((num_weights,), sign * _MOST_WEIGHT, dtype=torch.float64))
            for each in self.likelihoods:
                limit = _LOG_NOISE[side] if each.is_gaussian else sign * _MOST_VALUE
                values += [torch.full((v.numel(),), limit, dtype=torch.float64) for v in each.learnable().values()]
            ends.append(torch.cat([*values, mean + sign * 10.0]))
        return ends[0], ends[1]

    def kernels(self, lengthscale: Tensor) -> list[Kernel]:
        """A kernel for each row of lengthscales."""
        made = []
        for row in lengthscale.detach():
            kernel = deepcopy(self.prototype)
            kernel.lengthscale = row.reshape(1, -1)
            made.append(kernel)
        return made

    def features(self, lengthscale: Tensor, mixing: Tensor) -> Tensor:
        r"""The whitened features $\phi$ of all observed outcomes, one block of rows for each latent function."""
        problem = self.problem
        blocks = []
        for row in lengthscale:
            # A kernel of unit lengthscale at scaled inputs, so that gradients reach the lengthscales.
            Z, X = problem.points / row, problem.inputs / row
            Kzz = self.unit.matrix(Z, Z)
            L, _ = cholesky(Kzz + _JITTER * torch.eye(len(Z), dtype=Z.dtype), name="the inducing points' kernel matrix")
            blocks.append(solve_lower(L, self.unit.matrix(Z, X)))
        shared = blocks * self.num_latents if len(blocks) == 1 else blocks
        weights = mixing[problem.output]
        return torch.cat([V[:, problem.row] * weights[:, j] for j, V in enumerate(shared)])

    def observed(self, x: Tensor) -> tuple[Features, MixedLikelihood]:
        """Features of the outcomes, and their likelihood."""
        lengthscale, mixing, likelihoods, mean = self.unpack(x)
        output = self.problem.output
        phi = self.features(lengthscale, mixing)
        slack = (mixing.square().sum(-1)[output] - phi.square().sum(0)).clamp_min(0.0)
        return Features(phi, slack, mean[output]), MixedLikelihood(likelihoods, output)

    def bound(self, x: Tensor, sites: FixedSites | None = None) -> Tensor:
        """The bound on the log marginal likelihood: Titsias' for Gaussian noise, that at given sites otherwise."""
        features, likelihood = self.observed(x)
        if sites is None:
            noise = torch.stack([_noise(each) for each in likelihood.parts])[self.problem.output]
            residual = self.problem.targets - features.mean
            return collapse(Sums.of(features.phi, features.variance, residual, noise)).bound
        return bound_at_sites(features, likelihood, self.problem.targets, sites)

    def log_prior(self, x: Tensor) -> Tensor:
        """Log density of what is learned."""
        logs, weights, _, _ = x.split(self._sizes)
        total = _log_normal(logs, *_LOG_LENGTHSCALE_PRIOR) + _log_normal(weights, *_WEIGHT_PRIOR)
        for each in self.unpack(x)[2]:
            noise = each.gaussian_noise_variance
            if noise is None:
                total = total + each.log_prior().to(x)
            elif each.learnable():
                total = total + _log_normal(noise.to(x).log(), *_LOG_NOISE_PRIOR)
        return total

    def objective(self, x: Tensor, sites: FixedSites | None = None) -> Tensor:
        """Objective of training: the bound with the priors."""
        return self.bound(x, sites) + self.log_prior(x)

    def sites(self, x: Tensor, *, tolerance: float) -> FixedSites:
        """The sites that maximize the bound."""
        with torch.no_grad():
            features, likelihood = self.observed(x)
            return sites_of(features, likelihood, self.problem.targets, tolerance=tolerance)[0]


def _log_normal(values: Tensor, mean: float, deviation: float) -> Tensor:
    scaled = (values - mean) / deviation
    return -0.5 * scaled.square().sum() - values.numel() * (math.log(deviation) + 0.5 * math.log(2.0 * math.pi))


def _noise(likelihood: AbstractLikelihood) -> Tensor:
    noise = likelihood.gaussian_noise_variance
    assert noise is not None
    return noise.double()
