"""The options of an optimizer, checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from gpytorch.kernels import Kernel

from streamgp.checks import check_choice, check_count
from streamgp.errors import DTypeError, OptionError, UnsupportedError
from streamgp.optimizers.box import Box
from streamgp.optimizers.outcomes import Constraint, Outcome

__all__ = ["ACQUISITIONS", "CONSTRAINED", "REFITS", "Search", "Settings"]

ACQUISITIONS = ("qkg", "qnei", "qei", "qucb", "gibbon", "multi_step", "thompson", "lts", "random")
# Those that weigh a point by its chance of being feasible.
CONSTRAINED = ("qkg", "multi_step", "qnei", "qei", "thompson", "random")
REFITS = ("auto", "always", "never")
_MOST_INITIAL = 30


@final
@dataclass(frozen=True)
class Search:
    """How much work goes into one suggestion.

    Attributes:
        num_restarts: Starts of the gradient search.
        raw_samples: Points among which those starts are chosen.
        max_iterations: Most iterations of L-BFGS.
        num_fantasies: Fantasies of knowledge gradient.
        num_samples: Monte Carlo samples of the other acquisition functions.
        num_candidates: Points among which Thompson sampling chooses.
    """

    num_restarts: int = 5
    raw_samples: int = 128
    max_iterations: int = 100
    num_fantasies: int = 64
    num_samples: int = 128
    num_candidates: int = 1000

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, value in vars(self).items():
            check_count(value, name)


@final
@dataclass(frozen=True, eq=False)
class Settings:
    """What an optimizer was made with; described there."""

    box: Box
    objective: Outcome
    maximize: bool
    constraints: tuple[Constraint, ...]
    acquisition: str
    num_initial: int
    num_inducing: int
    kernel: Kernel | None
    refit: str | int
    search: Search
    seed: int

    @classmethod
    def read(
        cls,
        bounds: Any,
        *,
        likelihood: Any,
        maximize: Any,
        constraints: Any,
        acquisition: Any,
        num_initial: Any,
        num_inducing: Any,
        kernel: Any,
        refit: Any,
        search: Any,
        seed: Any,
    ) -> "Settings":
        """Check all options."""
        box, objective = Box.read(bounds), Outcome.read(likelihood)
        rows = _read_constraints(constraints)
        _check_types(maximize=maximize, kernel=kernel, search=search)
        check_choice(acquisition, ACQUISITIONS, "acquisition")
        _check_combination(objective, rows, acquisition, maximize=maximize)
        default = min(2 * (box.num_dims + 1), _MOST_INITIAL)
        return cls(
            box=box,
            objective=objective,
            maximize=maximize,
            constraints=rows,
            acquisition=acquisition,
            num_initial=default if num_initial is None else check_count(num_initial, "num_initial"),
            num_inducing=check_count(num_inducing, "num_inducing"),
            kernel=kernel,
            refit=_read_refit(refit),
            search=Search() if search is None else search,
            seed=check_count(seed, "seed", minimum=0),
        )

    @property
    def is_preference(self) -> bool:
        """Whether points are compared and not observed."""
        return self.objective.likelihood.num_inputs == 2

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What is observed: the objective, and then the constraints."""
        return (self.objective, *(one.outcome for one in self.constraints))

    @property
    def is_reversed(self) -> bool:
        """Whether the objective is modelled with its sign changed: where it is a real number to be minimised."""
        return not self.maximize and self.objective.is_real

    @property
    def weight(self) -> float:
        """By which the modelled objective is multiplied to be maximised."""
        return 1.0 if self.maximize or self.is_reversed else -1.0


def _read_constraints(constraints: Any) -> tuple[Constraint, ...]:
    rows = tuple(constraints) if isinstance(constraints, Sequence) else (constraints,)
    for one in rows:
        if not isinstance(one, Constraint):
            raise DTypeError(
                f"constraints must be a list of streamgp.Constraint, but has a {type(one).__name__}. "
                "Write constraints=[streamgp.Constraint(upper=1.0)]."
            )
    return rows


def _check_combination(
    objective: Outcome, constraints: tuple[Constraint, ...], acquisition: str, *, maximize: bool
) -> None:
    """Refuse options that make no sense together."""
    is_preference = objective.likelihood.num_inputs != 1
    if is_preference and constraints:
        raise UnsupportedError(
            "Comparisons cannot be combined with constraints, as no outcome is observed at a point. "
            "Leave the constraints out."
        )
    if is_preference and not maximize:
        raise UnsupportedError(
            "What is preferred has the larger utility, which cannot be minimised. Swap winners and losers instead."
        )
    if constraints and acquisition not in CONSTRAINED:
        raise UnsupportedError(
            f"The acquisition {acquisition!r} knows no constraints. "
            f"Those that do are {', '.join(map(repr, CONSTRAINED))}."
        )
    if acquisition == "lts" and not maximize and not objective.is_real:
        raise UnsupportedError(
            f"The acquisition 'lts' cannot minimise {type(objective.likelihood).__name__} outcomes. "
            f"Those that can are {', '.join(repr(one) for one in ACQUISITIONS if one != 'lts')}."
        )


def _read_refit(refit: Any) -> str | int:
    if isinstance(refit, str):
        return check_choice(refit, REFITS, "refit")
    if isinstance(refit, int) and not isinstance(refit, bool):
        return check_count(refit, "refit")
    raise OptionError(f"refit must be one of {', '.join(map(repr, REFITS))} or a whole number, but is {refit!r}.")


def _check_types(*, maximize: Any, kernel: Any, search: Any) -> None:
    if not isinstance(maximize, bool):
        raise DTypeError(f"maximize must be True or False, but is {maximize!r}.")
    if kernel is not None and not isinstance(kernel, Kernel):
        raise DTypeError(
            f"kernel must be a kernel of GPyTorch for inputs in the unit cube, but is a {type(kernel).__name__}."
        )
    if search is not None and not isinstance(search, Search):
        raise DTypeError(
            f"search must be a streamgp.optimizers.Search, but is a {type(search).__name__}. "
            "Write search=Search(num_restarts=10)."
        )
