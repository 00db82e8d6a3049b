"""Fitting several correlated outputs at once, by the collapsed bound of their linear model of coregionalisation."""

import math
import os
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, RQKernel
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_choice, check_count, check_finite, check_float, check_positive
from streamgp.conditioning import MultiOutputGP
from streamgp.errors import DTypeError, OptionError, ShapeError, ValueRangeError
from streamgp.gp import read_kernel
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.likelihoods import Gaussian
from streamgp.linalg import cholesky, pivoted_cholesky, solve_lower
from streamgp.storage import register, save
from streamgp.threads import few_threads
from streamgp.training.lbfgs import Ascent, maximize
from streamgp.training.result import FitInfo

__all__ = ["MultiOutputFit", "fit_outputs"]

CHOICES = ("icm", "lmc", "independent")
# Shared latent functions by default: enough for common and opposed movements, few enough to learn from short series.
_DEFAULT_RANK = 3
# Bounds of what is learned, for targets of unit variance: logarithms of lengthscales relative to the inputs' spread
# and of noise variances, and the mixing weights.
_LOG_LENGTHSCALE, _LOG_NOISE, _MOST_WEIGHT = (math.log(1e-3), math.log(1e3)), (math.log(1e-6), math.log(4.0)), 20.0
_JITTER = 1e-8


@register
@final
@dataclass(frozen=True, eq=False)
class MultiOutputFit:
    """Fitted outputs.

    Attributes:
        gp: The GP of all outputs, in the user's units.
        likelihoods: The fitted noise of each output.
        info: Diagnostics.
    """

    gp: MultiOutputGP
    likelihoods: tuple[Gaussian, ...]
    info: FitInfo

    @property
    def likelihood(self) -> list[Gaussian]:
        """The fitted noise of each output, as `MultiOutputGP.condition` and `absorb` take it."""
        return list(self.likelihoods)

    @property
    def noise_variance(self) -> Float[Tensor, " o"]:
        """Noise variances of the outputs."""
        return torch.stack([each.noise_variance.reshape(()) for each in self.likelihoods])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads."""
        save(self, path)


@final
@dataclass(frozen=True, eq=False)
class _Problem:
    """Standardised outcomes, one row for each that was observed.

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


def fit_outputs(
    X: Any,
    Y: Any,
    *,
    outputs: str,
    rank: int | None = None,
    kernel: Kernel | None = None,
    num_inducing: int = 100,
    max_iterations: int = 200,
    tolerance: float = 1e-4,
    callback: Callable[[float], None] | None = None,
) -> MultiOutputFit:
    r"""Fit $f_o(x) = \mu_o + \sum_l a_{ol} g_l(x)$ with Gaussian noise for each output.

    Maximises Titsias' bound with the belief in closed form, by L-BFGS in double precision. Latent functions share
    their inducing points, chosen among the inputs by pivoted Cholesky; the mixing starts from the principal components
    of the outcomes.

    Args:
        X: Inputs `(n, d)`.
        Y: Outcomes `(n, o)`, NaN where an output was not observed.
        outputs: `"lmc"` (latent functions that outputs share and one that each has for itself, with lengthscales of
            their own), `"icm"` (shared latent functions of one kernel), or `"independent"`.
        rank: Number of shared latent functions; at most 3 by default.
        kernel: Kernel of a latent function, with a lengthscale, copied for each; Matérn-5/2 with a lengthscale for each
            dimension by default. Its variance is that of the mixing.
        num_inducing: Number of inducing points for each latent function.
        max_iterations: Most iterations of L-BFGS.
        tolerance: Training stops when five iterations gain less than this for each observation.
        callback: Called with the bound after each iteration.

    Returns:
        The fitted GP, the noise of each output, and diagnostics.

    References:
        Alvarez, Rosasco, Lawrence (2012), Kernels for vector-valued functions: a review.
        Titsias (2009), Variational learning of inducing variables in sparse Gaussian processes.
    """
    began = time.perf_counter()
    check_choice(outputs, CHOICES, "outputs")
    inputs, outcomes = _read(X, Y)
    o = outcomes.shape[-1]
    num_latents = _num_latents(outputs, rank, o)
    center, scale = _standardization(outcomes)
    standard = (outcomes - center) / scale
    prototype = _prototype(kernel, inputs)
    problem = _problem(inputs, standard, prototype, check_count(num_inducing, "num_inducing"))
    model = _Model(prototype, problem, outputs=outputs, num_latents=num_latents, num_outputs=o)
    low, high = model.bounds()
    with few_threads():
        ascent = maximize(
            model.bound,
            model.start(standard),
            bounds=(low, high),
            max_iterations=check_count(max_iterations, "max_iterations"),
            tolerance=check_positive(tolerance, "tolerance"),
            scale=float(len(problem.targets)),
            on_iteration=callback,
        )
    return _finish(model, problem, ascent, X=X, center=center, scale=scale, outcomes=outcomes, began=began)


