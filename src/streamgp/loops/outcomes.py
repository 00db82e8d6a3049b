"""Outcomes: quantities that are observed at a point, and their dependence on the latent function."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.acquisition.indices import check_constants
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.likelihoods.registry import names, read_likelihood
from streamgp.loops.units import OutcomeUnits, bend_around, bend_bad, find_scores
from streamgp.storage import register

__all__ = ["Constraint", "Objective", "Outcome"]

# The median of absolute deviations of Gaussian values is this share of their standard deviation.
_NORMAL_DEVIATION = 0.6745


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """One observed quantity.

    Attributes:
        likelihood: How it depends on the latent function.
        name: The name by which it was given, so that its numbers are no one's, and stand for standardized outcomes;
            None for an object, whose numbers are in the user's units.
    """

    likelihood: AbstractLikelihood
    name: str | None

    @classmethod
    def read(cls, likelihood: Any) -> "Outcome":
        """Read a likelihood by name or object."""
        read = _by_name(likelihood) if isinstance(likelihood, str) else read_likelihood(likelihood)
        if not read.has_response:
            raise UnsupportedError(
                f"The mean of {type(read).__name__} outcomes is the same everywhere, so there is nothing to look for. "
                "Observe the quantity of interest itself, with another likelihood."
            )
        return cls(read, likelihood if isinstance(likelihood, str) else None)

    def check_constants(self, num_members: int | None) -> None:
        """Refuse a likelihood whose numbers are not the same for all points, or of all members of a pool.

        Args:
            num_members: Size of the pool; None for no pool.
        """
        if num_members is not None:
            check_constants(self.likelihood, num_members)
            return
        sizes = {key: value for key, value in self.likelihood.constants().items() if value.dim()}
        if sizes:
            raise UnsupportedError(
                f"The {type(self.likelihood).__name__} likelihood has a {next(iter(sizes))} for each observation, but "
                "an optimizer does not know its observations beforehand. Give a single number."
            )

    @property
    def is_real(self) -> bool:
        """Tell whether outcomes are real numbers, which are standardized, and not counts or classes."""
        return self.likelihood.is_location_scale

    @property
    def has_unknown_noise(self) -> bool:
        """Tell whether it has Gaussian noise of which nothing is known."""
        return self.name is not None and self.likelihood.is_gaussian

    def find_units(
        self,
        y: Float[Tensor, " n"],
        *,
        is_reversed: bool,
        is_bent: bool = False,
        is_ranked: bool = False,
        bounds: tuple[float, ...] = (),
        good_share: float = 0.5,
    ) -> OutcomeUnits:
        """Standardize real outcomes; by median and median deviation where outliers are expected.

        Args:
            y: Outcomes so far.
            is_reversed: Whether small values are to become large.
            is_bent: Whether outcomes that are far too bad, or far from bounds if there are any, may count by their
                logarithm; not if their numbers are known.
            is_ranked: Whether outcomes count by their ranks.
            bounds: Of a constraint.
            good_share: The share of outcomes that are better than those that are bad.
        """
        if not self.is_real:
            return OutcomeUnits()
        if is_ranked and (ranks := find_scores(y)) is not None:
            return OutcomeUnits(scale=-1.0 if is_reversed else 1.0, ranks=ranks)
        largest = max(float(y.abs().max()), *map(abs, bounds), torch.finfo(y.dtype).tiny)
        z = y / largest  # whose squares have doubles, whatever the units
        shape = OutcomeUnits(scale=-1.0 if is_reversed else 1.0)
        if is_bent and self.name is not None and not self.likelihood.is_robust:
            if bounds:
                shape = bend_around(z, [one / largest for one in bounds])
            else:
                shape = bend_bad(z, sign=shape.scale, good_share=good_share)
        z = shape.bent(z)
        offset, scale = z.mean(), z.std(correction=0)
        if self.likelihood.is_robust:
            offset = z.median()
            robust = (z - offset).abs().median() / _NORMAL_DEVIATION
            scale = robust if robust > 0 else scale
        size = largest * float(scale) if float(scale) > 1e-12 else 1.0
        return OutcomeUnits(
            largest * float(offset),
            -size if is_reversed else size,
            None if shape.lower_knee is None else largest * shape.lower_knee,
            None if shape.upper_knee is None else largest * shape.upper_knee,
            largest * shape.width if shape.is_bent else 1.0,
            good_share=good_share,
        )

    def in_units(self, units: OutcomeUnits, likelihood: AbstractLikelihood | None = None) -> AbstractLikelihood:
        """The likelihood of what is modeled; of some outcomes, if theirs is given."""
        likelihood = self.likelihood if likelihood is None else likelihood
        if self.name is not None or not self.is_real:
            return likelihood
        return units.rescaled(likelihood)

    @property
    def constant(self) -> str | None:
        """Name of what is known of each outcome and not learned: a number of trials, an exposure, a noise variance."""
        name = self.likelihood.row_data
        return None if name in self.likelihood.learnable() else name

    def likelihood_of_rows(self, likelihood: AbstractLikelihood, constants: Float[Tensor, " n"]) -> AbstractLikelihood:
        """The likelihood of outcomes with constants of their own, in the user's units.

        Args:
            likelihood: That of any outcome, or of these.
            constants: What is known of each; NaN for what the likelihood has.
        """
        if self.constant is None or bool(constants.isnan().all()):
            return likelihood
        constants = torch.where(constants.isnan(), getattr(likelihood, self.constant).to(constants), constants)
        # One number for all, if it is the same, so that it is also that of outcomes to come.
        is_same = len(constants) and bool((constants == constants[0]).all())
        return likelihood.with_row_data(constants[0] if is_same else constants)

    def latent(self, response: float, units: OutcomeUnits) -> float:
        """The latent value whose expected response is given: linear, or by bisection as responses are monotone."""
        if self.is_real:
            return (response - units.offset) / units.scale
        value = torch.tensor(response, dtype=torch.float64)
        # The mean of an outcome, which for counts may be of several trials or more than a unit of exposure.
        unit = self._mean_of_one()
        return float(self.likelihood.inverse_response(value / unit))

    def _mean_of_one(self) -> Tensor:
        """Number of responses that make up the mean of an outcome."""
        zero = torch.zeros((), dtype=torch.float64)
        return self.likelihood.conditional_mean(zero) / self.likelihood.response(zero)


@register
@final
@dataclass(frozen=True, eq=False)
class Objective:
    """An outcome that is to be large or small.

    ```python
    objectives = [sg.Objective("yield"), sg.Objective("impurity", maximize=False)]
    optimizer = sg.Optimizer({"temperature": sg.Real(100, 180)}, objectives=objectives)
    optimizer.tell(optimizer.ask(2), [[61.0, 0.2], [74.5, 0.4]])
    optimizer.best()  # the Pareto set
    ```

    Attributes:
        name: What results and plots call it.
        maximize: Whether large outcomes are wanted, or small ones.
        likelihood: Name or object.
        threshold: Of several objectives, the outcome that is just not acceptable: trade-offs beyond it are not looked
            for, and the hypervolume is measured from it. None to find one among what is known.
    """

    name: str = "objective"
    maximize: bool = True
    likelihood: str | AbstractLikelihood = "gaussian"
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Check the direction, and what makes no sense with comparisons."""
        if not isinstance(self.maximize, bool):
            raise ArgumentTypeError(f"maximize must be True or False, but is {self.maximize!r}.")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueRangeError(f"threshold must be a finite outcome, but is {self.threshold}. Leave it out.")

    @cached_property
    def outcome(self) -> Outcome:
        """The observed quantity."""
        return Outcome.read(self.likelihood)

    @property
    def is_reversed(self) -> bool:
        """Tell whether it is modeled with its sign changed: where it is a real number to be minimized."""
        return not self.maximize and self.outcome.is_real

    def floor(self, units: OutcomeUnits) -> float:
        """The threshold in the units in which scores are compared, to be maximized; negative infinity without one."""
        return -math.inf if self.threshold is None else self.weight * self.outcome.latent(self.threshold, units)

    @property
    def weight(self) -> float:
        """By which what is modeled is multiplied to be maximized."""
        return 1.0 if self.maximize or self.is_reversed else -1.0


