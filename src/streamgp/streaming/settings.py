"""What a stream is learned with."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, final

from gpytorch.kernels import Kernel

from streamgp.checks import check_choice, keep_count
from streamgp.errors import ArgumentTypeError, OptionError, ValueRangeError
from streamgp.likelihoods import (
    AbstractLikelihood,
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from streamgp.sites import SiteRule
from streamgp.streaming.experts import (
    CLASS_EXPERTS,
    MANY_CLASS_EXPERTS,
    REAL_EXPERTS,
    Expert,
    Experts,
    count_experts,
)

__all__ = ["FEW_ROWS", "LIKELIHOODS", "SITE_TOLERANCE", "Room", "StreamSettings"]

LIKELIHOODS = ("gaussian", "student_t", "poisson", "negative_binomial", "binomial", "bernoulli")
_POLICIES = ("auto", "background", "doubling", "never")
# The residual of sites, in posterior standard deviations, that a stream does not see.
SITE_TOLERANCE = 1e-3
# With fewer rows hyperparameters are not learned.
FEW_ROWS = 10
# Rows after which hyperparameters are learned again at the latest, so that they follow a stream however long it is.
_LONGEST_INTERVAL = 1000
# Rows that are learned at once: enough that more would gain nothing in speed.
_MOST_ROWS_AT_ONCE = 128
# Prior variance of the latent function of a class.
_CLASS_AMPLITUDE = 4.0
# For a number of inducing points that is to be found: with so many there is always room, and for one more after so many
# rows each. With fewer rows for a point, more points cost time and predict no better.
_FIRST_POINTS, _ROWS_OF_POINT = 100, 20


class Room(NamedTuple):
    """How many inducing points there may be.

    Attributes:
        least: Up to so many, any input becomes one.
        most: Up to so many, those become one of which the others leave something open.
        limit: Up to so many, those become one of which the others leave more open than there is noise.
    """

    least: int
    most: int
    limit: int


@final
@dataclass(frozen=True, eq=False)
class StreamSettings:
    """Options of a stream; a value that does not change while it runs.

    Attributes:
        likelihood: Name or object. Real targets of a likelihood given by name are standardized; one given as an object
            is in the user's units.
        kernel: GPyTorch kernel for standardized inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points; `"auto"` for 100, and more of them where those leave more open than
            there is noise, or as the stream goes on, one for every 20 rows.
        max_inducing: For `"auto"`: the most points, which bound time and memory.
        warmup: Rows after which scaling is frozen. Until then all rows are kept, and everything is learned anew when
            their number has doubled.
        refit: When hyperparameters are learned after that: `"auto"` (when the number of rows has doubled, but at least
            every 1000 rows; where a long stream does not change, each time the buffer is full of new rows),
            `"doubling"`, `"never"`, or every so many rows.
        buffer_size: Most recent rows that a refit sees one by one; older ones are summarized in a belief.
        half_life: `"auto"` learns with several half-lives side by side, with and without a level and a linear trend,
            and mixes them by how well they predict. A number of rows is the half-life after which half of what was
            known is lost, None to forget nothing: then there is one belief, without level and trend.
        seed: Seed of the choices of training.
        sites: How observations that are not Gaussian become Gaussian ones.
        num_expected: Rows that are known to come: for `"auto"` there are inducing points for so many from the start.
    """

    likelihood: str | AbstractLikelihood = "gaussian"
    kernel: Kernel | None = None
    num_inducing: int | str = "auto"
    max_inducing: int = 256
    warmup: int = 200
    refit: str | int = "auto"
    buffer_size: int = 4000
    half_life: float | str | None = "auto"
    seed: int = 0
    sites: SiteRule = field(default_factory=lambda: SiteRule(tolerance=SITE_TOLERANCE))
    num_expected: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        if isinstance(self.likelihood, str):
            check_choice(self.likelihood, LIKELIHOODS, "likelihood")
        elif (
            not isinstance(self.likelihood, AbstractLikelihood)
            or self.likelihood.num_inputs != 1
            or self.likelihood.num_latents != 1
        ):
            raise ArgumentTypeError(
                f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))} or an object of streamgp.likelihoods "
                f"for single inputs and one latent function, but is {self.likelihood!r}."
            )
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise ArgumentTypeError(f"kernel must be a GPyTorch kernel, but is a {type(self.kernel).__name__}.")
        if isinstance(self.refit, str):
            if self.refit not in _POLICIES:
                raise OptionError(
                    "refit must be 'auto', 'background', 'doubling', 'never' or a number of rows, but is "
                    f"{self.refit!r}."
                )
        else:
            keep_count(self, "refit")
        if self.num_inducing != "auto":
            if isinstance(self.num_inducing, str):
                raise OptionError(f"num_inducing must be a whole number or 'auto', but is {self.num_inducing!r}.")
            keep_count(self, "num_inducing")
        for name, least in (("max_inducing", 1), ("warmup", 1), ("buffer_size", 10), ("num_expected", 0)):
            keep_count(self, name, minimum=least)
        if isinstance(self.half_life, str):
            if self.half_life != "auto":
                raise OptionError(
                    f"half_life must be 'auto', None or a positive number of rows, but is the text {self.half_life!r}. "
                    "Pass a number without quotes."
                )
        elif self.half_life is not None and not 0 < self.half_life < math.inf:
            raise ValueRangeError(
                f"half_life must be 'auto' or a positive number of rows, but is {self.half_life!r}. Pass None to "
                "forget nothing."
            )

    @cached_property
    def starting_likelihood(self) -> AbstractLikelihood:
        """The likelihood before its parameters are learned."""
        named: dict[str, AbstractLikelihood] = {
            "gaussian": Gaussian(0.05),
            "student_t": StudentT(4.0, 0.2),
            "poisson": Poisson(),
            "negative_binomial": NegativeBinomial(),
            "binomial": Binomial(1),
            "bernoulli": Bernoulli("probit"),
        }
        return named[self.likelihood] if isinstance(self.likelihood, str) else self.likelihood

    @property
    def is_target_scaled(self) -> bool:
        """Whether targets are standardized."""
        return self.likelihood in ("gaussian", "student_t")

    @property
    def has_outliers(self) -> bool:
        """Whether targets may have nothing to do with the function: a likelihood of the user's own knows better."""
        return self.likelihood == "gaussian" and self.half_life == "auto"

    def room(self, num_rows: int, num_points: int = 0) -> Room:
        """How many inducing points there may be after so many rows, of which so many are there."""
        if isinstance(self.num_inducing, int):
            return Room(self.num_inducing, self.num_inducing, self.num_inducing)
        most = max(_FIRST_POINTS, max(num_rows, self.num_expected) // _ROWS_OF_POINT, num_points)
        limit = self.max_inducing
        return Room(min(_FIRST_POINTS, limit), min(most, limit), limit)

    def experts(self, num_outputs: int, num_dims: int) -> Experts:
        """What is learned side by side, of so many outputs at inputs of so many columns."""
        is_binary = self.starting_likelihood.outcome_kind == "class"
        if self.half_life == "auto":
            if self.starting_likelihood.is_gaussian:
                return Experts(REAL_EXPERTS)
            if is_binary:
                return Experts(CLASS_EXPERTS if num_outputs == 1 else MANY_CLASS_EXPERTS)
            return Experts(count_experts(num_dims))
        half_life = math.inf if self.half_life is None else float(self.half_life)
        return Experts((Expert(half_life, amplitude=_CLASS_AMPLITUDE if is_binary else 1.0),))

    @property
    def num_at_once(self) -> int:
        """Most rows that are learned as if they had come at the same time."""
        if self.half_life is None:
            return _MOST_ROWS_AT_ONCE
        return 16 if isinstance(self.half_life, str) else max(1, min(_MOST_ROWS_AT_ONCE, int(self.half_life / 8)))

    def next_refit(self, num_rows: int) -> int | None:
        """The number of rows at which to learn next, having learned at `num_rows`; None for never."""
        if num_rows < self.warmup:
            later = num_rows + 1 if num_rows < FEW_ROWS else 2 * num_rows
            # One that the end of the warm-up follows soon would be for little.
            return later if 3 * later <= 2 * self.warmup else self.warmup
        if self.refit == "never":
            return None
        if self.refit == "doubling":
            return 2 * num_rows
        return num_rows + (self.refit if isinstance(self.refit, int) else min(num_rows, _LONGEST_INTERVAL))
