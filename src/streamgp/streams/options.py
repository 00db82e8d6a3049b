"""Options of a stream, and what it is learned with by them."""

import math
from dataclasses import dataclass
from typing import final

from gpytorch.kernels import Kernel

from streamgp.errors import ArgumentTypeError, OptionError, ValueRangeError
from streamgp.likelihoods import (
    AbstractLikelihood,
    Bernoulli,
    Binomial,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from streamgp.streams.kernels import family_of
from streamgp.streams.prior import CLASS_EXPERTS, COUNT_EXPERTS, VALUE_EXPERTS, Expert, expert_of
from streamgp.streams.refit import Plan

__all__ = ["LIKELIHOODS", "StreamOptions"]

LIKELIHOODS = ("gaussian", "student_t", "poisson", "negative_binomial", "binomial", "bernoulli")


@final
@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream.

    Attributes:
        most_points: Budget of inducing points.
        buffer_size: Latest rows that a refit sees one by one.
        refit: `"auto"`, `"background"`, `"doubling"`, `"never"` after the warm-up, or every so many rows.
        warmup: Rows after which `"never"` and a number count.
        half_life: `"auto"` for several experts; rows after which half of what was known is lost; None forgets nothing.
        kernel: Name of a kernel, `"matern-5/2"` by default, or a kernel of GPyTorch for standardized inputs.
        likelihood: Name of a likelihood, or one in the user's units.
        link: Link of classes, `"probit"` or `"logit"`.
    """

    most_points: int = 256
    buffer_size: int = 4000
    refit: str | int = "auto"
    warmup: int = 200
    half_life: float | str | None = "auto"
    kernel: str | Kernel | None = None
    likelihood: str | AbstractLikelihood = "gaussian"
    link: str = "probit"

    def __post_init__(self) -> None:
        """Check the options that the model alone knows."""
        if isinstance(self.half_life, str) and self.half_life != "auto":
            raise OptionError(
                f"half_life must be 'auto', None or a positive number of rows, but is the text {self.half_life!r}. "
                "Pass a number without quotes."
            )
        if not isinstance(self.half_life, str | None) and not 0 < self.half_life < math.inf:
            raise ValueRangeError(
                f"half_life must be 'auto' or a positive number of rows, but is {self.half_life!r}. Pass None to "
                "forget nothing."
            )
        if isinstance(self.likelihood, str) and self.likelihood not in LIKELIHOODS:
            raise OptionError(
                f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))} or an object of streamgp.likelihoods, "
                f"but is {self.likelihood!r}."
            )
        if not isinstance(self.likelihood, str) and not (
            isinstance(self.likelihood, AbstractLikelihood)
            and self.likelihood.num_inputs == self.likelihood.num_latents == 1
        ):
            raise ArgumentTypeError(
                f"likelihood must be one of {', '.join(map(repr, LIKELIHOODS))} or an object of streamgp.likelihoods "
                f"for single inputs and one latent function, but is {self.likelihood!r}."
            )
        if not isinstance(self.kernel, str | Kernel | None):
            raise ArgumentTypeError(
                f"kernel must be a name or a kernel of GPyTorch, but is a {type(self.kernel).__name__}."
            )
        if isinstance(self.kernel, str):
            family_of(self.kernel)

    def plan(self, num_classes: int = 0) -> Plan:
        """Return what a stream is learned with, of so many classes or of other targets."""
        experts: tuple[Expert, ...] = VALUE_EXPERTS
        likelihood = Bernoulli(self.link) if num_classes else self._likelihood()
        if likelihood is not None and not likelihood.is_location_scale:
            experts = CLASS_EXPERTS if likelihood.outcome_kind == "class" else COUNT_EXPERTS
        if self.half_life != "auto":
            assert not isinstance(self.half_life, str)
            experts = (expert_of(self.half_life),)
        return Plan(
            experts=experts,
            most_points=self.most_points,
            kernel=self.kernel if isinstance(self.kernel, Kernel) else family_of(self.kernel or "matern-5/2"),
            likelihood=likelihood,
            num_classes=num_classes,
            scales_targets=not num_classes and self.likelihood in ("gaussian", "student_t"),
            forgets=self.half_life is not None,
        )

    def _likelihood(self) -> AbstractLikelihood | None:
        """Return the likelihood before its parameters are learned; None for noise whose scale each filter learns."""
        if not isinstance(self.likelihood, str):
            return self.likelihood
        if self.likelihood == "gaussian":
            return None
        named: dict[str, AbstractLikelihood] = {
            "student_t": StudentT(4.0, 0.2),
            "poisson": Poisson(),
            "negative_binomial": NegativeBinomial(),
            "binomial": Binomial(1),
            "bernoulli": Bernoulli("probit"),
        }
        return named[self.likelihood]
