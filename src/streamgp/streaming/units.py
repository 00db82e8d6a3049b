"""Units in which a stream is learned."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.streaming.rows import Rows

__all__ = ["Units"]

# Below so many rows their spread says little, and the scale of targets is taken wider.
_FEW_ROWS = 10


@final
@dataclass(frozen=True, eq=False)
class Units:
    """Affine maps between the user's units and those of the model, and the range they were chosen for.

    Attributes:
        input_shift: Subtracted from inputs.
        input_scale: Divides them after that.
        target_shift: Subtracted from targets.
        target_scale: Divides them after that.
        lower: Least value of each input when they were chosen, in the user's units.
        upper: Largest value.
    """

    input_shift: Float[Tensor, " d"]
    input_scale: Float[Tensor, " d"]
    target_shift: Float[Tensor, "c 1"]
    target_scale: Float[Tensor, "c 1"]
    lower: Float[Tensor, " d"]
    upper: Float[Tensor, " d"]

    @classmethod
    def of(cls, rows: Rows, *, is_target_scaled: bool) -> "Units":
        """Units in which inputs, and targets if asked for, have zero mean and unit variance."""
        X, y = rows.inputs, rows.targets
        shift, scale = torch.zeros_like(y[:, :1]), torch.ones_like(y[:, :1])
        if is_target_scaled:
            shift, scale = y.mean(-1, keepdim=True), _spread(y.mT).unsqueeze(-1)
            if rows.num_rows < _FEW_ROWS:
                widened = scale * (_FEW_ROWS / rows.num_rows) ** 0.5
                scale = torch.maximum(widened, 0.1 * shift.abs())
        return cls(X.mean(0), _spread(X), shift, scale, X.amin(0), X.amax(0))

    def for_outputs(self, num_outputs: int) -> "Units":
        """The same for another number of outputs, which all have the units of the first."""
        if len(self.target_shift) == num_outputs:
            return self
        shift, scale = (each[:1].repeat(num_outputs, 1) for each in (self.target_shift, self.target_scale))
        return replace(self, target_shift=shift, target_scale=scale)

    def inputs(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Inputs in the units of the model."""
        shift, scale, _, _ = self._of_inputs
        scaled = X.numpy() - shift
        scaled /= scale
        return torch.from_numpy(scaled)

    def rows(self, rows: Rows) -> Rows:
        """Rows in the units of the model."""
        targets = (rows.targets.numpy() - self.target_shift.numpy()) / self.target_scale.numpy()
        return Rows(self.inputs(rows.inputs), torch.from_numpy(targets), rows.total_count)

    def num_outside(self, X: Float[Tensor, "n d"]) -> int:
        """How many inputs lie farther outside the range that the units were chosen for than this range is wide."""
        _, _, middle, most = self._of_inputs
        return int((np.abs(X.numpy() - middle) > most).any(-1).sum())

    @cached_property
    def _of_inputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Shift and scale; the middle of the range, and how far from it is far outside."""
        lower, upper = self.lower.numpy(), self.upper.numpy()
        return self.input_shift.numpy(), self.input_scale.numpy(), 0.5 * (lower + upper), 1.5 * (upper - lower)

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _spread(columns: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """Standard deviation of each column, one for those that are constant up to rounding."""
    spread = columns.std(0, correction=0)
    rounding = 1e-12 * (1.0 + columns.abs().amax(0))
    return torch.where(spread > rounding, spread, 1.0)
