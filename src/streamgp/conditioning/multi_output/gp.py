"""Several correlated outputs as one sparse GP of inputs and outputs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from streamgp.checks import ArrayLike, check_float
from streamgp.conditioning.absorb import AbsorbInfo
from streamgp.conditioning.multi_output.conditioned_gp import (
    AbstractMultiOutputGP,
    ConditionedMultiOutputGP,
    Likelihoods,
)
from streamgp.conditioning.multi_output.outcomes import Outcomes
from streamgp.conditioning.multi_output.prediction import columns
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.conditioning.unlearning import LeaveOneOut, UnlearnInfo
from streamgp.errors import ShapeError
from streamgp.gp.coregionalization import CoregionalizationKernel, OutputMean, latent_column
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.sites import SiteRule
from streamgp.storage import register, register_module, save

__all__ = ["MultiOutputGP"]

register_module(CoregionalizationKernel, sizes=("num_outputs", "num_latents"), parts=("kernels",), batch_shape=None)
register_module(OutputMean, sizes=("num_outputs",), batch_shape=None)


@register
@final
@dataclass(frozen=True, eq=False, repr=False)
class MultiOutputGP(AbstractMultiOutputGP):
    r"""A sparse GP of several correlated outputs, as a frozen value.

    Outputs are $f_o(x) = \mu_o + \sum_l a_{ol} g_l(x)$ with independent latent functions $g_l$; the belief is one about
    $u = (g_1(Z_1), \dots)$, dense across latent functions. Outcomes `Y` have one column for each output and NaN where
    an output was not observed.

    ```python
    import numpy as np

    X = np.linspace(0, 6, 20)[:, None]
    Y = np.column_stack([np.sin(X[:, 0]), 2 * np.sin(X[:, 0])])
    Y[10:, 1] = np.nan  # the second sensor stopped
    gp = sg.fit(X, Y, outputs="icm", num_inducing=8).gp
    gp.predict(X).mean  # both outputs, everywhere
    ```
    """

    sparse_gp: SparseGP

    @classmethod
    def from_prior(
        cls,
        kernels: Kernel | Sequence[Kernel],
        inducing_points: ArrayLike | Sequence[ArrayLike],
        *,
        mixing: ArrayLike,
        mean: ArrayLike | None = None,
    ) -> "MultiOutputGP":
        """Start from the prior, before any data.

        Args:
            kernels: One kernel for each latent function (linear model of coregionalisation), or a single one for all
                (intrinsic coregionalisation); copied.
            inducing_points: Inputs `(m, d)` for all latent functions, or a list with some for each.
            mixing: The matrix $a$ `(o, l)`; the identity makes outputs independent.
            mean: Constant means of the outputs `(o,)`; zero by default.
        """
        points = _read_points(inducing_points)
        kernel, means = _prior_modules(kernels, points[0], mixing=mixing, mean=mean)
        num_latents = kernel.num_latents
        if len(points) not in (1, num_latents):
            raise ShapeError(
                f"There must be one set of inducing points for all {num_latents} latent functions (columns of mixing), "
                f"or one for each, but there are {len(points)}."
            )
        sets = points * num_latents if len(points) == 1 else points
        Z = torch.cat([latent_column(each, j) for j, each in enumerate(sets)], dim=-2)
        return cls(SparseGP.from_prior(kernel, Z, mean=means))

    @classmethod
    def from_features(
        cls,
        kernels: Kernel | Sequence[Kernel],
        X: ArrayLike,
        *,
        mixing: ArrayLike,
        mean: ArrayLike | None = None,
    ) -> "MultiOutputGP":
        """Start from latent functions of finitely many features, without inducing points.

        Args:
            kernels: As in `from_prior`, each with finitely many features, as in `SparseGP.from_features`.
            X: Inputs `(n, d)`, for their dimension, dtype and device alone.
            mixing: As in `from_prior`.
            mean: As in `from_prior`.
        """
        (points,) = _read_points(check_float(X, "X"))
        kernel, means = _prior_modules(kernels, points, mixing=mixing, mean=mean)
        return cls(SparseGP.from_features(kernel, latent_column(points, 0), mean=means))

    @property
    def row_gp(self) -> SparseGP:
        """The GP of inputs with a column for the output."""
        return self.sparse_gp

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return self.mixing.shape[0]

    @property
    def mixing(self) -> Tensor:
        """The matrix $a$ `(o, l)`."""
        kernel: Any = self.sparse_gp.kernel
        return kernel.mixing

    def condition(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: Likelihoods = None,
        sites: str | SiteRule = "variational",
    ) -> ConditionedMultiOutputGP:
        """Condition on outcomes: exactly if they are Gaussian, through Gaussian sites if not.

        Args:
            X: Inputs `(*b, n, d)`.
            Y: Outcomes `(*s, *b, n, o)`, NaN where an output was not observed. Leading axes that the inputs lack are
                fantasies, which share one factor.
            noise_variance: Variance of Gaussian noise: a number, one for each output `(o,)`, or one for each outcome
                `(*b, n, o)`.
            likelihood: The likelihood of other outcomes, or a list with one for each output.
            sites: How those become Gaussian, as in `SparseGP.condition`.

        Returns:
            The conditioned GP, differentiable in inputs, outcomes and noise.
        """
        return self._condition(X, Y, noise_variance, likelihood, sites)

    def absorb(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: Likelihoods = None,
        sites: str | SiteRule = "variational",
        inducing: str = "pivoted",
        num_inducing: int | None = None,
        retention: float = 1.0,
    ) -> tuple["MultiOutputGP", AbsorbInfo]:
        """Absorb outcomes into a GP of constant size.

        Args:
            X: Inputs, as in `condition`.
            Y: Outcomes, as in `condition`.
            noise_variance: Variance of Gaussian noise, as in `condition`; positive.
            likelihood: The likelihood of other outcomes, or a list with one for each output.
            sites: How those become Gaussian.
            inducing: `"pivoted"` lets values of outputs at the new inputs take the place of weak inducing variables,
                `"keep"` keeps these.
            num_inducing: How many inducing variables to choose, of all latent functions together.
            retention: As in `SparseGP.absorb`.

        Returns:
            The new GP, and diagnostics of the step.
        """
        outcomes = Outcomes.read(self._checked(X), Y, self.num_outputs)
        absorbed, info = self.sparse_gp.absorb(
            outcomes.inputs,
            outcomes.targets,
            noise_variance=outcomes.noise(noise_variance),
            likelihood=outcomes.likelihood(likelihood),
            sites=sites,
            inducing=inducing,
            num_inducing=num_inducing,
            retention=retention,
        )
        return MultiOutputGP(absorbed), info

    def unlearn(
        self, X: ArrayLike, Y: ArrayLike, *, noise_variance: ArrayLike | None = None
    ) -> tuple["MultiOutputGP", UnlearnInfo]:
        """Take back Gaussian outcomes that were absorbed; see `SparseGP.unlearn`."""
        outcomes = Outcomes.read(self._checked(X), Y, self.num_outputs)
        unlearned, info = self.sparse_gp.unlearn(
            outcomes.inputs, outcomes.targets, noise_variance=outcomes.noise(noise_variance)
        )
        return MultiOutputGP(unlearned), info

    def leave_one_out(self, X: ArrayLike, Y: ArrayLike, *, noise_variance: ArrayLike | None = None) -> LeaveOneOut:
        """Predict each absorbed outcome from all others, those of other outputs at its own input among them.

        Args:
            X: Inputs, as in `condition`.
            Y: Gaussian outcomes that were absorbed.
            noise_variance: Their noise.

        Returns:
            Mean and variance of the latent values and log densities of the outcomes, all of shape `(*b, n, o)` with NaN
            where nothing was observed.
        """
        X = self._checked(X)
        outcomes = Outcomes.read(X, Y, self.num_outputs)
        rows = self.sparse_gp.leave_one_out(
            outcomes.inputs, outcomes.targets, noise_variance=outcomes.noise(noise_variance)
        )
        k = X.shape[-2] * self.num_outputs

        def spread(values: Tensor) -> Tensor:
            whole = values.new_full((*values.shape[:-1], k), torch.nan)
            whole[..., outcomes.observed] = values
            return columns(whole, self.num_outputs)

        return LeaveOneOut(spread(rows.mean), spread(rows.variance), spread(rows.log_density))

    def forget(self, factor: float) -> "MultiOutputGP":
        """Let the belief relax towards the prior; see `SparseGP.forget`."""
        return MultiOutputGP(self.sparse_gp.forget(factor))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `load` reads."""
        save(self, path)

    def __repr__(self) -> str:
        return f"MultiOutputGP({self._describe()})"


