"""Fitting several correlated outputs at once, by the collapsed bound of their linear model of coregionalization."""

import math
import os
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, final

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, RQKernel
from jaxtyping import Float
from torch import Tensor

from streamgp.checks import ArrayLike, check_choice, check_count, check_finite, check_float, check_positive
from streamgp.conditioning import AbsorbInfo, ConditionedMultiOutputGP, MultiOutputGP
from streamgp.conditioning.multi_output.conditioned_gp import Likelihoods
from streamgp.conditioning.multi_output.prediction import MultiOutputPrediction
from streamgp.display import html_table
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.gp import read_kernel
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.likelihoods import AbstractLikelihood, Gaussian
from streamgp.likelihoods.registry import read_likelihood
from streamgp.linalg import pivoted_cholesky
from streamgp.storage import register, save
from streamgp.threads import limit_threads
from streamgp.training.arguments import has_constants
from streamgp.training.full_batch import SITE_GAIN, SITE_ITERATIONS
from streamgp.training.lbfgs import Ascent, maximize
from streamgp.training.output_model import OutputModel, OutputProblem
from streamgp.training.result import FitInfo
from streamgp.training.scaling import spread
from streamgp.training.sites_bound import FINAL_SITE_TOLERANCE, SITE_TOLERANCE

__all__ = ["MultiOutputFit", "OutputUnits", "fill_gaps", "fit_outputs", "read_likelihoods", "read_outcomes"]
# Noise to start with, relative to the variance of an output.
_START_NOISE = 0.1
# Rows whose distances to all others are in work together.
_ROWS_AT_ONCE = 1024


def read_outcomes(X: Any, Y: Any) -> tuple[Tensor, Tensor]:
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


def read_likelihoods(likelihood: Any, Y: Tensor) -> list[AbstractLikelihood]:
    """One for each output, whose outcomes it admits."""
    o = Y.shape[-1]
    given = list(likelihood) if isinstance(likelihood, list | tuple) else [likelihood] * o
    if len(given) != o:
        raise OptionError(
            f"likelihood must be one for all outputs or one for each of the {o}, but there are {len(given)}."
        )
    read = []
    for index, each in enumerate(given):
        one = Gaussian(_START_NOISE * float(_variance(Y[:, index]))) if each is None else read_likelihood(each)
        if one.num_inputs != 1 or one.num_latents != 1 or has_constants(one):
            raise UnsupportedError(
                "Each output has a likelihood of single inputs and one latent function, without constants for each "
                f"observation, but output {index} has a {type(one).__name__}."
            )
        one.check_targets(Y[:, index][~torch.isnan(Y[:, index])])
        read.append(one)
    return read


def _variance(y: Tensor) -> Tensor:
    variance = (y - y.nanmean()).square().nanmean()
    return torch.where(variance > 0, variance, 1.0)


@final
@dataclass(frozen=True, eq=False)
class OutputUnits:
    """Units in which outputs are trained, and where their means start.

    Attributes:
        center: Subtracted from outcomes whose likelihood has a location and a scale; zero for others.
        scale: Divides them after that; one for others.
        mean: Means of the latent functions to start from, in these units.
        spread: Mean and standard deviation of the outcomes themselves.
    """

    center: Float[Tensor, " o"]
    scale: Float[Tensor, " o"]
    mean: Float[Tensor, " o"]
    spread: tuple[Tensor, Tensor]

    @classmethod
    def of(cls, Y: Tensor, likelihoods: Sequence[AbstractLikelihood]) -> "OutputUnits":
        """Units that suit outcomes."""
        center = Y.nanmean(0)
        scale = (Y - center).square().nanmean(0).sqrt()
        scale = torch.where(scale > 0, scale, 1.0)
        is_scaled = torch.tensor([each.is_location_scale for each in likelihoods])
        starts = [
            torch.zeros(()) if each.is_location_scale else _latent_mean(each, Y[:, j])
            for j, each in enumerate(likelihoods)
        ]
        zero, one = torch.zeros_like(center), torch.ones_like(scale)
        mean = torch.stack([start.double() for start in starts])
        return cls(torch.where(is_scaled, center, zero), torch.where(is_scaled, scale, one), mean, (center, scale))

    def scaled(self, Y: Tensor) -> Tensor:
        """Outcomes in these units."""
        return (Y - self.center) / self.scale

    def standard(self, Y: Tensor) -> Tensor:
        """Outcomes of unit variance, whatever their likelihood."""
        return (Y - self.spread[0]) / self.spread[1]

    def scaled_likelihoods(self, likelihoods: Sequence[AbstractLikelihood], *, is_back: bool = False) -> list[Any]:
        """Likelihoods in these units, or back in the user's."""
        scales = (1.0 / self.scale if is_back else self.scale).tolist()
        return [
            each.rescaled(scale) if each.is_location_scale else each
            for each, scale in zip(likelihoods, scales, strict=True)
        ]


