"""What was told of members, as rows to learn from."""

from dataclasses import dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.acquisition.indices import likelihood_of, read_indices
from streamgp.checks import to_double
from streamgp.errors import OptionError, ShapeError, SupportError
from streamgp.likelihoods import AbstractLikelihood, Binomial, Gaussian
from streamgp.pools.settings import Settings

__all__ = ["Told", "nothing_told", "read_told"]


@final
@dataclass(frozen=True, eq=False)
class Told:
    """Outcomes of members.

    Attributes:
        members: Which, in the order in which they were told.
        y: Outcomes; NaN for those that could not be observed.
        constants: The total of each Binomial outcome, or the noise variance of each Gaussian one where it is known;
            NaN for other likelihoods.
    """

    members: Int[Tensor, " n"]
    y: Float[Tensor, " n"]
    constants: Float[Tensor, " n"]

    @property
    def is_informative(self) -> Bool[Tensor, " n"]:
        """Which outcomes tell something: those that were observed, out of at least one trial."""
        return ~self.y.isnan() & (self.constants != 0)

    @property
    def informative(self) -> "Told":
        """Those outcomes."""
        kept = self.is_informative
        return Told(self.members[kept], self.y[kept], self.constants[kept])

    def join(self, other: "Told") -> "Told":
        """Both, one after the other."""
        parts = ((self.members, other.members), (self.y, other.y), (self.constants, other.constants))
        return Told(*(torch.cat(pair) for pair in parts))

    def likelihood(self, pool: AbstractLikelihood) -> AbstractLikelihood:
        """The likelihood of these outcomes, given that of the pool."""
        likelihood = likelihood_of(pool, self.members)
        if isinstance(likelihood, Binomial):
            return replace(likelihood, total_count=self.constants)
        if isinstance(likelihood, Gaussian) and not likelihood.is_learned:
            return replace(likelihood, noise_variance=self.constants)
        return likelihood


def nothing_told() -> Told:
    """Before any data."""
    empty = torch.empty(0, dtype=torch.float64)
    return Told(torch.empty(0, dtype=torch.long), empty, empty)


def read_told(settings: Settings, indices: Any, y: Any, *, total_count: Any, noise_variance: Any) -> Told:
    """Check what a user tells.

    Args:
        settings: Of the learner.
        indices: Members.
        y: Their outcomes; NaN for those that could not be observed.
        total_count: Of Binomial outcomes; None for what the likelihood has.
        noise_variance: Of Gaussian outcomes, likewise.
    """
    members = read_indices(indices, len(settings.inputs), "indices")
    outcomes = to_double(y, "y")
    if outcomes.shape != members.shape:
        raise ShapeError(
            f"y must have shape {tuple(members.shape)}, one outcome for each of the indices, but has shape "
            f"{tuple(outcomes.shape)}. A member that could not be observed is NaN."
        )
    constants = _read_constants(settings, members, total_count=total_count, noise_variance=noise_variance)
    told = Told(members, outcomes, constants)
    observed = ~outcomes.isnan()
    seen = Told(members[observed], outcomes[observed], constants[observed])
    try:
        seen.likelihood(settings.likelihood).check_targets(seen.y)
    except SupportError as error:
        raise SupportError(
            f"Outcomes cannot be used. {error} Tell a member that could not be observed as NaN."
        ) from None
    return told


def _read_constants(
    settings: Settings, members: Int[Tensor, " n"], *, total_count: Any, noise_variance: Any
) -> Float[Tensor, " n"]:
    likelihood = likelihood_of(settings.likelihood, members)
    is_noise_known = isinstance(likelihood, Gaussian) and not likelihood.is_learned
    if total_count is not None and not isinstance(likelihood, Binomial):
        raise OptionError(
            f"total_count belongs to Binomial outcomes, but the likelihood is {type(likelihood).__name__}."
        )
    if noise_variance is not None and not is_noise_known:
        raise OptionError(
            "noise_variance belongs to Gaussian outcomes whose noise is known, but the likelihood is "
            f"{type(likelihood).__name__}{' with learned noise' if isinstance(likelihood, Gaussian) else ''}. "
            "Make the learner with likelihood=streamgp.likelihoods.Gaussian(noise, is_learned=False)."
        )
    # The constructors refuse totals that are no counts, and noise that is not positive.
    if isinstance(likelihood, Binomial):
        return Binomial(_read_numbers(total_count, likelihood.total_count, members, "total_count")).total_count
    if isinstance(likelihood, Gaussian) and is_noise_known:
        noise = _read_numbers(noise_variance, likelihood.noise_variance, members, "noise_variance")
        return Gaussian(noise).noise_variance
    return torch.full(members.shape, torch.nan, dtype=torch.float64)


def _read_numbers(given: Any, default: Tensor, members: Int[Tensor, " n"], name: str) -> Float[Tensor, " n"]:
    values = default.detach().cpu().double() if given is None else to_double(given, name)
    if values.dim() and values.shape != members.shape:
        raise ShapeError(
            f"{name} must be a number or have shape {tuple(members.shape)}, one for each of the indices, but has shape "
            f"{tuple(values.shape)}."
        )
    return values.expand(members.shape).clone()
