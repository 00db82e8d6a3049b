"""Rows of evidence: finite sums of weighted values and slopes of a function."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.checks import check_batch
from streamgp.errors import ShapeError, UnsupportedError
from streamgp.shapes import broadcast_shapes

__all__ = ["Evidence", "join"]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    r"""Rows $\ell_k = o_k + \sum_i w_{ki} a_i(f)$ of atoms $a(f) = c f(x) + v \cdot \nabla f(x)$.

    Made by the functions of `streamgp.evidence`. A GP is conditioned on rows of evidence as it is on values at inputs,
    and predicts them likewise.

    Attributes:
        atoms: Columns of $x$, or of $x$, $v$ and $c$ where there are slopes.
        num_dims: Number of inputs $d$.
        row_of: Row that an atom belongs to, ascending; None where each atom is a row of its own.
        weights: $w$, one for each atom; None where all are one and each atom is a row.
        part_shapes: Shape of the targets of each kind of evidence that was combined.
        labels: Names of the groups that rows stand for, in order; empty where rows have none.
        is_rate: Whether rows are the latent values of averages of responses, such as rates, instead of sums of latent
            values; conditioning makes rows that are linear of them.
        offsets: $o$, one for each row; None for zero.
    """

    atoms: Float[Tensor, "*b n a"]
    num_dims: int
    row_of: Int[Tensor, " n"] | None
    weights: Float[Tensor, " n"] | None
    part_shapes: tuple[tuple[int, ...], ...]
    labels: tuple[Any, ...] = ()
    is_rate: bool = False
    offsets: Float[Tensor, " k"] | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows, each of which is observed as one number."""
        return sum(math.prod(shape) for shape in self.part_shapes)

    @property
    def shape(self) -> torch.Size:
        """The shape of inputs that would stand in the same place, `(*b, k, d)`."""
        return torch.Size((*self.atoms.shape[:-2], self.num_rows, self.num_dims))

    @property
    def target_shape(self) -> tuple[int, ...]:
        """The last axes of targets: `(n, d)` for gradients alone, `(k,)` for all others."""
        return self.part_shapes[0] if len(self.part_shapes) == 1 else (self.num_rows,)

    @property
    def dtype(self) -> torch.dtype:
        """The type of numbers."""
        return self.atoms.dtype

    @property
    def device(self) -> torch.device:
        """Device of the numbers."""
        return self.atoms.device

    @property
    def requires_grad(self) -> bool:
        """True if inputs or weights carry a gradient."""
        return self.atoms.requires_grad or (self.weights is not None and self.weights.requires_grad)

    @property
    def stand_in(self) -> Float[Tensor, "*b k d"]:
        """Zeros without memory in the shape of inputs, for checks that ask for shapes alone."""
        return self.atoms.detach().new_zeros(()).expand(self.shape)

    @property
    def num_groups(self) -> int:
        """Number of rows that are sums; zero where each atom is a row."""
        return 0 if self.row_of is None else self.num_rows

    @property
    def is_mixed(self) -> bool:
        """True if rows are neither values nor averages of rates."""
        return not self.is_rate and (self.has_slopes or self.row_of is not None)

    def dim(self) -> int:
        """Number of axes of `shape`."""
        return self.atoms.dim()

    @property
    def has_slopes(self) -> bool:
        """True if atoms have directions."""
        return self.atoms.shape[-1] > self.num_dims

    @property
    def points(self) -> Float[Tensor, "*b n d"]:
        """Inputs $x$ of the atoms."""
        return self.atoms[..., : self.num_dims]

    @property
    def directions(self) -> Float[Tensor, "*b n d"] | None:
        """Directions $v$; None where there are values alone."""
        return self.atoms[..., self.num_dims : -1] if self.has_slopes else None

    @property
    def value_weights(self) -> Float[Tensor, "*b n"] | None:
        """Weights $c$ of values beside slopes; None where they are all one."""
        return self.atoms[..., -1] if self.has_slopes else None

    def linear(self, weights: Float[Tensor, " n"], offsets: Float[Tensor, " k"]) -> "Evidence":
        """Return the rows with other weights, as sums of latent values with offsets."""
        return replace(self, weights=weights, offsets=offsets, is_rate=False)

    def sum_rows(self, values: Float[Tensor, "*c n m"]) -> Float[Tensor, "*c k m"]:
        """Add up atoms to rows along the last axis but one."""
        if self.row_of is None or self.weights is None:
            return values
        rows = values.new_zeros(*values.shape[:-2], self.num_rows, values.shape[-1])
        return rows.index_add(-2, self.row_of, values * self.weights.unsqueeze(-1))

    def sums(self, values: Float[Tensor, "*c n"]) -> Float[Tensor, "*c k"]:
        """Add up atoms to rows along the last axis."""
        return values if self.row_of is None else self.sum_rows(values.unsqueeze(-1)).squeeze(-1)

    def select(self, rows: Int[Tensor, " j"]) -> "Evidence":
        """Some of the rows, given in ascending order."""
        if self.row_of is None or self.weights is None:
            return replace(self, atoms=self.atoms.index_select(-2, rows), part_shapes=((len(rows),),), labels=())
        place = torch.full((self.num_rows,), -1, device=rows.device)
        place[rows] = torch.arange(len(rows), device=rows.device)
        kept = place[self.row_of]
        is_kept = kept >= 0
        return Evidence(
            self.atoms[..., is_kept, :],
            self.num_dims,
            kept[is_kept],
            self.weights[is_kept],
            ((len(rows),),),
            tuple(self.labels[i] for i in rows.tolist()) if self.labels else (),
            self.is_rate,
            None if self.offsets is None else self.offsets[rows],
        )

    def detach(self) -> "Evidence":
        """Return the rows without gradients."""
        weights = None if self.weights is None else self.weights.detach()
        return replace(self, atoms=self.atoms.detach(), weights=weights)

    def expand(self, batch_shape: Sequence[int]) -> "Evidence":
        """Return the rows with leading axes."""
        return replace(self, atoms=self.atoms.expand(*batch_shape, *self.atoms.shape[-2:]))

    def matched(self, like: Tensor, batch_shape: Sequence[int] = ()) -> "Evidence":
        """Check the evidence against inputs of a model, whose type of numbers and device it takes."""
        if self.num_dims != like.shape[-1]:
            raise ShapeError(
                f"The evidence is about a function of {self.num_dims} inputs, but the model has {like.shape[-1]}. "
                "Make it of inputs with as many columns as those of the model."
            )
        check_batch(self.atoms.shape[:-2], batch_shape, "the evidence's inputs", num_own_axes=2)
        if self.atoms.dtype == like.dtype and self.atoms.device == like.device:
            return self
        row_of = None if self.row_of is None else self.row_of.to(like.device)
        weights = None if self.weights is None else self.weights.to(like)
        offsets = None if self.offsets is None else self.offsets.to(like)
        return replace(self, atoms=self.atoms.to(like), row_of=row_of, weights=weights, offsets=offsets)

    def rescaled(self, shift: Float[Tensor, " d"], scale: Float[Tensor, " d"]) -> "Evidence":
        """Return the rows as those of a function of $(x - s) / a$."""
        shift, scale = shift.to(self.atoms), scale.to(self.atoms)
        parts = [(self.points - shift) / scale]
        if self.directions is not None:
            parts += [self.directions / scale, self.atoms[..., -1:]]
        return replace(self, atoms=torch.cat(parts, dim=-1))

    def moved(self, transform: Callable[[Tensor], Tensor]) -> "Evidence":
        """Rows of the function after its inputs were transformed; directions by the slope of the transform."""
        v = self.directions
        if v is None:
            x = transform(self.points)
            return replace(self, atoms=x, num_dims=x.shape[-1])
        try:
            x, slope = torch.func.jvp(transform, (self.points,), (v.contiguous(),))[:2]
        except (RuntimeError, NotImplementedError) as error:
            raise UnsupportedError(
                "The inputs' transform has no forward mode, so that slopes cannot be carried through it. Pass evidence "
                "of values, or make the model without the transform."
            ) from error
        return replace(self, atoms=torch.cat([x, slope, self.atoms[..., -1:]], dim=-1), num_dims=x.shape[-1])

    @property
    def of_constant(self) -> Float[Tensor, "*b k"]:
        """Values of the rows for the function that is one everywhere."""
        c = self.value_weights
        return self.sums(self.atoms.new_ones(self.atoms.shape[:-1]) if c is None else c)

    def with_column(self, value: float) -> "Evidence":
        """Rows of a function of one more input, which has a value and along which there are no slopes."""
        column = torch.full_like(self.atoms[..., :1], value)
        parts = [self.points, column]
        if self.directions is not None:
            parts += [self.directions, torch.zeros_like(column), self.atoms[..., -1:]]
        return replace(self, atoms=torch.cat(parts, dim=-1), num_dims=self.num_dims + 1)

    def lifted(self) -> Float[Tensor, "*b n a"]:
        """Atoms with columns for directions, whether or not there are any."""
        x = self.atoms
        return x if self.has_slopes else torch.cat([x, torch.zeros_like(x), torch.ones_like(x[..., :1])], dim=-1)

    def __repr__(self) -> str:
        kinds = f"{self.atoms.shape[-2]} {'values and slopes' if self.has_slopes else 'values'}"
        return f"Evidence({self.num_rows} rows of {kinds}, num_dims={self.num_dims})"


