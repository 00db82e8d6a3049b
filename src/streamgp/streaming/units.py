"""Units in which a stream is learned."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.streaming.bends import Bends
from streamgp.streaming.rows import Rows
from streamgp.training.scaling import spread

__all__ = ["Units"]

# Below so many rows their spread says little, and the scale of targets is taken wider.
_FEW_ROWS = 10


@final
@dataclass(frozen=True, eq=False)
class Units:
    """Maps between the user's units and those of the model, and the range they were chosen for.

    Attributes:
        input_shift: Subtracted from inputs, after some are bent.
        input_scale: Divides them after that.
        target_shift: Subtracted from targets.
        target_scale: Divides them after that.
        lower: Least value of each input when they were chosen, in the user's units.
        upper: Largest value.
        bends: Inputs with long tails.
    """

    input_shift: Float[Tensor, " k"]
    input_scale: Float[Tensor, " k"]
    target_shift: Float[Tensor, "c 1"]
    target_scale: Float[Tensor, "c 1"]
    lower: Float[Tensor, " d"]
    upper: Float[Tensor, " d"]
    bends: Bends = field(default_factory=Bends)

    @classmethod
    def of(cls, rows: Rows, *, is_target_scaled: bool, is_bent: bool = False) -> "Units":
        """Units in which inputs, and targets if asked for, have zero mean and unit variance.

        Args:
            rows: The rows, in the user's units.
            is_target_scaled: Whether targets are scaled: they are real, and may be linear in inputs.
            is_bent: Whether inputs with long tails are bent.
        """
        X, y = rows.tensors
        shift, scale = torch.zeros_like(y[:, :1]), torch.ones_like(y[:, :1])
        if is_target_scaled:
            shift, scale = y.mean(-1, keepdim=True), spread(y.mT).unsqueeze(-1)
            if rows.num_rows < _FEW_ROWS:
                widened = scale * (_FEW_ROWS / rows.num_rows) ** 0.5
                scale = torch.maximum(widened, 0.1 * shift.abs())
        bends = Bends.of(X, is_kept=is_target_scaled) if is_bent else Bends()
        bent = torch.from_numpy(bends.bend(rows.inputs))
        return cls(bent.mean(0), spread(bent), shift, scale, X.amin(0), X.amax(0), bends)

    def for_outputs(self, num_outputs: int) -> "Units":
        """The same for another number of outputs, which all have the units of the first."""
        if len(self.target_shift) == num_outputs:
            return self
        shift, scale = (each[:1].repeat(num_outputs, 1) for each in (self.target_shift, self.target_scale))
        return replace(self, target_shift=shift, target_scale=scale)

    def inputs(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
        """Inputs in the units of the model; the last single one is kept, as it is likely learned next."""
        last, key = self.__dict__.get("_last"), X.tobytes() if len(X) == 1 else None
        if last is not None and last[0] == key:
            kept: np.ndarray = last[1]
            return kept
        shift, scale, _, _ = self._of_inputs
        scaled = self.bends.bend(X) - shift
        scaled /= scale
        if key is not None:
            self.__dict__["_last"] = key, scaled
        return scaled

    def points(self, scaled: Float[Tensor, "n k"]) -> Float[Tensor, "n d"]:
        """Inputs in the user's units."""
        return self.bends.straighten(self.input_shift + self.input_scale * scaled)

    @cached_property
    def input_lengths(self) -> Float[Tensor, " d"]:
        """What a small length of one in the units of the model is in the user's, around the middle of each input."""
        d = len(self.lower)
        return self.input_scale[:d] / self.bends.slopes(d)

    def rows(self, rows: Rows) -> Rows:
        """Rows in the units of the model."""
        shift, scale = self.of_targets
        return Rows(self.inputs(rows.inputs), (rows.targets - shift) / scale, rows.total_count)

    def num_outside(self, X: Float[np.ndarray, "n d"]) -> int:
        """How many inputs lie farther outside the range that the units were chosen for than this range is wide."""
        _, _, middle, most = self._of_inputs
        is_far = np.abs(X - middle) > most
        return int(is_far.any(-1).sum()) if is_far.any() else 0

    def is_same(self, other: "Units") -> bool:
        """Whether both map alike, to the last bit."""
        ours, theirs = self.bends, other.bends
        if (ours.columns, ours.is_kept) != (theirs.columns, theirs.is_kept):
            return False
        return all(torch.equal(one, two) for one, two in zip(self._tensors, other._tensors, strict=True))

    @property
    def _tensors(self) -> tuple[Tensor, ...]:
        """All numbers in it."""
        numbers = (*(getattr(self, each.name) for each in fields(self)), self.bends.center, self.bends.scale)
        return tuple(each for each in numbers if isinstance(each, Tensor))

    @cached_property
    def of_targets(self) -> tuple[Float[np.ndarray, "c 1"], Float[np.ndarray, "c 1"]]:
        """Shift and scale of targets."""
        return self.target_shift.numpy(), self.target_scale.numpy()

    @cached_property
    def _of_inputs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Shift and scale; the middle of the range, and how far from it is far outside."""
        lower, upper = self.lower.numpy(), self.upper.numpy()
        return self.input_shift.numpy(), self.input_scale.numpy(), 0.5 * (lower + upper), 1.5 * (upper - lower)

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