@register
@final
@dataclass(frozen=True, eq=False)
class Constraint:
    """An outcome that has to stay within bounds; its expected value, not each noisy observation of it.

    ```python
    optimizer = sg.Optimizer([(100.0, 180.0)], constraints=[sg.Constraint(upper=0.3, name="impurity")])
    optimizer.tell(optimizer.ask(2), [[61.0, 0.2], [74.5, 0.4]])  # a column for each outcome
    ```

    Attributes:
        upper: The most it may be; None for no such bound.
        lower: The least.
        likelihood: Name or object. Bounds of counts are rates, and of classes probabilities.
        name: What results and plots call it.
    """

    upper: float | None = None
    lower: float | None = None
    likelihood: str | AbstractLikelihood = "gaussian"
    name: str | None = None

    def __post_init__(self) -> None:
        """Check bounds and likelihood."""
        given = self.bounds
        if not given:
            raise OptionError("A Constraint must have an upper or a lower bound, but has none. Pass upper=... .")
        if not all(math.isfinite(bound) for bound in given) or (len(given) == 2 and given[0] >= given[1]):
            raise ValueRangeError(
                f"The bounds of a Constraint must be finite, the lower below the upper, but are {self.lower} and "
                f"{self.upper}."
            )
        outcome = self.outcome
        if outcome.likelihood.num_inputs != 1:
            raise UnsupportedError(
                f"A constraint is observed at one point at a time, but {type(outcome.likelihood).__name__} compares "
                f"{outcome.likelihood.num_inputs}. Use another likelihood."
            )
        for bound in given:
            outcome.latent(bound, OutcomeUnits())

    @cached_property
    def outcome(self) -> Outcome:
        """The observed quantity."""
        return Outcome.read(self.likelihood)

    @property
    def bounds(self) -> tuple[float, ...]:
        """The lower and the upper one, those that are given."""
        return tuple(bound for bound in (self.lower, self.upper) if bound is not None)

    def is_kept(self, y: Float[Tensor, " n"]) -> Bool[Tensor, " n"]:
        """Mark outcomes that keep the bounds."""
        kept = torch.ones(len(y), dtype=torch.bool)
        kept = kept if self.upper is None else kept & (y <= self.upper)
        return kept if self.lower is None else kept & (y >= self.lower)

    def limits(self, units: OutcomeUnits) -> tuple[float | None, float | None]:
        """Lower and upper bound of the latent function, in the units in which it is modeled."""
        outcome = self.outcome
        lower, upper = (None if bound is None else outcome.latent(bound, units) for bound in (self.lower, self.upper))
        return lower, upper


def _by_name(name: str) -> AbstractLikelihood:
    if name not in names(has_response=True):
        raise OptionError(
            f"likelihood must be one of {', '.join(map(repr, names(has_response=True)))}, or an object of "
            f"streamgp.likelihoods, but is {name!r}."
        )
    likelihood = read_likelihood(name)
    if likelihood.needs_row_data:
        raise OptionError(
            f"{name!r} does not say out of how many trials. Pass "
            f"streamgp.likelihoods.{type(likelihood).__name__}({likelihood.row_data}) itself."
        )
    return likelihood
