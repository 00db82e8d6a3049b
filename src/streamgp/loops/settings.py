"""Settings of a loop, checked."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar, final

from gpytorch.kernels import Kernel

from streamgp.acquisition import AbstractRule, AbstractSpace, Search
from streamgp.checks import check_choice, check_count, check_positive, check_seed, keep_count
from streamgp.errors import ArgumentTypeError, OptionError, ValueRangeError
from streamgp.gp.kernel_dims import check_num_dims
from streamgp.loops.outcomes import Constraint, Objective, Outcome
from streamgp.storage import register
from streamgp.training.priors import PRIORS

__all__ = [
    "LoopSettings",
    "SurrogateSettings",
    "Training",
    "answers",
    "check_kernel",
    "describe_search",
    "read_constraints",
    "read_refit",
    "read_seed",
]

Given = ParamSpec("Given")
Result = TypeVar("Result")

_REFITS = ("auto", "always", "never")


@register
@final
@dataclass(frozen=True)
class Training:
    """Options for learning hyperparameters, as `streamgp.fit` describes them.

    Attributes:
        objective: `"elbo"` or `"pll"`.
        beta: Weight of the divergence of the belief from the prior.
        priors: Set of priors, or None.
        num_starts: Number of starts.
        max_iterations: Most iterations of the last part; 200 by default, 10 from an earlier fit.
    """

    objective: str = "elbo"
    beta: float = 1.0
    priors: str | None = "dim_scaled"
    num_starts: int = 1
    max_iterations: int | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        check_choice(self.objective, ("elbo", "pll"), "objective")
        check_positive(self.beta, "beta")
        keep_count(self, "num_starts")
        if self.priors is not None:
            check_choice(self.priors, PRIORS, "priors")
        if self.max_iterations is not None:
            keep_count(self, "max_iterations")


@register
@final
@dataclass(frozen=True, eq=False)
class SurrogateSettings:
    """Options of the model of outcomes.

    Attributes:
        kernel: For the inputs of the model; None for a default.
        num_inducing: Most inducing points of each GP; None for a number that grows with the data.
        refit: When hyperparameters are learned again: `"always"`, `"never"`, `"auto"`, or a number of new outcomes.
        training: How they are learned.
        has_learned_points: Whether inducing points are learned; if not, they are the observed places, or chosen among
            them.
        is_standardized: Whether real outcomes are.
        is_bent: Whether outcomes of the only objective that are far too bad, and of constraints that are far from their
            bounds, count by their logarithm.
        is_ranked: Whether real outcomes that are standardized count by their ranks.
        is_eager: Whether the model learns in `tell`, so that no `ask` waits for it.
        renews_points: Whether each fit chooses its inducing points anew, and has more of them the more is known: 100 up
            to 250 rows, and then one for each five rows.
        is_smooth: Whether default kernels of real outcomes and of comparisons are smooth ones, not that of `fit`.
        learns_success: Whether failures are modeled.
        is_exact: Whether the model is BoTorch's exact GP, for comparison.
    """

    kernel: Kernel | None = None
    num_inducing: int | None = 100
    refit: str | int = "auto"
    training: Training = field(default_factory=Training)
    has_learned_points: bool = False
    is_standardized: bool = True
    is_bent: bool = False
    is_smooth: bool = False
    learns_success: bool = False
    is_exact: bool = False
    is_ranked: bool = False
    is_eager: bool = False
    renews_points: bool = False


@register
@final
@dataclass(frozen=True, eq=False)
class LoopSettings:
    """Settings of a loop.

    Attributes:
        space: Where points are from.
        objectives: What is to be large or small.
        constraints: Further outcomes with bounds.
        rule: How points are chosen.
        surrogate: How outcomes are modeled.
        search: How much work goes into the search for a point.
        num_initial: Number of outcomes before the model is asked.
        seed: Of everything random.
        threshold: Of the response, for the probability to exceed it.
    """

    space: AbstractSpace
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    rule: AbstractRule
    surrogate: SurrogateSettings
    search: Search
    num_initial: int
    seed: int
    threshold: float | None = None

    @property
    def is_preference(self) -> bool:
        """Tell whether points are compared and not observed."""
        return self.objectives[0].outcome.likelihood.num_inputs == 2

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """Observed quantities: the objectives, and then the constraints."""
        return (*(one.outcome for one in self.objectives), *(one.outcome for one in self.constraints))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the outcomes in tables."""
        constraints = (one.name or f"constraint {j}" for j, one in enumerate(self.constraints))
        return (*(one.name for one in self.objectives), *constraints)

    def outcome_index(self, output: int | str) -> int:
        """Find an outcome by its name or its number, objectives first and then constraints."""
        names = self.names
        if isinstance(output, str) and output not in names:
            raise OptionError(f"output must be one of {', '.join(map(repr, names))}, but is {output!r}.")
        index = names.index(output) if isinstance(output, str) else check_count(output, "output", minimum=0)
        if index >= len(names):
            raise ValueRangeError(f"output must be below {len(names)}, the number of outcomes, but is {output}.")
        return index

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the outcomes in errors."""
        named = [f"constraint {one.name or j!r}" for j, one in enumerate(self.constraints)]
        return (*(f"the objective {one.name!r}" for one in self.objectives), *named)


def answers(**advice: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Answer arguments that other libraries have with the right word, instead of as unexpected.

    Args:
        advice: What to write instead, by the name of an argument that the function does not have.
    """

    def wrap(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(function)
        def wrapped(*args: Given.args, **options: Given.kwargs) -> Result:
            for name in advice.keys() & options.keys():
                raise OptionError(f"There is no argument {name!r}. {advice[name]}")
            return function(*args, **options)

        return wrapped

    return wrap


def read_seed(seed: int | None) -> int:
    """Check a seed, or draw one that is reported, so that a run can be repeated."""
    return secrets.randbelow(2**31) if seed is None else check_seed(seed)


def describe_search(settings: LoopSettings) -> Any:
    """All that says what is searched, to be compared: of spaces, outcomes, rule and seed, but not of the model."""
    outcomes = [(one.name, one.maximize, one.threshold, repr(one.likelihood)) for one in settings.objectives]
    bounds = [(one.name, one.lower, one.upper, repr(one.likelihood)) for one in settings.constraints]
    space = settings.space
    return (
        type(space).__name__,
        space.in_words,
        outcomes,
        bounds,
        repr(settings.rule),
        settings.num_initial,
        settings.seed,
    )


def read_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """Check a list of constraints."""
    rows = tuple(constraints) if isinstance(constraints, Sequence) else (constraints,)
    for one in rows:
        if not isinstance(one, Constraint):
            raise ArgumentTypeError(
                f"constraints must be a list of streamgp.Constraint, but has a {type(one).__name__}. "
                "Write constraints=[streamgp.Constraint(upper=1.0)]."
            )
    return rows


def read_refit(refit: Any) -> str | int:
    """Check a policy of refitting."""
    if isinstance(refit, str):
        return check_choice(refit, _REFITS, "refit")
    if isinstance(refit, int) and not isinstance(refit, bool):
        return check_count(refit, "refit")
    raise OptionError(f"refit must be one of {', '.join(map(repr, _REFITS))} or a whole number, but is {refit!r}.")


def check_kernel(kernel: Any, num_dims: int) -> Kernel | None:
    """Return a kernel of inputs with so many columns, or None."""
    if kernel is not None and not isinstance(kernel, Kernel):
        raise ArgumentTypeError(f"kernel must be a kernel of GPyTorch, but is a {type(kernel).__name__}.")
    if kernel is not None:
        check_num_dims(kernel, num_dims)
    return kernel
