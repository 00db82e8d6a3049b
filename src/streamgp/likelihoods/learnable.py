"""Parameters of a likelihood that training may change."""

from collections.abc import Mapping
from typing import TypeVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError

__all__ = ["Learnable"]

# Not typing.Self, which beartype refuses on the methods of a class that it does not decorate.
Likelihood = TypeVar("Likelihood", bound="Learnable")


class Learnable:
    """A frozen value some of whose parameters can be learned; none by default."""

    def learnable(self) -> dict[str, Tensor]:
        """Return the parameters to be learned, by name, as values that may take any real number."""
        return {}

    def log_prior(self) -> Float[Tensor, ""]:
        """Evaluate a weak log prior density of the learned parameters, for training; zero by default.

        A few observations say next to nothing of a dispersion, and without a prior it is followed to infinity.
        """
        return torch.zeros((), dtype=torch.float64)

    @final
    def with_learnable(self: Likelihood, values: Mapping[str, Tensor]) -> Likelihood:
        """Return a likelihood whose learned parameters have new unconstrained values.

        Args:
            values: One tensor for each name of `learnable`. Gradients flow back to them.
        """
        expected = sorted(self.learnable())
        if sorted(values) != expected:
            raise OptionError(
                f"values must have the names {expected}, one for each learnable parameter of "
                f"{type(self).__name__}, but has {sorted(values)}. Start from likelihood.learnable()."
            )
        return self._from_unconstrained(values) if expected else self

    def _from_unconstrained(self: Likelihood, values: Mapping[str, Tensor]) -> Likelihood:
        """Return a copy with these values, of which there is at least one, and whose names have been checked."""
        return self
