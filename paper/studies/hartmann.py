"""Knowledge gradient and expected improvement on Hartmann6, with exact and with sparse models."""

import time
from dataclasses import dataclass
from typing import final

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.priors import GammaPrior
from torch import Tensor

from paper.baselines.adam_svgp import AdamLoop
from paper.baselines.paper_rules import paper_rule
from paper.problems import Hartmann6, PoissonHartmann6
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.acquisition import AbstractRule
from streamgp.likelihoods import AbstractLikelihood, Gaussian, Poisson
from streamgp.optimizers import Constraint, Optimizer, Search

__all__ = ["STUDY", "TASKS", "HartmannSettings", "HartmannTask", "make_optimizer"]


@final
@dataclass(frozen=True)
class HartmannSettings:
    """Settings of the loop.

    Attributes:
        num_initial: Uniform points that all methods of a seed share, with their outcomes.
        num_evaluations: Evaluations after these.
        num_inducing: Most inducing points of the sparse models; the exact ones have one at every input.
        num_restarts: Starts of each search.
        raw_samples: Points among which those starts are chosen.
        max_iterations: Most iterations of L-BFGS in a search.
        num_fantasies: Fantasies of knowledge gradient.
        num_samples: Samples of expected improvement.
    """

    num_initial: int
    num_evaluations: int
    num_inducing: int
    num_restarts: int
    raw_samples: int
    max_iterations: int
    num_fantasies: int
    num_samples: int


@final
@dataclass(frozen=True)
class HartmannTask:
    """What is optimized.

    Attributes:
        problem: The problem.
        likelihood: How its objective is observed.
        batch_size: How many points are evaluated at a time.
    """

    problem: Hartmann6 | PoissonHartmann6
    likelihood: str | AbstractLikelihood
    batch_size: int


def _gaussian_task(noise: float, batch_size: int) -> HartmannTask:
    return HartmannTask(Hartmann6(noise_variance=noise**2), _known_noise(noise**2), batch_size)


def _known_noise(variance: float) -> Gaussian:
    return Gaussian(variance, is_learned=False)


TASKS: dict[str, HartmannTask] = {
    "noise0.5-q3": _gaussian_task(0.5, 3),
    "noise0.1-q3": _gaussian_task(0.1, 3),
    "noise0.5-q1": _gaussian_task(0.5, 1),
    "noise0.1-q1": _gaussian_task(0.1, 1),
    "poisson-q3": HartmannTask(PoissonHartmann6(), "poisson", 3),
}


def run(problem: str, method: str, seed: int, settings: HartmannSettings) -> UnitOutcome:
    """Optimize by a method.

    Returns:
        After the initial points and each batch: `num_evaluations`; `best`, the largest noise-free value of the feasible
        points among them (zero if there is none); `recommended`, the noise-free value of the point that the model
        would recommend, evaluated or not (zero if it is infeasible). And `seconds` of the processor for each
        suggestion, fit and search together.
    """
    task, generator = TASKS[problem], torch.Generator().manual_seed(seed)
    optimizer = make_optimizer(task, method, seed, settings=settings)
    X = torch.rand(settings.num_initial, task.problem.dim, generator=generator, dtype=torch.float64)
    counts: list[int] = []
    best: list[float] = []
    recommended: list[float] = []
    seconds: list[float] = []
    while True:
        optimizer.tell(X, task.problem.observe(X, generator))
        counts.append(len(optimizer.X))
        best.append(rounded(float(_true_values(task, optimizer.X).max())))
        num_left = settings.num_initial + settings.num_evaluations - len(optimizer.X)
        if num_left > 0:
            began = time.process_time()
            X = optimizer.ask(min(task.batch_size, num_left))
            seconds.append(rounded(time.process_time() - began))
        # After the suggestion, as the model is then fitted to what is known.
        recommended.append(rounded(float(_true_values(task, optimizer.best(anywhere=True).X.unsqueeze(0)))))
        if num_left <= 0:
            return {"num_evaluations": counts, "best": best, "recommended": recommended, "seconds": seconds}


def make_optimizer(task: HartmannTask, method: str, seed: int, *, settings: HartmannSettings) -> Optimizer | AdamLoop:
    """The optimizer of a method.

    Args:
        task: What is optimized.
        method: Model and acquisition function, such as `"svgp-qkg"`; `"svgp-uncentered"` for the paper's mistake in it;
            `"adam-qkg"` for an SVGP that is trained as the paper trains it; or `"random"`.
        seed: Of everything random in it.
        settings: Settings of the loop.
    """
    model, _, acquisition = method.rpartition("-")
    is_exact = model == "exact"
    rule = paper_rule(acquisition, settings.num_fantasies, settings.num_samples)
    search = Search(
        num_restarts=settings.num_restarts, raw_samples=settings.raw_samples, max_iterations=settings.max_iterations
    )
    bound_noise = _known_noise(task.problem.noise_variance)
    if model == "adam":
        assert isinstance(rule, AbstractRule)
        likelihood = Poisson() if isinstance(task.likelihood, str) else task.likelihood
        return AdamLoop(
            task.problem.bounds,
            rule,
            likelihoods=(likelihood, bound_noise),
            make_kernel=lambda: _paper_kernel(task.problem.dim),
            num_inducing=settings.num_inducing,
            search=search,
            seed=seed,
        )
    return Optimizer(
        task.problem.bounds,
        likelihood=task.likelihood,
        constraints=[Constraint(upper=0.0, likelihood=bound_noise)],
        acquisition=rule,
        num_initial=settings.num_initial,
        num_inducing=settings.num_initial + settings.num_evaluations if is_exact else settings.num_inducing,
        kernel=_paper_kernel(task.problem.dim),
        refit="always",
        search=search,
        seed=seed,
    )


def _paper_kernel(num_dims: int) -> Kernel:
    """Matérn-5/2 with a lengthscale for each dimension, and BoTorch's priors of 2021."""
    base = MaternKernel(2.5, ard_num_dims=num_dims, lengthscale_prior=GammaPrior(3.0, 6.0))
    return ScaleKernel(base, outputscale_prior=GammaPrior(2.0, 0.15)).double()


def _true_values(task: HartmannTask, X: Tensor) -> Tensor:
    """Noise-free values of feasible points, and zero for others."""
    is_feasible = (task.problem.evaluate_constraints(X) <= 0.0).all(-1)
    return task.problem(X) * is_feasible


STUDY = Study(
    name="hartmann",
    problems={
        "noise0.5-q3": "Hartmann6 with one constraint, noise of standard deviation 0.5, batches of 3",
        "noise0.1-q3": "the same with noise 0.1",
        "noise0.5-q1": "noise 0.5, one point at a time",
        "noise0.1-q1": "noise 0.1, one point at a time",
        "poisson-q3": "counts of rate exp(f), batches of 3",
    },
    methods={
        "exact-qnei": "exact GP, qNEI",
        "exact-qkg": "exact GP, qKG",
        "exact-qei": "exact GP, qEI",
        "svgp-qnei": "SVGP, qNEI",
        "svgp-qkg": "SVGP, qKG",
        "svgp-qei": "SVGP, qEI",
        "adam-qnei": "SVGP by Adam, qNEI",
        "adam-qkg": "SVGP by Adam, qKG",
        "svgp-uncentered": "SVGP, qKG with uncentered pseudo-data",
        "random": "random",
    },
    settings=HartmannSettings,
    run=run,
)
