"""The sparse GP that users hold: a frozen value that can be conditioned, absorb data, be sampled and saved."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean, ZeroMean
from gpytorch.models import ApproximateGP
from torch import Tensor

from streamgp.checks import ArrayLike, check_count, check_finite, check_generator, check_inputs
from streamgp.conditioning.absorb import AbsorbInfo, absorb
from streamgp.conditioning.abstract_gp import AbstractGP
from streamgp.conditioning.conditioned_gp import ConditionedGP, condition
from streamgp.conditioning.forgetting import forget
from streamgp.conditioning.monotone import place_signs
from streamgp.conditioning.observation import Observation
from streamgp.conditioning.placement import check_inducing_points, place
from streamgp.conditioning.rates import read_rates
from streamgp.conditioning.unlearning import LeaveOneOut, UnlearnInfo, leave_one_out, unlearn
from streamgp.errors import ShapeError
from streamgp.evidence import Evidence
from streamgp.export import write_source
from streamgp.gp import Prior, PseudoData, SamplePaths, SparseProcess, pseudo_data, sample_paths
from streamgp.gp.exporting import write_gpytorch
from streamgp.likelihoods import AbstractLikelihood
from streamgp.shapes import broadcast_shapes
from streamgp.sites import SiteRule
from streamgp.storage import register

__all__ = ["SparseGP"]

Result = TypeVar("Result")

# Large enough to keep the factor of close inducing points accurate, small enough not to show in predictions.
_DEFAULT_JITTER = {torch.float64: 1e-8, torch.float32: 1e-5}


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class SparseGP(AbstractGP):
    """A sparse variational GP as a frozen value: kernel, mean, inducing points and whitened belief.

    Make one from a trained GPyTorch model with `from_gpytorch`, from the prior with `SparseGP.from_prior` or
    `SparseGP.from_features`, or from a file with `load`. No method changes the object; each returns a new one.

    ```python
    import torch
    from gpytorch.kernels import RBFKernel, ScaleKernel

    X = torch.linspace(0, 6, 30, dtype=torch.float64).unsqueeze(-1)
    gp = sg.SparseGP.from_prior(ScaleKernel(RBFKernel()), X[::5])
    gp, info = gp.absorb(X, torch.sin(X).squeeze(-1), noise_variance=0.01)  # still six points
    after = gp.condition(X[:2], torch.zeros(2, dtype=torch.float64), noise_variance=0.01)  # exact; gp is as it was
    after.predict(X).mean
    ```
    """

    sparse_process: SparseProcess

    @classmethod
    def from_prior(cls, kernel: Kernel, inducing_points: ArrayLike, *, mean: Mean | None = None) -> "SparseGP":
        """Start from the prior, before any data.

        The kernel matrix of the inducing points gets a jitter of 1e-8 of the typical variance, or 1e-5 in single
        precision, whether it needs it or not: it stays when points move, so that beliefs can be merged.

        Args:
            kernel: GPyTorch kernel; copied.
            inducing_points: Inputs `(*b, m, d)`, whose dtype and device the GP takes.
            mean: GPyTorch mean; zero by default.
        """
        Z = check_finite(check_inducing_points(inducing_points, "inducing_points"), "inducing_points").detach().clone()
        prior = Prior.snapshot(kernel, ZeroMean() if mean is None else mean, like=Z)
        Z = Z.expand(*broadcast_shapes(Z.shape[:-2], prior.batch_shape), *Z.shape[-2:])
        jitter = _DEFAULT_JITTER[Z.dtype] * _typical_variance(prior, Z)
        return cls(SparseProcess.from_prior(prior, Z, jitter=jitter))

    @classmethod
    def from_features(cls, kernel: Kernel, X: ArrayLike, *, mean: Mean | None = None) -> "SparseGP":
        r"""Start from a prior of finitely many features, $k(x, x') = \phi(x)^\top \phi(x')$, without inducing points.

        The belief is then about the weights of the features: nothing is lost, and `absorb` is exact Bayesian linear
        regression however the data is divided.

        Args:
            kernel: GPyTorch's `LinearKernel`, `PolynomialKernel`, `ConstantKernel` or `RFFKernel` (made with
                `num_dims`), the spherical-linear kernel, or scales, sums and products of these; copied.
            X: Inputs `(*b, n, d)`, for their dimension, dtype and device alone.
            mean: GPyTorch mean; zero by default.
        """
        none = check_inducing_points(X, "X").detach()[..., :0, :].clone()
        prior = Prior.snapshot(kernel, ZeroMean() if mean is None else mean, like=none)
        none = none.expand(*broadcast_shapes(none.shape[:-2], prior.batch_shape), *none.shape[-2:])
        return cls(SparseProcess.from_prior(prior, none, jitter=0.0))

    @property
    def process(self) -> SparseProcess:
        """The process behind the object."""
        return self.sparse_process

    @property
    def kernel(self) -> Kernel:
        """The kernel; a copy of its own, not to be changed."""
        return self.process.prior.kernel

    @property
    def mean(self) -> Mean:
        """The mean function; a copy of its own, not to be changed."""
        return self.process.prior.mean_function

    @property
    def inducing_points(self) -> Tensor:
        """Inputs `(*b, m, d)` at which the belief is held; `(*b, 0, d)` where it is about weights of features."""
        return self.process.inducing_points

    @property
    def num_inducing(self) -> int:
        """Number of inducing points, or of features."""
        return self.process.num_inducing

    @property
    def whitened_mean(self) -> Tensor:
        r"""Mean $\bar m$ of the whitened belief, `(*b, m)`."""
        return self.process.whitened_mean

    @property
    def whitened_covariance(self) -> Tensor:
        r"""Covariance $\bar S$ of the whitened belief, `(*b, m, m)`."""
        return self.process.whitened_root @ self.process.whitened_root.mT

    def condition(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
        sites: str | SiteRule = "variational",
    ) -> ConditionedGP:
        """Condition on observations: exactly if they are Gaussian, through Gaussian sites if not.

        Args:
            X: Inputs `(*b, n, d)`; pairs of inputs `(*b, n, 2, d)` for comparisons; or rows of `streamgp.evidence`.
            y: Observed values `(*s, *b, n)`. Leading axes that the inputs lack are fantasies: they share one factor.
            noise_variance: Variance of Gaussian noise: a number, one value for each observation `(*b, n)`, or a
                covariance matrix `(*b, n, n)`. Zero is allowed.
            likelihood: The likelihood of other observations, instead of the noise.
            sites: How those become Gaussian: `"variational"`, `"laplace"`, `"moments"` (for signs, bounds and grades),
                `"paper"`, or a `SiteRule`.

        Returns:
            The conditioned GP. It is differentiable in `X`, `y` and `noise_variance`, and can be conditioned again.
        """
        read = Observation.read(X, y, self.process, noise_variance=noise_variance, likelihood=likelihood, sites=sites)
        return condition(self.process, read_rates(self.process, read, lambda one: condition(self.process, one).process))

    def condition_increasing(self, X: ArrayLike, *, along: ArrayLike, max_signs: int = 64) -> ConditionedGP:
        """Condition on the function rising along a direction, by signs of slopes where the belief has them wrong.

        ```python
        import torch

        X = torch.linspace(0, 1, 15, dtype=torch.float64).unsqueeze(-1)
        noisy = X[:, 0] + 0.2 * torch.randn(15, dtype=torch.float64)
        gp = sg.fit(X, noisy, num_inducing=10).gp
        rising = gp.condition_increasing(torch.linspace(0, 1, 50, dtype=torch.float64).unsqueeze(-1), along=[1.0])
        rising.predict(X).mean
        ```

        Args:
            X: Inputs `(n, d)` at which it shall rise: a grid, or the data with its surroundings.
            along: The direction `(d,)`, such as `[1, 0]` for the first of two inputs; its negative for a function that
                falls.
            max_signs: Most slopes whose sign is observed; each takes one round.

        Returns:
            The conditioned GP, whose mean slopes at these inputs are not negative; with a warning where too few signs
            were allowed.
        """
        inputs = check_inputs(X, num_dims=self.inducing_points.shape[-1], like=self.inducing_points)
        return place_signs(
            self.process,
            inputs,
            along,
            max_signs=max_signs,
            step=lambda signs: condition(self.process, signs),
            process_of=lambda found: found.process,
        )

    def absorb_increasing(self, X: ArrayLike, *, along: ArrayLike, max_signs: int = 64) -> "SparseGP":
        """Absorb that the function rises along a direction, as `condition_increasing` does.

        Args:
            X: Inputs `(n, d)` at which it shall rise.
            along: The direction, `(d,)`, or one for each input.
            max_signs: Most signs of slopes that are observed; a warning says where they were not enough.

        Returns:
            The new GP, with an inducing point more for each sign that was observed.
        """
        inputs = check_inputs(X, num_dims=self.inducing_points.shape[-1], like=self.inducing_points)

        def step(signs: Observation) -> SparseProcess:
            if not signs.targets.shape[-1]:
                return self.process
            size = self.num_inducing + signs.targets.shape[-1] if self.process.inducing.is_movable else None
            return self._absorbed_at(signs.detach_and_expand(self.process.batch_shape), "pivoted", size)

        with torch.no_grad():
            risen = place_signs(
                self.process, inputs, along, max_signs=max_signs, step=step, process_of=lambda found: found
            )
        return SparseGP(risen)

    def absorb(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: str | AbstractLikelihood | None = None,
        sites: str | SiteRule = "variational",
        inducing: str | ArrayLike = "pivoted",
        num_inducing: int | None = None,
        retention: float = 1.0,
        kernel: Kernel | None = None,
        mean: Mean | None = None,
    ) -> tuple["SparseGP", AbsorbInfo]:
        """Absorb observations into a sparse GP of constant size.

        Args:
            X: Inputs, as in `condition`.
            y: Observed values `(*b, n)`.
            noise_variance: Variance of Gaussian noise, as in `condition`; positive.
            likelihood: The likelihood of other observations, instead of the noise.
            sites: How those become Gaussian, as in `condition`.
            inducing: `"pivoted"` chooses among the old inducing points and the new inputs, by pivoted Cholesky or, if
                there is a single new input, by letting it compete with the weakest old point. `"keep"` keeps them, a
                tensor `(*b, m, d)` sets them. Weights of features stay unless a tensor is given.
            num_inducing: How many inducing points to choose; as many as before by default.
            retention: How much more old inducing points count than by what is known at them. Above 1 they are exchanged
                less readily, which suits points that were learned.
            kernel: A changed kernel, under which the belief is carried on.
            mean: A changed mean.

        Returns:
            The new GP, and diagnostics of the step.
        """
        read = Observation.read(X, y, self.process, noise_variance=noise_variance, likelihood=likelihood, sites=sites)
        observation = read.detach_and_expand(self.process.batch_shape)
        observation = read_rates(self.process, observation, self._absorbed_here)
        prior = None
        if kernel is not None or mean is not None:
            prior = Prior.snapshot(
                self.kernel if kernel is None else kernel,
                self.mean if mean is None else mean,
                like=self.inducing_points,
            )
        with torch.no_grad():
            placed, seen, carried = place(
                self.process, observation, inducing, num_inducing=num_inducing, prior=prior, retention=retention
            )
            absorbed, info = absorb(placed, observation, seen, carried=carried)
        return SparseGP(absorbed), info

    def linear_rates(
        self,
        rows: Evidence,
        y: ArrayLike,
        *,
        likelihood: str | AbstractLikelihood,
        sites: str | SiteRule = "variational",
    ) -> Evidence:
        """Make averages of rates linear around what will be believed once they are absorbed.

        Args:
            rows: Evidence made by `average(..., rates=True)`.
            y: What was observed of them.
            likelihood: Of one observation.
            sites: How observations become Gaussian.

        Returns:
            Rows of the same inputs, with weights and offsets under which they are sums of latent values.
        """
        read = Observation.read(rows, y, self.process, noise_variance=None, likelihood=likelihood, sites=sites)
        linear = read_rates(self.process, read.detach_and_expand(self.process.batch_shape), self._absorbed_here).inputs
        assert isinstance(linear, Evidence)
        return linear

    def _absorbed_here(self, observation: Observation) -> SparseProcess:
        """The belief after an observation, at the inducing points that there are."""
        return self._absorbed_at(observation, "keep", None)

    def _absorbed_at(self, observation: Observation, inducing: str, num_inducing: int | None) -> SparseProcess:
        placed, seen, carried = place(
            self.process, observation, inducing, num_inducing=num_inducing, prior=None, retention=1.0
        )
        return absorb(placed, observation, seen, carried=carried)[0]

    def forget(self, factor: float) -> "SparseGP":
        """Let the belief relax toward the prior, as if the past observations had been less precise.

        Args:
            factor: What all information is multiplied with, above 0 and at most 1: the noise variance of each past
                observation is divided by it. 1 changes nothing; forgetting by `a` and then by `b` is forgetting by
                `a * b`.

        Returns:
            The new GP, with the same inducing points.
        """
        return SparseGP(forget(self.process, factor))

    def unlearn(
        self, X: ArrayLike, y: ArrayLike, *, noise_variance: ArrayLike | None = None
    ) -> tuple["SparseGP", UnlearnInfo]:
        """Take back observations that were absorbed, as if they had never been.

        Exact, to rounding, where the inducing points are those at which the observations were absorbed; where points
        moved since, what they lost of the observations cannot be told apart from the rest. Hyperparameters that were
        learned from the observations stay.

        Args:
            X: Inputs, as they were absorbed.
            y: Observed values; for another likelihood the targets of the sites, `info.site_info.sites.targets`.
            noise_variance: Their noise; for another likelihood the variances of the sites.

        Returns:
            The GP without them, and diagnostics.
        """
        unlearned, info = self._past(unlearn, X, y, noise_variance)
        return SparseGP(unlearned), info

    def leave_one_out(self, X: ArrayLike, y: ArrayLike, *, noise_variance: ArrayLike | None = None) -> LeaveOneOut:
        """Predict each absorbed observation from all others; arguments as in `unlearn`.

        Returns:
            Mean and variance of the latent values, and log densities of the observations.
        """
        return self._past(leave_one_out, X, y, noise_variance)

    def _past(self, function: Callable[[SparseProcess, Observation], Result], X: Any, y: Any, noise: Any) -> Result:
        """Apply a function to the belief and observations it has absorbed."""
        read = Observation.read(X, y, self.process, noise_variance=noise, likelihood=None, sites="variational")
        observation = read.detach_and_expand(self.process.batch_shape)
        with torch.no_grad():
            return function(self.process, observation)

    def pseudo_data(self) -> PseudoData:
        """The observations at the inducing points for which the belief would be optimal: the paper's view."""
        return pseudo_data(self.process)

    def sample_paths(
        self, num_samples: int = 1, *, generator: torch.Generator | None = None, num_features: int = 1024
    ) -> SamplePaths:
        """Draw functions that can be evaluated and differentiated anywhere.

        Args:
            num_samples: Number of functions $s$.
            generator: Source of randomness.
            num_features: Number of random frequencies that approximate the prior.

        Returns:
            A function of inputs `(*b, n, d)` that returns `(s, *b, n)`.
        """
        num_samples = check_count(num_samples, "num_samples")
        num_features = check_count(num_features, "num_features")
        return sample_paths(self.process, num_samples, check_generator(generator), num_features=num_features)

    def to_gpytorch(self) -> ApproximateGP:
        """Export into a GPyTorch `ApproximateGP`, which `from_gpytorch` reads back to the same predictions.

        The model has a whitened variational strategy with this GP's jitter, a Cholesky variational distribution, and
        parameters of its own that can be trained. It is in evaluation mode.
        """
        return write_gpytorch(self.process)

    def export(
        self, language: str, path: str | os.PathLike[str], *, precision: str = "double", name: str | None = None
    ) -> None:
        """Write the GP as one file of C or NumPy that predicts, absorbs and forgets without torch.

        The file holds this belief as its start, and learns on at the same inducing points, as
        `absorb(..., inducing="keep")` does: values with Gaussian noise, classes with a probit, and counts. What it has
        learned comes back through its `state_out` and `import_state`. The kernel must be an `RBFKernel` or
        `MaternKernel`, or scales and sums of these, the mean constant.

        Args:
            language: `"c"` for a file of C99 without dependencies, `"numpy"` for one that imports NumPy alone.
            path: Of the file; an existing one is replaced.
            precision: Of numbers in C, `"double"` or `"float"`; those of NumPy are always double.
            name: What all names in C begin with; by default the name of the file.
        """
        write_source(self.process, language, path, precision=precision, name=name)

    def __repr__(self) -> str:
        return f"SparseGP({self._describe()})"


def _typical_variance(prior: Prior, Z: Tensor) -> float:
    try:
        return float(prior.variance(Z).mean())
    except (RuntimeError, ValueError, IndexError) as error:
        raise ShapeError(
            f"The kernel {type(prior.kernel).__name__} cannot be evaluated at inputs with {Z.shape[-1]} columns "
            f"({error}). Make it for as many dimensions as the inducing points have."
        ) from None