def join(first: Tensor | Evidence, second: Tensor | Evidence) -> Tensor | Evidence:
    """Rows of two sets of inputs or evidence, one after the other, with leading axes that broadcast."""
    batch = broadcast_shapes(first.shape[:-2], second.shape[:-2])
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return torch.cat([each.expand(*batch, *each.shape[-2:]) for each in (first, second)], dim=-2)
    one, other = (each if isinstance(each, Evidence) else _of_values(each) for each in (first, second))
    has_slopes = one.has_slopes or other.has_slopes
    if (one.is_rate and other.is_mixed) or (other.is_rate and one.is_mixed):
        raise UnsupportedError(
            "Averages of rates are combined with values and other averages of rates; those of latent values and slopes "
            "are not of the same kind. Condition on them one after the other."
        )
    atoms = [(each.lifted() if has_slopes else each.atoms) for each in (one, other)]
    atoms = [each.expand(*batch, *each.shape[-2:]) for each in atoms]
    row_of = weights = None
    if one.row_of is not None or other.row_of is not None:
        row_of = torch.cat([_rows_of(one), _rows_of(other) + one.num_rows])
        weights = torch.cat([_weights_of(one), _weights_of(other)])
    offsets = None
    if one.offsets is not None or other.offsets is not None:
        offsets = torch.cat(
            [each.atoms.new_zeros(each.num_rows) if each.offsets is None else each.offsets for each in (one, other)]
        )
    return Evidence(
        torch.cat(atoms, dim=-2),
        one.num_dims,
        row_of,
        weights,
        one.part_shapes + other.part_shapes,
        # A value is the latent value of its own response.
        is_rate=one.is_rate or other.is_rate,
        offsets=offsets,
    )


def _of_values(X: Tensor) -> Evidence:
    return Evidence(X, X.shape[-1], None, None, ((X.shape[-2],),))


def _rows_of(evidence: Evidence) -> Tensor:
    if evidence.row_of is not None:
        return evidence.row_of
    return torch.arange(evidence.atoms.shape[-2], device=evidence.atoms.device)


def _weights_of(evidence: Evidence) -> Tensor:
    return evidence.atoms.new_ones(evidence.atoms.shape[-2]) if evidence.weights is None else evidence.weights
