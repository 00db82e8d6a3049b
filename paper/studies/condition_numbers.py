"""How well the matrices are conditioned that a long look-ahead factorizes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from paper.baselines.jittered_pseudo_data import jittered_pseudo_data
from paper.problems import Rover
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.acquisition.lookahead_thompson import extend_paths, start_paths
from streamgp.acquisition.samplers import read_sampler
from streamgp.acquisition.trust_region import draw_in_region
from streamgp.conditioning import SparseGP
from streamgp.models import OnlineGP
from streamgp.optimizers import TurboOptimizer

__all__ = ["STUDY", "ConditionSettings", "log10_condition"]

# The matrix that is factorized once points P have been followed to.
Matrix = Callable[[Float[Tensor, "t d"]], Float[Tensor, "k k"]]
# Of a matrix that is singular in double precision.
_LARGEST = -math.log10(torch.finfo(torch.float64).eps)


@final
@dataclass(frozen=True)
class ConditionSettings:
    """Settings of the look-ahead.

    Attributes:
        num_points: Evaluations of rover to which the models are fitted.
        num_inducing: Most inducing points; with one at each evaluation the SVGP would be an exact GP.
        objective: For which the SVGP is fitted.
        num_candidates: Points among which paths are followed.
        num_paths: Number of paths.
        depth: Largest depth.
        length: Side of the region around the best point.
    """

    num_points: int
    num_inducing: int
    objective: str
    num_candidates: int
    num_paths: int
    depth: int
    length: float


@final
@dataclass(frozen=True, eq=False)
class _FittedModel:
    """A model of either kind, with what its matrices are made from."""

    model: Any
    kernel: Any
    noise_variance: Tensor

    @property
    def gp(self) -> SparseGP:
        """The sparse GP of a sparse model."""
        gp: SparseGP = self.model.gps[0]
        return gp


def run(problem: str, method: str, seed: int, settings: ConditionSettings) -> UnitOutcome:
    """Follow paths, and compute condition numbers along them.

    Returns:
        `log10_condition`, a row for each path and a column for each depth from zero on; and for the method
        `"conditioned"` also `log10_inducing`, that of the inducing points' covariance, which it factorizes beforehand.
    """
    X, y = _evaluations(seed, settings)
    fitted = _fit("exact" if method == "exact" else "sparse", X, y, seed=seed, settings=settings)
    matrix = _MATRICES[method](fitted, X)
    paths = _paths(fitted, X, y, seed=seed, settings=settings)
    outcome: UnitOutcome = {
        "log10_condition": [[log10_condition(matrix(P[:t])) for t in range(len(P) + 1)] for P in paths]
    }
    if method == "conditioned":
        outcome["log10_inducing"] = log10_condition(_kernel_matrix(fitted.kernel, fitted.gp.inducing_points))
    return outcome


def _evaluations(seed: int, settings: ConditionSettings) -> tuple[Tensor, Tensor]:
    generator, rover = torch.Generator().manual_seed(seed), Rover()
    X = torch.rand(settings.num_points, rover.dim, generator=generator, dtype=torch.float64)
    return X, rover.observe(X, generator)


def _fit(kind: str, X: Tensor, y: Tensor, *, seed: int, settings: ConditionSettings) -> _FittedModel:
    optimizer = TurboOptimizer(
        Rover().bounds,
        model=kind,
        objective=settings.objective,
        num_inducing=settings.num_inducing,
        num_initial=len(X),
        seed=seed,
    )
    optimizer.tell(X, y)
    model: Any = optimizer.model()
    if isinstance(model, OnlineGP):
        gp, likelihood = model.gps[0], model.likelihoods[0]
        assert isinstance(gp, SparseGP)
        assert likelihood is not None
        noise = likelihood.gaussian_noise_variance
        assert noise is not None
        return _FittedModel(model, gp.kernel, noise.detach().to(X))
    return _FittedModel(model, model.covar_module, model.likelihood.noise.detach().reshape(()))


def _paths(
    fitted: _FittedModel, X: Tensor, y: Tensor, *, seed: int, settings: ConditionSettings
) -> list[Float[Tensor, "t d"]]:
    """The points of each path, in order; all depths choose from one set."""
    generator = torch.Generator().manual_seed(seed)
    lengthscale = fitted.kernel.base_kernel.lengthscale.detach().reshape(-1)
    C = draw_in_region(
        settings.num_candidates, X[y.argmax()], length=settings.length, lengthscale=lengthscale, generator=generator
    )
    with torch.no_grad():
        sampler = read_sampler(fitted.model, "joint")
        paths = start_paths(sampler, C, settings.num_paths, generator)
        for _ in range(settings.depth - 1):
            paths = extend_paths(sampler, paths, C, generator)
    return [paths.points[index] for index in paths.index]


def _exact_matrix(fitted: _FittedModel, X: Tensor) -> Matrix:
    return lambda P: _with_noise(_kernel_matrix(fitted.kernel, torch.cat([X, P])), fitted.noise_variance)


def _pseudo_matrix(fitted: _FittedModel, pseudo_noise: Float[Tensor, "m m"]) -> Matrix:
    Z = fitted.gp.inducing_points

    def matrix(P: Tensor) -> Tensor:
        noise = _with_noise(P.new_zeros(len(P), len(P)), fitted.noise_variance)
        return _kernel_matrix(fitted.kernel, torch.cat([Z, P])) + torch.block_diag(pseudo_noise, noise)

    return matrix


def _conditioned_matrix(fitted: _FittedModel) -> Matrix:
    process = fitted.gp.process
    return lambda P: _with_noise(process.covariance(P), fitted.noise_variance)


def _with_noise(K: Float[Tensor, "k k"], noise_variance: Tensor) -> Float[Tensor, "k k"]:
    return K + noise_variance * torch.eye(len(K), dtype=K.dtype)


@torch.no_grad()
def _kernel_matrix(kernel: Kernel, X: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    K: Tensor = kernel(X).to_dense()
    return K


@torch.no_grad()
def log10_condition(matrix: Float[Tensor, "k k"]) -> float:
    """Of the largest and smallest eigenvalue; zero for no rows, at most that of double precision."""
    if not len(matrix):
        return 0.0
    values = torch.linalg.eigvalsh(0.5 * (matrix + matrix.mT))
    ratio = float(values[-1] / values[0]) if float(values[0]) > 0.0 else math.inf
    return float(rounded(min(math.log10(ratio), _LARGEST) if math.isfinite(ratio) else _LARGEST))


_MATRICES: dict[str, Callable[[_FittedModel, Tensor], Matrix]] = {
    "exact": _exact_matrix,
    "exact-shared": _exact_matrix,
    "pseudo-data": lambda fitted, X: _pseudo_matrix(fitted, torch.linalg.inv(fitted.gp.pseudo_data().precision)),
    "pseudo-data-jittered": lambda fitted, X: _pseudo_matrix(fitted, jittered_pseudo_data(fitted.gp).noise_covariance),
    "conditioned": lambda fitted, X: _conditioned_matrix(fitted),
}
STUDY = Study(
    name="condition_numbers",
    problems={"rover": "Look-ahead around the best of random evaluations of rover, 60 dimensions"},
    methods={
        "exact": "exact GP",
        "exact-shared": "exact GP, hyperparameters of the SVGP",
        "pseudo-data": "SVGP, pseudo-data",
        "pseudo-data-jittered": "SVGP, pseudo-data with the paper's jitter",
        "conditioned": "SVGP, conditioned process",
    },
    settings=ConditionSettings,
    run=run,
)