def _latent_mean(likelihood: AbstractLikelihood, y: Tensor) -> Tensor:
    """The latent value whose response is the mean of the outcomes, drawn in a little from the ends of the support."""
    y = y[~torch.isnan(y)]
    lower, upper = likelihood.support
    mean, n = y.mean(), len(y)
    if upper < math.inf and lower > -math.inf:
        mean = (y.sum() + 0.5 * (lower + upper)) / (n + 1.0)
    elif lower > -math.inf:
        mean = (y.sum() + 0.5) / n
    return likelihood.inverse_response(mean)


def fill_gaps(X: Float[Tensor, "n d"], Y: Float[Tensor, "n o"]) -> Float[Tensor, "n o"]:
    """Outcomes with those of the nearest input where an output was observed in place of what is missing.

    Outputs that are seldom observed together, such as tasks, can then be compared.

    Args:
        X: Inputs, in units in which they can be compared.
        Y: Outcomes, NaN where missing; each output was observed somewhere.
    """
    filled = Y.clone()
    for j in range(Y.shape[-1]):
        is_missing = torch.isnan(Y[:, j])
        seen = (~is_missing).nonzero().squeeze(-1)
        for part in is_missing.nonzero().squeeze(-1).split(_ROWS_AT_ONCE):
            filled[part, j] = Y[seen[torch.cdist(X[part], X[seen]).argmin(-1)], j]
    return filled


CHOICES = ("icm", "lmc", "independent")
# Shared latent functions by default: enough for common and opposed movements, few enough to learn from short series.
_DEFAULT_RANK = 3


