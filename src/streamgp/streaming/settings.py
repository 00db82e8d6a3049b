"""What a stream is learned with."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

from gpytorch.kernels import Kernel

from streamgp.checks import check_choice, check_count
from streamgp.errors import DTypeError, OptionError, ValueRangeError
from streamgp.likelihoods import (
    AbstractLikelihood,
    Bernoulli,
    Binomial,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
)

__all__ = ["LIKELIHOODS", "StreamSettings"]

LIKELIHOODS = ("gaussian", "student_t", "poisson", "negative_binomial", "binomial", "bernoulli")
_POLICIES = ("never", "doubling")


@final
@dataclass(frozen=True, eq=False)
class StreamSettings:
    """Options of a stream; a value that does not change while it runs.

    Attributes:
        likelihood: Name or object. Real targets of a likelihood given by name are standardised; one given as an object
            is in the user's units.
        kernel: GPyTorch kernel for standardised inputs; a scaled Matérn-5/2 with a lengthscale for each by default.
        num_inducing: Number of inducing points; `"auto"` adds them where the stream needs them.
        max_inducing: For `"auto"`: the most points.
        warmup: Rows after which scaling is frozen. Until then all rows are kept, and everything is learned anew when
            their number has doubled.
        refit: When hyperparameters are learned after that: `"never"`, `"doubling"` (when the number of rows has
            doubled), or a number of rows.
        buffer_size: Most recent rows that a refit sees one by one; older ones are summarised in a belief.
        half_life: Number of rows after which what was learned from a row counts half; None to forget nothing.
        seed: Seed of the choices of training.
    """

    likelihood: str | AbstractLikelihood = "gaussian"
    kernel: Kernel | None = None
    num_inducing: int | str = 100
    max_inducing: int = 256
    warmup: int = 200
    refit: str | int = "doubling"
    buffer_size: int = 4000
    half_life: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the options."""
        if isinstance(self.likelihood, str):
            check_choice(self.likelihood, LIKELIHOODS, "likelihood")
        elif not isinstance(self.likelihood, AbstractLikelihood) or self.likelihood.num_inputs != 1:
            raise DTypeError(
                f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))} or an object of streamgp.likelihoods "
                f"for single inputs, but is {self.likelihood!r}."
            )
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise DTypeError(f"kernel must be a GPyTorch kernel, but is a {type(self.kernel).__name__}.")
        if isinstance(self.refit, str):
            if self.refit not in _POLICIES:
                raise OptionError(f"refit must be 'never', 'doubling' or a number of rows, but is {self.refit!r}.")
        else:
            check_count(self.refit, "refit")
        if self.num_inducing != "auto":
            if isinstance(self.num_inducing, str):
                raise OptionError(f"num_inducing must be a whole number or 'auto', but is {self.num_inducing!r}.")
            check_count(self.num_inducing, "num_inducing")
        for name, least in (("max_inducing", 1), ("warmup", 1), ("buffer_size", 10)):
            check_count(getattr(self, name), name, minimum=least)
        if self.half_life is not None and not 0 < self.half_life < math.inf:
            raise ValueRangeError(
                f"half_life must be a positive number of rows, but is {self.half_life!r}. Pass None to forget nothing."
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
            "bernoulli": Bernoulli(),
        }
        return named[self.likelihood] if isinstance(self.likelihood, str) else self.likelihood

    @property
    def is_target_scaled(self) -> bool:
        """Whether targets are standardised."""
        return self.likelihood in ("gaussian", "student_t")

    @property
    def most_inducing(self) -> int:
        """The most inducing points that there may be."""
        return self.num_inducing if isinstance(self.num_inducing, int) else self.max_inducing

    @property
    def num_buffered(self) -> int:
        """The most rows in the buffer; rows much older than the half-life would tell of another time."""
        if self.half_life is None:
            return self.buffer_size
        return max(10, min(self.buffer_size, math.ceil(2 * self.half_life)))

    def next_refit(self, num_rows: int) -> int | None:
        """The number of rows at which to learn next, having learned at `num_rows`; None for never."""
        if num_rows < self.warmup:
            return min(2 * num_rows, self.warmup)
        if self.refit == "never":
            return None
        return 2 * num_rows if isinstance(self.refit, str) else num_rows + self.refit
