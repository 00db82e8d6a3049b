"""Observations of different kinds beside each other: a count, a yield, a pass or fail."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Int
from torch import Tensor

from streamgp.errors import UnsupportedError
from streamgp.likelihoods import AbstractLikelihood

__all__ = ["MixedLikelihood"]


@final
@dataclass(frozen=True, eq=False)
class MixedLikelihood(AbstractLikelihood):
    """A likelihood for each row, by its kind. Only what sites need of a likelihood is there.

    Attributes:
        parts: One likelihood for each kind.
        kinds: The kind of each row, the last axis of all values.
    """

    outcome_kind = "real"
    support = (-float("inf"), float("inf"))

    parts: tuple[AbstractLikelihood, ...]
    kinds: Int[Tensor, " k"]

    def _broadcast_fields(self) -> tuple[str, ...]:
        return ()

    def check_targets(self, y: object) -> Tensor:
        """Check each row against the support of its likelihood."""
        assert isinstance(y, Tensor)
        for kind, part in enumerate(self.parts):
            rows = (self.kinds == kind).nonzero().squeeze(-1)
            if len(rows):
                part.check_targets(y[..., rows])
        return y

    def log_density(self, f: Tensor, y: Tensor) -> Tensor:
        return self._by_kind(lambda part, *values: (part.log_density(*values),), f, y)[0]

    def response(self, f: Tensor) -> Tensor:
        return self._by_kind(lambda part, *values: (part.response(*values),), f)[0]

    def derivatives(self, f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        first, second = self._by_kind(lambda part, *values: part.derivatives(*values), f, y)
        return first, second

    def expected_log_density(self, mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
        return self._by_kind(lambda part, *values: (part.expected_log_density(*values),), mean, variance, y)[0]

    def expected_derivatives(self, mean: Tensor, variance: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        first, second = self._by_kind(lambda part, *values: part.expected_derivatives(*values), mean, variance, y)
        return first, second

    def expected_derivatives_of_one(self, mean: float, variance: float, y: float) -> tuple[float, float]:
        return self.parts[int(self.kinds[0])].expected_derivatives_of_one(mean, variance, y)

    def expected_log_density_of_one(self, mean: float, variance: float, y: float) -> float:
        return self.parts[int(self.kinds[0])].expected_log_density_of_one(mean, variance, y)

    def sample(self, f: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return self._by_kind(lambda part, *values: (part.sample(*values, generator=generator),), f)[0]

    def _by_kind(self, function: Callable[..., tuple[Tensor, ...]], *values: Any) -> tuple[Tensor, ...]:
        """Evaluate each kind's rows by its own likelihood, and put the results in their places."""
        order, results = [], []
        for kind, part in enumerate(self.parts):
            if part.num_inputs != 1:
                raise UnsupportedError(
                    f"A {type(part).__name__} likelihood compares inputs, and cannot be one of several."
                )
            rows = (self.kinds == kind).nonzero().squeeze(-1)
            if len(rows) or not len(self.kinds):  # of no rows, the empty results
                order.append(rows)
                results.append(function(part, *(value[..., rows] for value in values)))
        place = torch.cat(order).argsort()
        return tuple(torch.cat(each, dim=-1)[..., place] for each in zip(*results, strict=True))
