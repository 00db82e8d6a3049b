"""Several correlated outputs as one sparse GP of inputs and outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from gpytorch.models import ApproximateGP
from torch import Tensor

from streamgp.checks import ArrayLike, check_float
from streamgp.conditioning.absorb import AbsorbInfo
from streamgp.conditioning.multi_output.conditioned_gp import AbstractMultiOutputGP, Likelihoods
from streamgp.conditioning.multi_output.outcomes import Outcomes
from streamgp.conditioning.multi_output.paths import MultiOutputPaths
from streamgp.conditioning.multi_output.prediction import columns
from streamgp.conditioning.multi_output.prior import latent_rows, prior_modules, read_points
from streamgp.conditioning.sparse_gp import SparseGP
from streamgp.conditioning.unlearning import LeaveOneOut, UnlearnInfo
from streamgp.errors import ShapeError
from streamgp.evidence import Evidence
from streamgp.gp.coregionalization import latent_column
from streamgp.gp.exporting import write_gpytorch
from streamgp.sites import SiteRule
from streamgp.storage import register

__all__ = ["MultiOutputGP"]


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
            kernels: One kernel for each latent function (linear model of coregionalization), or a single one for all
                (intrinsic coregionalization); copied.
            inducing_points: Inputs `(*b, m, d)` for all latent functions, or a list with some for each.
            mixing: The matrix $a$ `(o, l)`; the identity makes outputs independent.
            mean: Constant means of the outputs `(o,)`; zero by default.
        """
        points = read_points(inducing_points)
        kernel, means = prior_modules(kernels, points[0], mixing=mixing, mean=mean)
        return cls(SparseGP.from_prior(kernel, latent_rows(points, kernel.num_latents), mean=means))

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
            X: Inputs `(*b, n, d)`, for their dimension, dtype and device alone.
            mixing: As in `from_prior`.
            mean: As in `from_prior`.
        """
        (points,) = read_points(check_float(X, "X"), "X")
        kernel, means = prior_modules(kernels, points, mixing=mixing, mean=mean)
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

    def absorb(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: Likelihoods = None,
        sites: str | SiteRule = "variational",
        inducing: str | ArrayLike | Sequence[ArrayLike] = "pivoted",
        num_inducing: int | None = None,
        retention: float = 1.0,
        kernels: Kernel | Sequence[Kernel] | None = None,
        mixing: ArrayLike | None = None,
        mean: ArrayLike | None = None,
    ) -> tuple["MultiOutputGP", AbsorbInfo]:
        """Absorb outcomes into a GP of constant size.

        Args:
            X: Inputs, as in `condition`.
            Y: Outcomes, as in `condition`.
            noise_variance: Variance of Gaussian noise, as in `condition`; positive.
            likelihood: The likelihood of other outcomes, or a list with one for each output.
            sites: How those become Gaussian.
            inducing: `"pivoted"` lets values of outputs at the new inputs take the place of weak inducing variables,
                `"keep"` keeps these. Points `(*b, m, d)` set them for all latent functions, a list of such for each.
            num_inducing: How many inducing variables to choose, of all latent functions together.
            retention: As in `SparseGP.absorb`.
            kernels: Changed kernels, under which the belief is carried on; as in `from_prior`.
            mixing: A changed matrix `(o, l)`.
            mean: Changed means `(o,)`.

        Returns:
            The new GP, and diagnostics of the step.
        """
        if isinstance(X, Evidence):
            rows: Any = (X, Y)
            how: Any = {"noise_variance": noise_variance, "likelihood": likelihood}
        else:
            outcomes = Outcomes.read(self._checked(X), Y, self.num_outputs)
            rows = outcomes.inputs, outcomes.targets
            how = {"noise_variance": outcomes.noise(noise_variance), "likelihood": outcomes.likelihood(likelihood)}
        if not isinstance(inducing, str):
            points = read_points(inducing, "inducing", like=self.sparse_gp.inducing_points[..., :-1])
            inducing = latent_rows(points, self.mixing.shape[-1])
        prior = self._changed_prior(kernels, mixing, mean)
        absorbed, info = self.sparse_gp.absorb(
            *rows,
            **how,
            sites=sites,
            inducing=inducing,
            num_inducing=num_inducing,
            retention=retention,
            kernel=prior[0],
            mean=prior[1],
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
        """Let the belief relax toward the prior; see `SparseGP.forget`."""
        return MultiOutputGP(self.sparse_gp.forget(factor))

    def sample_paths(
        self,
        num_samples: int = 1,
        *,
        output: ArrayLike | None = None,
        generator: torch.Generator | None = None,
        num_features: int = 1024,
    ) -> MultiOutputPaths:
        """Draw functions of all outputs that can be evaluated and differentiated anywhere.

        Args:
            num_samples: Number of functions $s$.
            output: One output or several, as in `predict`; the functions that are drawn do not depend on it.
            generator: Source of randomness.
            num_features: Number of random frequencies of each latent function, which approximate the prior.

        Returns:
            A function of inputs `(*b, n, d)` that returns `(s, *b, n, o)`.
        """
        outputs = self._read_outputs(output)
        paths = self.sparse_gp.sample_paths(num_samples, generator=generator, num_features=num_features)
        return MultiOutputPaths(paths, tuple(outputs))

    def to_gpytorch(self) -> ApproximateGP:
        """Export into a GPyTorch `ApproximateGP`, which `from_gpytorch` reads back to the same predictions.

        Called with inputs `(n, d)`, the model returns a `MultitaskMultivariateNormal` of all outputs; `task_indices=`
        asks for one output at each input. Its parameters are its own and can be trained. Beliefs about latent functions
        stay correlated, as those of GPyTorch's `LMCVariationalStrategy` cannot be.
        """
        return write_gpytorch(self.sparse_gp.process, num_outputs=self.num_outputs)

    def __repr__(self) -> str:
        return f"MultiOutputGP({self._describe()})"

    def _changed_prior(self, kernels: Any, mixing: Any, mean: Any) -> tuple[Kernel | None, Mean | None]:
        """Kernel and mean of which something is given; None where nothing is."""
        if kernels is None and mixing is None and mean is None:
            return None, None
        kernel: Any = self.sparse_gp.kernel
        means: Any = self.sparse_gp.mean
        like = self.sparse_gp.inducing_points[..., :-1]
        mixing = kernel.mixing if mixing is None else check_float(mixing, "mixing", like=like)
        if mixing.shape != kernel.mixing.shape:
            raise ShapeError(
                f"mixing must keep its shape {tuple(kernel.mixing.shape)}, as the belief is about these outputs and "
                f"latent functions, but has shape {tuple(mixing.shape)}. Start again with from_prior."
            )
        return prior_modules(
            list(kernel.kernels) if kernels is None else kernels,
            like,
            mixing=mixing,
            mean=means.constants if mean is None else mean,
        )