@register
@final
@dataclass(frozen=True, eq=False)
class MultiOutputFit:
    """Fitted outputs.

    Attributes:
        gp: The GP of all outputs, in the user's units.
        likelihoods: The fitted likelihood of each output.
        info: Diagnostics.
    """

    gp: MultiOutputGP
    likelihoods: tuple[AbstractLikelihood, ...]
    info: FitInfo

    @property
    def likelihood(self) -> list[AbstractLikelihood]:
        """The fitted likelihood of each output, as `MultiOutputGP.condition` and `absorb` take it."""
        return list(self.likelihoods)

    @property
    def noise_variance(self) -> Float[Tensor, " o"]:
        """Noise variances of the outputs, all of which must be Gaussian."""
        variances = []
        for index, each in enumerate(self.likelihoods):
            noise = each.gaussian_noise_variance
            if noise is None:
                raise UnsupportedError(
                    f"Output {index} has a {type(each).__name__} likelihood, which has no noise variance. Pass "
                    "likelihood=result.likelihood instead."
                )
            variances.append(noise.reshape(()))
        return torch.stack(variances)

    def predict(self, X: ArrayLike, *, output: int | Sequence[int] | None = None) -> MultiOutputPrediction:
        """Predict the latent functions, in the user's units; see `MultiOutputGP.predict`."""
        return self.gp.predict(X, output=output)

    def sample(
        self,
        X: ArrayLike,
        num_samples: int = 1,
        *,
        output: int | Sequence[int] | None = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        """Draw joint samples of the latent functions, in the user's units; see `MultiOutputGP.sample`."""
        return self.gp.sample(X, num_samples, output=output, generator=generator)

    def condition(
        self, X: ArrayLike, Y: ArrayLike, *, noise_variance: ArrayLike | None = None, likelihood: Likelihoods = None
    ) -> ConditionedMultiOutputGP:
        """Condition on further outcomes, with the fitted likelihoods by default; see `MultiOutputGP.condition`."""
        return self.gp.condition(X, Y, **self._noise(noise_variance, likelihood))

    def absorb(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        noise_variance: ArrayLike | None = None,
        likelihood: Likelihoods = None,
        num_inducing: int | None = None,
    ) -> tuple["MultiOutputFit", AbsorbInfo]:
        """Absorb further outcomes, with the fitted likelihoods by default; see `MultiOutputGP.absorb`."""
        noise = self._noise(noise_variance, likelihood)
        gp, info = self.gp.absorb(X, Y, num_inducing=num_inducing, **noise)
        return replace(self, gp=gp), info

    def _noise(self, noise_variance: ArrayLike | None, likelihood: Likelihoods) -> dict[str, Any]:
        if noise_variance is None and likelihood is None:
            likelihood = self.likelihood
        return {"noise_variance": noise_variance, "likelihood": likelihood}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file that `streamgp.load` reads."""
        save(self, path)

    def __repr__(self) -> str:
        info = self.info
        return (
            f"MultiOutputFit({len(self.likelihoods)} outputs, {info.num_inducing} inducing points, {self._kinds}, "
            f"bound {info.bound:.4g}, {len(info.history)} iterations in {info.seconds:.2g} s)"
        )

    def _repr_html_(self) -> str:
        facts = {"outputs": len(self.likelihoods), "likelihood": self._kinds}
        return html_table("MultiOutputFit", facts | self.info.facts, line=self.info.history)

    @property
    def _kinds(self) -> str:
        return ", ".join(dict.fromkeys(type(each).__name__ for each in self.likelihoods))


def fit_outputs(
    X: Any,
    Y: Any,
    *,
    outputs: str,
    rank: int | None = None,
    likelihood: Any = None,
    kernel: Kernel | None = None,
    num_inducing: int = 100,
    max_iterations: int = 200,
    tolerance: float = 1e-4,
    callback: Callable[[float], None] | None = None,
) -> MultiOutputFit:
    r"""Fit $f_o(x) = \mu_o + \sum_l a_{ol} g_l(x)$ with a likelihood for each output.

    Maximizes, with weak priors, Titsias' bound with the belief in closed form, by L-BFGS in double precision; where an
    output is not Gaussian, the bound at Gaussian sites, which are found anew between. Latent functions share their
    inducing points, chosen among the inputs by pivoted Cholesky; the mixing starts from the principal components of the
    outcomes, with the nearest ones where some are missing.

    Args:
        X: Inputs `(n, d)`.
        Y: Outcomes `(n, o)`, NaN where an output was not observed.
        outputs: `"lmc"` (latent functions that outputs share and one that each has for itself, with lengthscales of
            their own), `"icm"` (shared latent functions of one kernel), or `"independent"`.
        rank: Number of shared latent functions; at most 3 by default.
        likelihood: One of `streamgp.likelihoods` or its name, for all outputs, or a list with one for each; Gaussian
            with learned noise by default.
        kernel: Kernel of a latent function, with a lengthscale, copied for each; Matérn-5/2 with a lengthscale for each
            dimension by default. Its variance is that of the mixing.
        num_inducing: Number of inducing points for each latent function.
        max_iterations: Most iterations of L-BFGS.
        tolerance: Training stops when five iterations gain less than this for each observation.
        callback: Called with the bound after each iteration.

    Returns:
        The fitted GP, the likelihood of each output, and diagnostics.

    References:
        Alvarez, Rosasco, Lawrence (2012), Kernels for vector-valued functions: a review.
        Titsias (2009), Variational learning of inducing variables in sparse Gaussian processes.
    """
    began = time.perf_counter()
    check_choice(outputs, CHOICES, "outputs")
    inputs, outcomes = read_outcomes(X, Y)
    o = outcomes.shape[-1]
    given = read_likelihoods(likelihood, outcomes)
    num_latents = _num_latents(outputs, rank, o)
    units = OutputUnits.of(outcomes, given)
    prototype = _prototype(kernel, inputs)
    problem = _problem(inputs, units.scaled(outcomes), prototype, check_count(num_inducing, "num_inducing"))
    model = OutputModel(
        prototype, problem, outputs=outputs, num_latents=num_latents, likelihoods=units.scaled_likelihoods(given)
    )
    search = _ClimbOptions(
        check_count(max_iterations, "max_iterations"), check_positive(tolerance, "tolerance"), callback
    )
    with limit_threads():
        filled = fill_gaps(inputs / spread(inputs), units.standard(outcomes))
        ascent = _climb(model, model.start(filled, units.mean), units.mean, search)
        return _finish(model, ascent, X=X, units=units, outcomes=outcomes, began=began)


class _ClimbOptions(NamedTuple):
    """Options of training."""

    max_iterations: int
    tolerance: float
    callback: Callable[[float], None] | None


def _climb(model: OutputModel, x: Tensor, mean: Tensor, search: _ClimbOptions) -> Ascent:
    """Maximize the bound; where an output is not Gaussian, with sites that are found anew after some iterations."""
    options: dict[str, Any] = {
        "bounds": model.bounds(mean),
        "scale": float(len(model.problem.targets)),
        "on_iteration": search.callback,
    }
    if model.is_gaussian:
        return maximize(model.objective, x, max_iterations=search.max_iterations, tolerance=search.tolerance, **options)
    spent, evaluations, rejected = 0, 0, 0
    history: list[float] = []
    value, reason, is_converged = -math.inf, "the largest number of iterations was reached", False
    while spent < search.max_iterations:
        sites = model.sites(x, tolerance=SITE_TOLERANCE)
        steps = min(SITE_ITERATIONS, search.max_iterations - spent)
        gain = SITE_GAIN * search.tolerance
        part = maximize(partial(model.objective, sites=sites), x, max_iterations=steps, tolerance=gain, **options)
        x, spent = part.x, spent + max(len(part.history) - 1, 1)
        history.extend(part.history if not history else part.history[1:])
        evaluations, rejected = evaluations + part.num_evaluations, rejected + part.num_rejected
        if part.value - value < gain * options["scale"]:
            reason, is_converged = "new sites and hyperparameters gained less than the tolerance", True
            break
        value = part.value
    return replace(
        part,
        history=tuple(history),
        num_evaluations=evaluations,
        num_rejected=rejected,
        reason=reason,
        is_converged=is_converged,
    )


def _noise_variances(likelihoods: Sequence[AbstractLikelihood]) -> Float[Tensor, " o"]:
    """Noise variances of Gaussian likelihoods."""
    variances = [each.gaussian_noise_variance for each in likelihoods]
    return torch.stack([variance for variance in variances if variance is not None])


def _finish(
    model: OutputModel, ascent: Ascent, *, X: Any, units: OutputUnits, outcomes: Tensor, began: float
) -> MultiOutputFit:
    """The belief at the learned hyperparameters, in the user's units."""
    problem = model.problem
    with torch.no_grad():
        lengthscale, mixing, likelihoods, mean = model.unpack(ascent.x)
        features, mixed = model.observed(ascent.x)
        sites = None if model.is_gaussian else model.sites(ascent.x, tolerance=FINAL_SITE_TOLERANCE)
        bound, log_prior = float(model.bound(ascent.x, sites)), float(model.log_prior(ascent.x))
        weight = 1.0 / _noise_variances(mixed.parts)[problem.output] if sites is None else sites.precision
        kernels = model.kernels(lengthscale)
        like = check_float(X, "X").detach().new_empty(0)
        gp = MultiOutputGP.from_prior(
            [kernel.to(like) for kernel in kernels],
            problem.points.to(like),
            mixing=(mixing * units.scale.unsqueeze(-1)).to(like),
            mean=(units.center + units.scale * mean).to(like),
        )
        fitted = [_cast(each, like) for each in units.scaled_likelihoods(likelihoods, is_back=True)]
        seen: dict[str, Any] = {"likelihood": fitted}
        if model.is_gaussian:
            seen = {"noise_variance": _noise_variances(fitted)}
        gp, _ = gp.absorb(problem.inputs.to(like), outcomes.to(like), inducing="keep", **seen)
    # The bound of the outcomes in their own units.
    bound = bound - float(units.scale.log()[problem.output].sum())
    info = FitInfo(
        bound=bound,
        log_prior=log_prior,
        history=ascent.history,
        seconds=time.perf_counter() - began,
        num_evaluations=ascent.num_evaluations,
        num_rejected=ascent.num_rejected,
        is_converged=ascent.is_converged,
        reason=ascent.reason,
        num_inducing=len(problem.points) * model.num_latents,
        trace_slack=float((features.slack * weight).mean()),
    )
    return MultiOutputFit(gp, tuple(fitted), info)


def _cast(likelihood: AbstractLikelihood, like: Tensor) -> AbstractLikelihood:
    """A likelihood whose learned values have a dtype and device."""
    values = {name: value.detach().to(like) for name, value in likelihood.learnable().items()}
    return likelihood.with_learnable(values) if values else likelihood


def _num_latents(outputs: str, rank: int | None, num_outputs: int) -> int:
    if outputs == "independent":
        if rank is not None and rank != num_outputs:
            raise OptionError(f"Independent outputs have one latent function each, {num_outputs}; leave out rank.")
        return num_outputs
    shared = min(num_outputs, _DEFAULT_RANK) if rank is None else check_count(rank, "rank")
    return shared + num_outputs if outputs == "lmc" else shared


def _prototype(kernel: Kernel | None, X: Tensor) -> Kernel:
    if kernel is None:
        return MaternKernel(2.5, ard_num_dims=X.shape[-1]).double()
    if type(kernel) not in (RBFKernel, MaternKernel, RQKernel):
        raise ArgumentTypeError(
            f"The kernel of several outputs must be an RBFKernel, MaternKernel or RQKernel, but is a "
            f"{type(kernel).__name__}. Its variance is learned with the mixing, so it needs no ScaleKernel."
        )
    check_num_dims(kernel, X.shape[-1])
    return deepcopy(kernel).double()


def _problem(X: Tensor, Y: Tensor, prototype: Kernel, num_inducing: int) -> OutputProblem:
    """Lay the observed outcomes out, and choose inducing points that cover the inputs."""
    row, output = (~torch.isnan(Y)).nonzero().unbind(-1)
    unit = deepcopy(prototype).requires_grad_(False)
    unit.lengthscale = 0.25 * spread(X) if unit.lengthscale.shape[-1] > 1 else 0.25 * spread(X).mean()
    function = read_kernel(unit)
    chosen = pivoted_cholesky(function.matrix, X, num_inducing, variance=function.diagonal(X).expand(len(X)))
    return OutputProblem(X, X[chosen.pivots.sort().values], Y[row, output], row, output)
