"""Units of training: standardized inputs and targets."""

from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import OptionError
from streamgp.evidence import Evidence, difference
from streamgp.storage import register
from streamgp.training.features import Observed, relative_jitter

__all__ = ["Scaling", "describe_unscaled_inputs", "find_scaling", "spread", "to_observed"]

# Spreads of inputs for which the priors of lengthscales were made: the unit cube's is 0.29.
_USUAL_SPREAD = (0.01, 10.0)


@register
@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """Affine maps between the user's units and those of training.

    Attributes:
        input_shift: Subtracted from inputs.
        input_scale: Divides them after that.
        target_shift: Subtracted from targets.
        target_scale: Divides them after that.
    """

    input_shift: Float[Tensor, " d"]
    input_scale: Float[Tensor, " d"]
    target_shift: Float[Tensor, ""]
    target_scale: Float[Tensor, ""]

    def inputs(self, X: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        """Inputs in the units of training."""
        return (X - self.input_shift.to(X)) / self.input_scale.to(X)

    def rows(self, X: Tensor | Evidence) -> Tensor | Evidence:
        """Inputs, or rows of evidence, in the units of training."""
        return X.rescaled(self.input_shift, self.input_scale) if isinstance(X, Evidence) else self.inputs(X)

    def targets(self, y: Float[Tensor, "*b"], rows: object = None) -> Float[Tensor, "*b"]:
        """Targets in the units of training; of rows of evidence, shifted as the function is."""
        shift = self.target_shift.to(y)
        return (y - (shift * rows.of_constant if isinstance(rows, Evidence) else shift)) / self.target_scale.to(y)

    def double(self) -> "Scaling":
        """Maps in double precision."""
        parts = (self.input_shift, self.input_scale, self.target_shift, self.target_scale)
        return Scaling(*(part.double() for part in parts))

    def observed(self, data: Observed) -> Observed:
        """Observations in the units of training."""
        return replace(data, inputs=self.rows(data.inputs), targets=self.targets(data.targets, data.inputs))


def to_observed(inputs: Tensor | Evidence, targets: Tensor, scaling: Scaling | None = None) -> Observed:
    """Observations in double precision and in the units of training, for a model in their dtype.

    Args:
        inputs: Inputs `(n, d)`, pairs `(n, 2, d)`, or rows of evidence.
        targets: Targets `(n,)`.
        scaling: Units of training; those of the observations by default.
    """
    y, jitter = targets.detach().double(), relative_jitter(inputs.dtype)
    if isinstance(inputs, Evidence):
        data = Observed(inputs.detach().matched(inputs.points[..., :1, :].double()), y, jitter)
    else:
        X = inputs.detach().double()
        data = Observed(difference(*X.unbind(-2)) if X.dim() == 3 else X, y, jitter)
    return data if scaling is None else scaling.observed(data)


def find_scaling(
    standardize: bool | str | None, inputs: Float[Tensor, "k d"], targets: Float[Tensor, " n"], *, is_gaussian: bool
) -> Scaling | None:
    """Find the shift and scale that give zero mean and unit variance; constants are only shifted.

    Args:
        standardize: True for inputs and targets, `"inputs"`, `"targets"`, or False or None for neither.
        inputs: All inputs.
        targets: All targets.
        is_gaussian: Whether targets may be scaled; counts and classes stay as they are.
    """
    if standardize is False or standardize is None:
        return None
    if standardize not in (True, "inputs", "targets"):
        raise OptionError(f"standardize must be True, False, 'inputs' or 'targets', but is {standardize!r}.")
    if standardize == "targets" and not is_gaussian:
        raise OptionError(
            "standardize='targets' was asked for, but only targets with Gaussian noise can be scaled. "
            "Pass standardize='inputs'."
        )
    d = inputs.shape[-1]
    shift, scale = inputs.new_zeros(d), inputs.new_ones(d)
    target_shift, target_scale = targets.new_zeros(()), targets.new_ones(())
    if standardize in (True, "inputs"):
        shift, scale = _mean(inputs), spread(inputs)
    if standardize in (True, "targets") and is_gaussian:
        target_shift, target_scale = _mean(targets), spread(targets.unsqueeze(-1)).squeeze(-1)
    return Scaling(shift, scale, target_shift, target_scale)


def describe_unscaled_inputs(inputs: Float[Tensor, "n d"], *, advice: str) -> str | None:
    """Say which inputs have a spread far from that of the unit cube, and what to do; None if none has.

    Args:
        inputs: All inputs.
        advice: What the reader can do.
    """
    deviation, is_constant = spread(inputs), inputs.amax(0) == inputs.amin(0)
    is_odd = ((deviation < _USUAL_SPREAD[0]) | (deviation > _USUAL_SPREAD[1])) & ~is_constant
    if not bool(is_odd.any()):
        return None
    worst = int(torch.where(is_odd, deviation.log().abs(), -1.0).argmax())
    return (
        f"{int(is_odd.sum())} of {inputs.shape[-1]} input columns are far from unit scale: column {worst} has standard "
        f"deviation {float(deviation[worst]):.3g}. Priors of lengthscales assume inputs in the unit cube or near it. "
        f"{advice}"
    )


def spread(columns: Float[Tensor, "n d"]) -> Float[Tensor, " d"]:
    """Standard deviation of each column, one for those that are constant up to rounding of their own size.

    Columns are divided by their largest value before they are squared, which could overflow.
    """
    largest = columns.abs().amax(0)
    unit = torch.where(largest > 0, largest, 1.0)
    deviation = (columns / unit).std(0, correction=0) * unit
    return torch.where(deviation > 1e-12 * largest, deviation, 1.0)


def _mean(columns: Tensor) -> Tensor:
    """The mean of each column, as a sum of shares, since the sum could overflow."""
    return (columns / len(columns)).sum(0)