def _prior_modules(
    kernels: Kernel | Sequence[Kernel], like: Tensor, *, mixing: ArrayLike, mean: ArrayLike | None
) -> tuple[CoregionalizationKernel, OutputMean]:
    """Kernel and mean of inputs with a column for the output, checked, for inputs of a kind."""
    mixing = check_float(mixing, "mixing", like=like)
    if mixing.dim() != 2 or 0 in mixing.shape:
        raise ShapeError(
            f"mixing must have shape (o, l), one row for each output and one column for each latent function, but "
            f"has shape {tuple(mixing.shape)}."
        )
    o, num_latents = mixing.shape
    parts = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    if len(parts) not in (1, num_latents):
        raise ShapeError(
            f"There must be one kernel for all {num_latents} latent functions (columns of mixing), or one for each, "
            f"but there are {len(parts)} kernels."
        )
    for part in parts:
        check_num_dims(part, like.shape[-1])
    kernel = CoregionalizationKernel(*parts, num_outputs=o, num_latents=num_latents).to(like)
    kernel.mixing.data = mixing.detach().clone()
    means = OutputMean(num_outputs=o).to(like)
    if mean is not None:
        constants = check_float(mean, "mean", like=like)
        if constants.shape != (o,):
            raise ShapeError(f"mean must have shape ({o},), one for each output, but has {tuple(constants.shape)}.")
        means.constants.data = constants.detach().clone()
    return kernel, means


def _read_points(inducing_points: Any) -> list[Tensor]:
    """One set of points for all latent functions, or a list of them."""
    is_list = isinstance(inducing_points, list | tuple) and not _is_rows(inducing_points)
    given = list(inducing_points) if is_list else [inducing_points]
    first = check_float(given[0], "inducing_points")
    points = [check_float(each, "inducing_points", like=first).detach() for each in given]
    for each in points:
        if each.dim() != 2 or each.shape[-1] != first.shape[-1] or 0 in each.shape:
            raise ShapeError(
                f"inducing_points must have shape (m, d), or be a list of such with one dimension, but one has shape "
                f"{tuple(each.shape)}."
            )
    return points


def _is_rows(values: Sequence[Any]) -> bool:
    """Whether a list holds rows of numbers, and not sets of points."""
    first = values[0] if len(values) else None
    return isinstance(first, list | tuple) and bool(len(first)) and not isinstance(first[0], list | tuple)