@final
class _Model:
    """The bound as a function of all that is learned, one vector of numbers."""

    def __init__(
        self, prototype: Kernel, problem: _Problem, *, outputs: str, num_latents: int, num_outputs: int
    ) -> None:
        self.prototype, self.problem, self.outputs = prototype, problem, outputs
        self.num_latents, self.num_outputs = num_latents, num_outputs
        # Latent functions of a single output come last.
        self.num_own = 0 if outputs == "icm" else num_outputs
        self.num_shared = num_latents - self.num_own
        self.num_kernels = 1 if outputs == "icm" else num_latents
        self.num_lengthscales = prototype.lengthscale.shape[-1]
        # In units of the spread of the inputs that a lengthscale is for.
        spread = _spread(problem.inputs)
        self.spread = spread if self.num_lengthscales > 1 else spread.mean().unsqueeze(-1)
        kernel = deepcopy(prototype).requires_grad_(False)
        kernel.lengthscale = torch.ones_like(kernel.lengthscale)
        self.unit = read_kernel(kernel)

    def unpack(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Lengthscales `(kernels, d)`, mixing `(o, l)`, noise variances `(o,)` and means `(o,)`."""
        o, num_scales = self.num_outputs, self.num_kernels * self.num_lengthscales
        num_weights = o * (1 + self.num_shared) if self.num_own else o * self.num_shared
        logs, weights, noise, mean = x.split([num_scales, num_weights, o, o])
        lengthscale = logs.exp().reshape(self.num_kernels, self.num_lengthscales) * self.spread
        shared = weights[: o * self.num_shared].reshape(o, self.num_shared)
        mixing = torch.cat([shared, weights[o * self.num_shared :].diag()], dim=-1) if self.num_own else shared
        return lengthscale, mixing, noise.exp(), mean

    def start(self, standard: Tensor) -> Tensor:
        """Principal components of the outcomes, and lengthscales that differ between latent functions."""
        o, dims = self.num_outputs, self.num_lengthscales
        steps = torch.arange(self.num_kernels, dtype=torch.float64)
        steps = steps.clamp_max(self.num_shared)
        logs = (math.log(0.5 * math.sqrt(dims)) - math.log(2.0) * steps).unsqueeze(-1).expand(-1, dims)
        filled = standard.nan_to_num(0.0)
        _, values, directions = torch.linalg.svd(filled, full_matrices=False)
        kept = min(self.num_shared, len(values))
        shared = torch.full((o, self.num_shared), 0.1, dtype=torch.float64)
        shared[:, :kept] = directions[:kept].mT * (values[:kept] / math.sqrt(len(filled))).clamp_min(0.1)
        own = torch.full((o if self.num_own else 0,), 0.5 if self.num_shared else 1.0, dtype=torch.float64)
        weights = torch.cat([shared.flatten(), own])
        noise = torch.full((o,), math.log(0.1), dtype=torch.float64)
        return torch.cat([logs.flatten(), weights.flatten(), noise, torch.zeros(o, dtype=torch.float64)])

    def bounds(self) -> tuple[Tensor, Tensor]:
        """Least and largest values."""
        o, num_scales = self.num_outputs, self.num_kernels * self.num_lengthscales
        num_weights = o * (1 + self.num_shared) if self.num_own else o * self.num_shared
        ends = []
        for side in (0, 1):
            sign = 2.0 * side - 1.0
            parts = [(num_scales, _LOG_LENGTHSCALE[side]), (num_weights, sign * _MOST_WEIGHT), (o, _LOG_NOISE[side])]
            values = [torch.full((count,), value, dtype=torch.float64) for count, value in (*parts, (o, sign * 10.0))]
            ends.append(torch.cat(values))
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

    def bound(self, x: Tensor) -> Tensor:
        r"""Titsias' bound on the log marginal likelihood."""
        lengthscale, mixing, noise, mean = self.unpack(x)
        problem = self.problem
        variances = noise[problem.output]
        residual = (problem.targets - mean[problem.output]) / variances.sqrt()
        phi = self.features(lengthscale, mixing)
        A = phi / variances.sqrt()
        eye = torch.eye(len(A), dtype=A.dtype)
        L, _ = cholesky(eye + A @ A.mT, name="the information of the observations")
        half = solve_lower(L, (A @ residual).unsqueeze(-1))
        slack = (mixing.square().sum(-1)[problem.output] - phi.square().sum(0)) / variances
        return (
            -0.5 * len(residual) * math.log(2.0 * math.pi)
            - 0.5 * variances.log().sum()
            - L.diagonal().log().sum()
            - 0.5 * (residual.square().sum() - half.square().sum())
            - 0.5 * slack.sum()
        )


def _finish(
    model: _Model,
    problem: _Problem,
    ascent: Ascent,
    *,
    X: Any,
    center: Tensor,
    scale: Tensor,
    outcomes: Tensor,
    began: float,
) -> MultiOutputFit:
    """The belief at the learned hyperparameters, in the user's units."""
    with torch.no_grad():
        lengthscale, mixing, noise, mean = model.unpack(ascent.x)
        phi = model.features(lengthscale, mixing)
        slack = (mixing.square().sum(-1)[problem.output] - phi.square().sum(0)) / noise[problem.output]
        kernels = model.kernels(lengthscale)
        dtype = X.dtype if isinstance(X, Tensor) and X.dtype == torch.float32 else torch.float64
        device = X.device if isinstance(X, Tensor) else None
        like = torch.empty(0, dtype=dtype, device=device)
        gp = MultiOutputGP.from_prior(
            [kernel.to(like) for kernel in kernels],
            problem.points.to(like),
            mixing=(mixing * scale.unsqueeze(-1)).to(like),
            mean=(center + scale * mean).to(like),
        )
        noise = (noise * scale.square()).to(like)
        gp, _ = gp.absorb(problem.inputs.to(like), outcomes.to(like), noise_variance=noise, inducing="keep")
    # The bound of the outcomes in their own units.
    bound = ascent.value - float(scale.log()[problem.output].sum())
    info = FitInfo(
        bound=bound,
        log_prior=0.0,
        history=ascent.history,
        seconds=time.perf_counter() - began,
        num_evaluations=ascent.num_evaluations,
        num_rejected=ascent.num_rejected,
        is_converged=ascent.is_converged,
        reason=ascent.reason,
        num_inducing=len(problem.points) * model.num_latents,
        trace_slack=float(slack.mean()),
    )
    return MultiOutputFit(gp, tuple(Gaussian(each) for each in noise), info)


def _read(X: Any, Y: Any) -> tuple[Tensor, Tensor]:
    """Inputs and outcomes in double precision, without rows in which nothing was observed."""
    X, Y = check_finite(check_float(X, "X"), "X").detach().double().cpu(), check_float(Y, "Y").detach().double().cpu()
    if X.dim() != 2 or Y.dim() != 2 or len(X) != len(Y) or 0 in (*X.shape, *Y.shape):
        raise ShapeError(
            f"X must have shape (n, d) and Y (n, o), one row for each input and one column for each output, but have "
            f"shapes {tuple(X.shape)} and {tuple(Y.shape)}."
        )
    if torch.isinf(Y).any():
        raise ValueRangeError("Y must be finite, or NaN where an output was not observed, but holds infinity.")
    counts = (~torch.isnan(Y)).sum(0)
    if int(counts.min()) < 2:
        raise ValueRangeError(
            f"Each output must have been observed at least twice to be fitted, but output {int(counts.argmin())} was "
            f"observed {int(counts.min())} times. Leave it out."
        )
    is_kept = ~torch.isnan(Y).all(-1)
    return X[is_kept], Y[is_kept]


def _num_latents(outputs: str, rank: int | None, num_outputs: int) -> int:
    if outputs == "independent":
        if rank is not None and rank != num_outputs:
            raise OptionError(f"Independent outputs have one latent function each, {num_outputs}; leave out rank.")
        return num_outputs
    shared = min(num_outputs, _DEFAULT_RANK) if rank is None else check_count(rank, "rank")
    return shared + num_outputs if outputs == "lmc" else shared


def _standardization(Y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of what was observed of each output."""
    center = Y.nanmean(0)
    scale = (Y - center).square().nanmean(0).sqrt()
    return center, torch.where(scale > 0, scale, 1.0)


def _prototype(kernel: Kernel | None, X: Tensor) -> Kernel:
    if kernel is None:
        return MaternKernel(2.5, ard_num_dims=X.shape[-1]).double()
    if type(kernel) not in (RBFKernel, MaternKernel, RQKernel):
        raise DTypeError(
            f"The kernel of several outputs must be an RBFKernel, MaternKernel or RQKernel, but is a "
            f"{type(kernel).__name__}. Its variance is learned with the mixing, so it needs no ScaleKernel."
        )
    check_num_dims(kernel, X.shape[-1])
    return deepcopy(kernel).double()


def _spread(X: Tensor) -> Tensor:
    """Standard deviations of the inputs; one where they do not vary."""
    deviation = X.std(0, unbiased=False)
    return torch.where(deviation > 0, deviation, 1.0)


def _problem(X: Tensor, Y: Tensor, prototype: Kernel, num_inducing: int) -> _Problem:
    """Lay the observed outcomes out, and choose inducing points that cover the inputs."""
    row, output = (~torch.isnan(Y)).nonzero().unbind(-1)
    unit = deepcopy(prototype).requires_grad_(False)
    unit.lengthscale = 0.25 * _spread(X) if unit.lengthscale.shape[-1] > 1 else 0.25 * _spread(X).mean()
    function = read_kernel(unit)
    chosen = pivoted_cholesky(function.matrix, X, num_inducing, variance=function.diagonal(X).expand(len(X)))
    return _Problem(X, X[chosen.pivots.sort().values], Y[row, output], row, output)
