"""Rows that one GP of a loop learns from: values, and slopes and comparisons beside them."""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp import evidence
from streamgp.evidence import Evidence
from streamgp.loops.units import OutcomeUnits

__all__ = ["LearnedRows"]

# A yes/no answer has latent noise of variance one, and a comparison that of both its sides.
_COMPARED = math.sqrt(0.5)


@final
@dataclass(frozen=True, eq=False)
class LearnedRows:
    """Inputs and outcomes of a GP.

    Attributes:
        inputs: Inputs of the model, pairs of them, or rows of evidence, of which those of values come first.
        y: Outcomes in the user's units, one for each row of values.
        slopes: Targets of rows after these, per unit of outcome.
        at: Number of the value whose outcome is that at which each of these was observed.
    """

    inputs: Tensor | Evidence
    y: Float[Tensor, " n"]
    slopes: Float[Tensor, " k"]
    at: Int[Tensor, " k"]

    @classmethod
    def of(cls, inputs: Tensor, y: Float[Tensor, " n"]) -> "LearnedRows":
        """Rows of values, or of pairs, alone."""
        return cls(inputs, y, y[:0], torch.empty(0, dtype=torch.long))

    def with_gradients(self, gradients: Float[Tensor, "n d"]) -> "LearnedRows":
        """Rows with the slopes that are known."""
        at, column = (~gradients.isnan()).nonzero().unbind(-1)
        if not len(at):
            return self
        X = self._values
        along = torch.eye(X.shape[-1], dtype=X.dtype)[column]
        rows = evidence.combine(X, evidence.derivative(X[at], along))
        return LearnedRows(rows, self.y, gradients[at, column], at)

    def with_comparisons(self, pairs: Float[Tensor, "k 2 d"]) -> "LearnedRows":
        """Rows with comparisons, each as an answer that the first of two is above the second."""
        if not len(pairs):
            return self
        groups, weights = torch.arange(len(pairs)).repeat_interleave(2), pairs.new_tensor([_COMPARED, -_COMPARED])
        compared = evidence.total(pairs.flatten(0, 1), groups, weights.repeat(len(pairs)))
        rows = evidence.combine(self._values, compared) if len(self.y) else compared
        ones = self.y.new_ones(len(pairs))
        # Answers have no units: each counts as one of its own.
        return LearnedRows(rows, torch.cat([self.y, ones]), self.slopes, self.at)

    @property
    def points(self) -> Float[Tensor, "n d"]:
        """Every input."""
        return self.inputs.points if isinstance(self.inputs, Evidence) else self.inputs.flatten(0, -2)

    def points_beside(self, step: float) -> Float[Tensor, "k d"]:
        """Every input of a value, and a point beside it along each slope that was observed there."""
        assert isinstance(self.inputs, Evidence)
        assert self.inputs.directions is not None
        n = len(self.y)
        beside = self.inputs.points[n:] + step * self.inputs.directions[n:]
        return torch.unique(torch.cat([self.inputs.points[:n], beside]), dim=0)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.y) + len(self.slopes)

    def targets(self, units: OutcomeUnits) -> Float[Tensor, " k"]:
        """Targets in the units of the model: a slope changes as the outcome does where it was observed."""
        z = units.inside(self.y)
        if not len(self.slopes):
            return z
        return torch.cat([z, self.slopes * math.copysign(1.0, units.scale) / units.slope(z[self.at])])

    def log_change(self, units: OutcomeUnits) -> float:
        """The logarithm of how much targets change with what was observed."""
        change = units.log_change(self.y)
        return float(change.sum() + change[self.at].sum())

    @property
    def _values(self) -> Tensor:
        assert isinstance(self.inputs, Tensor)
        return self.inputs
