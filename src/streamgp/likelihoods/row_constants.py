"""Constants of a likelihood that may differ between observations: numbers of trials, exposures, noise variances."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.errors import OptionError, ShapeError
from streamgp.shapes import broadcast_shapes

__all__ = ["RowConstants"]

# Not typing.Self, which beartype refuses on the methods of a class that it does not decorate.
Likelihood = TypeVar("Likelihood", bound="RowConstants")


class RowConstants:
    """A frozen dataclass whose tensors have one value for all observations, or one for each.

    Attributes:
        row_data: Name of the field that may hold data of each observation; None if there is none.
        needs_row_data: Whether an observation means nothing without it, so that there is no default.
    """

    row_data: ClassVar[str | None] = None
    needs_row_data: ClassVar[bool] = False

    @final
    def constants(self) -> dict[str, Tensor]:
        """Return the fields that may have a value for each observation, by name."""
        names = self._broadcast_fields()
        return {name: value for name, value in vars(self).items() if name in names}

    @cached_property
    def has_row_constants(self) -> bool:
        """True if some constant has more than one value, so that observations differ in their likelihood."""
        return any(value.numel() > 1 for value in self.constants().values())

    @final
    def check_rows(self, shape: Sequence[int]) -> None:
        """Check that no constant has axes that observations of a shape lack."""
        for name, constant in self.constants().items():
            if broadcast_shapes(constant.shape, shape) != torch.Size(shape):
                raise ShapeError(
                    f"{name} must have shape {tuple(shape)}, one number for each observation, or be a single number "
                    f"for all, but has shape {tuple(constant.shape)}. Drop the other axes of {name}, for example with "
                    f"{name}.reshape(-1)."
                )

    def _broadcast_fields(self) -> tuple[str, ...]:
        """Names of fields that broadcast with observations: all tensors."""
        return tuple(name for name, value in vars(self).items() if isinstance(value, Tensor))

    @final
    def with_row_data(self: Likelihood, values: Tensor | float | None) -> Likelihood:
        """Return the likelihood of observations with data of their own: total counts, exposures, noise variances.

        Args:
            values: One number for each observation, or one for all; None for what the likelihood has.
        """
        if values is None:
            return self
        if self.row_data is None:
            raise OptionError(
                f"A {type(self).__name__} likelihood has no number of trials, exposure or known noise for each "
                "observation, but some were given. Leave them out."
            )
        changed: Any = replace(self, **{self.row_data: values})  # type: ignore[type-var]
        return changed

    @property
    def row_values(self) -> Float[Tensor, "..."] | None:
        """The data of observations, one number or one for each; None if the likelihood has none."""
        if self.row_data is None:
            return None
        values: Tensor = getattr(self, self.row_data)
        return values

    @final
    def with_axis(self: Likelihood) -> Likelihood:
        """Return the likelihood with one more axis at the end of what differs between observations."""
        longer: Any = {name: value.unsqueeze(-1) for name, value in self.constants().items() if value.dim()}
        return replace(self, **longer) if longer else self  # type: ignore[type-var]

    @final
    def at_rows(self: Likelihood, index: Int[Tensor, " k"], num_axes: int = 0) -> Likelihood:
        """Return the likelihood of some of the observations.

        Args:
            index: Which; constants that are the same for all stay as they are.
            num_axes: How many axes to put after that of the observations.
        """
        chosen: Any = {
            name: value[index.to(value.device)].reshape(-1, *[1] * num_axes)
            for name, value in self.constants().items()
            if value.dim()
        }
        return replace(self, **chosen) if chosen else self  # type: ignore[type-var]

    @final
    def _num_axes(self, *tensors: Tensor) -> int:
        """The number of axes of what these tensors and the constants broadcast to."""
        return max(tensor.dim() for tensor in (*tensors, *self.constants().values()))

    @final
    def _expanded(self, f: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Latent values with all axes that they and the constants have."""
        return f + sum((torch.zeros_like(each.to(f)) for each in self.constants().values()), torch.zeros_like(f))

    @final
    def _freeze(self, **fields: object) -> None:
        """Set the fields of a frozen dataclass, once, from its constructor."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)
