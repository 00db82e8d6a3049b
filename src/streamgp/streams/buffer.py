"""The latest rows of a stream, in the user's units and in those of the model."""

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Buffer", "Units"]


# With fewer rows no input is bent; larger takes long tails for outliers for longer.
_FEW_ROWS = 25
# Quartile ranges from the median at which an input has a long tail; larger bends fewer inputs.
_LONG_TAIL = 5.0
# Share of the quartile range in which a bent input is still nearly linear; larger bends less.
_LINEAR = 1.0 / 3.0
_COLUMNS = ("inputs", "targets", "counts", "noises", "times", "scaled_inputs", "scaled_targets")


@final
@dataclass(frozen=True, eq=False)
class Units:
    """Means and scales by which inputs and targets are standardized.

    Inputs with long tails are bent first, by the inverse hyperbolic sine, which is a logarithm far from the center.

    Attributes:
        bend_center: Centers of the bent inputs.
        bend_scale: Their scales; zero for an input that is not bent. Once an input is bent it stays so.
        input_mean: Means of the inputs.
        input_scale: Scales of the inputs; one for a column that is constant.
        target_mean: Mean of the targets.
        target_scale: Scale of the targets.
    """

    bend_center: Float[np.ndarray, " d"]
    bend_scale: Float[np.ndarray, " d"]
    input_mean: Float[np.ndarray, " d"]
    input_scale: Float[np.ndarray, " d"]
    target_mean: float
    target_scale: float

    @classmethod
    def plain(cls, num_dims: int, target_mean: float = 0.0, target_scale: float = 1.0) -> "Units":
        """Return units that leave inputs as they are."""
        zeros, ones = np.zeros(num_dims), np.ones(num_dims)
        return cls(zeros, zeros, zeros, ones, target_mean, target_scale)

    @classmethod
    def of(
        cls,
        inputs: Float[np.ndarray, "n d"],
        targets: Float[np.ndarray, " n"],
        before: "Units | None" = None,
        *,
        scales_targets: bool = True,
        bends: bool = True,
    ) -> "Units":
        """Return the units of these rows; of a single row its target is the scale, too.

        Args:
            inputs: Inputs.
            targets: Targets.
            before: Units before, whose bent inputs stay bent.
            scales_targets: Whether targets are standardized; those of most likelihoods have units of their own.
            bends: Whether inputs of long tails are bent.
        """
        units = cls.plain(inputs.shape[1]) if before is None else before
        if len(targets) == 1:
            size = abs(float(targets[0]))
            units = cls.plain(inputs.shape[1], float(targets[0]), size if size > 1e-300 else 1.0)
            units = replace(units, input_mean=inputs[0].copy())
            return units if scales_targets else replace(units, target_mean=0.0, target_scale=1.0)
        if len(targets) >= _FEW_ROWS and bends:
            units = units._bent(inputs)
        inputs = units._bend(inputs)
        mean, scale = inputs.mean(0), inputs.std(0)
        scale = np.where(scale > 1e-9 * np.abs(inputs).max(0), scale, 1.0)
        if not scales_targets:
            return cls(units.bend_center, units.bend_scale, mean, scale, 0.0, 1.0)
        target_mean, target_scale = float(targets.mean()), float(targets.std())
        is_constant = target_scale <= 1e-12 * float(np.abs(targets).max())
        target_scale = (abs(target_mean) or 1.0) if is_constant else target_scale
        return cls(units.bend_center, units.bend_scale, mean, scale, target_mean, target_scale)

    def inputs(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Return standardized inputs."""
        return (self._bend(X) - self.input_mean) / self.input_scale

    @property
    def input_lengths(self) -> Float[np.ndarray, " d"]:
        """Lengths of one standardized unit in the user's units, around the middle of a bent input."""
        return self.input_scale * np.where(self.bend_scale > 0.0, self.bend_scale, 1.0)

    def original_inputs(self, inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Return standardized inputs in the user's units."""
        bent = inputs * self.input_scale + self.input_mean
        if not self.bend_scale.any():
            return bent
        with np.errstate(over="ignore"):
            return np.where(self.bend_scale > 0.0, self.bend_center + self.bend_scale * np.sinh(bent), bent)

    def _bend(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        scale = self.bend_scale
        if not scale.any():
            return X
        return np.where(scale > 0.0, np.arcsinh((X - self.bend_center) / np.where(scale > 0.0, scale, 1.0)), X)

    def _bent(self, inputs: Float[np.ndarray, "n d"]) -> "Units":
        """Bend the inputs that have long tails, and are not bent yet."""
        low, center, high = np.quantile(inputs, [0.25, 0.5, 0.75], axis=0)
        width = high - low
        is_new = (width > 0.0) & (np.abs(inputs - center).max(0) > _LONG_TAIL * width) & (self.bend_scale == 0.0)
        return replace(
            self,
            bend_center=np.where(is_new, center, self.bend_center),
            bend_scale=np.where(is_new, _LINEAR * width, self.bend_scale),
        )

    def targets(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return standardized targets."""
        return (y - self.target_mean) / self.target_scale


@final
@dataclass
class Buffer:
    """The latest rows, in the order in which their targets came; arrays have room for more.

    Attributes:
        inputs: In the user's units.
        targets: In the user's units.
        counts: Numbers of trials or exposures; ones for targets that have none.
        noises: Variances of the noise in units of what is usual, one over the weights of the rows.
        times: When the rows were, counted in rows from the start.
        num_rows: Number of rows.
        scaled_inputs: Standardized.
        scaled_targets: Standardized.
    """

    inputs: Float[np.ndarray, "n d"]
    targets: Float[np.ndarray, " n"]
    counts: Float[np.ndarray, " n"]
    noises: Float[np.ndarray, " n"]
    times: Int[np.ndarray, " n"]
    num_rows: int = 0
    scaled_inputs: Float[np.ndarray, "n d"] = field(default_factory=lambda: np.empty((0, 0)))
    scaled_targets: Float[np.ndarray, " n"] = field(default_factory=lambda: np.empty(0))

    @classmethod
    def empty(cls, num_dims: int, room: int = 64) -> "Buffer":
        """Return a buffer without rows."""
        return cls(
            inputs=np.empty((room, num_dims)),
            targets=np.empty(room),
            counts=np.empty(room),
            noises=np.empty(room),
            times=np.empty(room, dtype=np.int64),
            scaled_inputs=np.empty((room, num_dims)),
            scaled_targets=np.empty(room),
        )

    def append(
        self,
        inputs: Float[np.ndarray, "n d"],
        targets: Float[np.ndarray, " n"],
        noises: Float[np.ndarray, " n"],
        times: Int[np.ndarray, " n"],
        units: Units | None,
        counts: Float[np.ndarray, " n"] | float = 1.0,
    ) -> None:
        """Add rows."""
        start, stop = self.num_rows, self.num_rows + len(targets)
        if stop > len(self.targets):
            self._make_room(max(stop, 2 * len(self.targets)))
        self.inputs[start:stop], self.targets[start:stop] = inputs, targets
        self.noises[start:stop], self.times[start:stop] = noises, times
        self.counts[start:stop] = counts
        if units is not None:
            self.scaled_inputs[start:stop] = units.inputs(inputs)
            self.scaled_targets[start:stop] = units.targets(targets)
        self.num_rows = stop

    def rescale(self, units: Units) -> None:
        """Standardize all rows anew."""
        n = self.num_rows
        self.scaled_inputs[:n] = units.inputs(self.inputs[:n])
        self.scaled_targets[:n] = units.targets(self.targets[:n])

    def drop(self, num_rows: int) -> None:
        """Drop the first rows."""
        kept = self.copy(num_rows)
        self.num_rows = kept.num_rows
        for name in _COLUMNS:
            getattr(self, name)[: kept.num_rows] = getattr(kept, name)

    def copy(self, start: int = 0) -> "Buffer":
        """Return a buffer of its own with the rows from `start` on."""
        part = slice(start, self.num_rows)
        return Buffer(
            inputs=self.inputs[part].copy(),
            targets=self.targets[part].copy(),
            counts=self.counts[part].copy(),
            noises=self.noises[part].copy(),
            times=self.times[part].copy(),
            num_rows=self.num_rows - start,
            scaled_inputs=self.scaled_inputs[part].copy(),
            scaled_targets=self.scaled_targets[part].copy(),
        )

    def _make_room(self, room: int) -> None:
        extra = room - len(self.targets)
        for name in _COLUMNS:
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros((extra, *old.shape[1:]), dtype=old.dtype)]))
