"""What an optimizer knows, as a frozen value, and how it changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.checks import to_double
from streamgp.errors import ShapeError, SupportError
from streamgp.optimizers.box import Box
from streamgp.optimizers.settings import Settings
from streamgp.optimizers.surrogate import Data, Surrogate, absorb_data

__all__ = ["State", "add_pending", "cancel", "compare", "observe", "start_state"]

# A told point closer than this to a pending one, in the unit cube, is taken for it: people round what they set.
_SAME = 1e-3


@final
@dataclass(frozen=True, eq=False)
class State:
    """Everything that suggestions depend on but the settings; points are in the unit cube.

    Attributes:
        X: Evaluated points, in the order in which they were told.
        y: Outcomes in the user's units, a row of NaN for an evaluation that failed.
        pairs: Compared points, the preferred one first.
        pending: Points that were asked for and not told yet.
        num_designed: How many points of the initial design were given out.
        num_asks: How often a suggestion was made.
        surrogate: The model as of the last fit, with all data that came since; None before the first.
    """

    X: Float[Tensor, "n d"]
    y: Float[Tensor, "n o"]
    pairs: Float[Tensor, "c 2 d"]
    pending: Float[Tensor, "p d"]
    num_designed: int = 0
    num_asks: int = 0
    surrogate: Surrogate | None = field(default=None)

    @property
    def is_success(self) -> Bool[Tensor, " n"]:
        """Which evaluations succeeded."""
        return ~self.y.isnan().any(-1)

    @property
    def failures(self) -> Float[Tensor, "k d"]:
        """Points whose evaluation failed."""
        return self.X[~self.is_success]

    @property
    def data(self) -> Data:
        """What there is to learn from."""
        return Data(self.X[self.is_success], self.y[self.is_success], self.failures, self.pairs)

    @property
    def num_told(self) -> int:
        """Number of evaluations and comparisons, failed ones included."""
        return len(self.X) + len(self.pairs)


def start_state(settings: Settings) -> State:
    """Before any data."""
    d, lower = settings.box.num_dims, settings.box.lower
    empty = lower.new_empty(0, d)
    return State(empty, lower.new_empty(0, len(settings.outcomes)), lower.new_empty(0, 2, d), empty)


def observe(state: State, settings: Settings, X: Any, y: Any) -> State:
    """Add evaluations; rows of outcomes with NaN are failures.

    Args:
        state: Before.
        settings: Of the optimizer.
        X: Points `(n, d)` in the user's units.
        y: Outcomes `(n,)` or `(n, o)`.
    """
    points = settings.box.to_unit(X)
    rows = _read_outcomes(y, settings, num_rows=len(points))
    is_good = ~rows.isnan().any(-1)
    surrogate = state.surrogate
    if surrogate is not None:
        new = Data(points[is_good], rows[is_good], points[~is_good], state.pairs[:0])
        surrogate = absorb_data(surrogate, settings, new)
    return replace(
        state,
        X=torch.cat([state.X, points]),
        y=torch.cat([state.y, rows]),
        pending=_without(state.pending, points),
        surrogate=surrogate,
    )


def compare(state: State, settings: Settings, winners: Any, losers: Any) -> State:
    """Add comparisons, the preferred points and the others in the user's units, row by row."""
    first = settings.box.to_unit(winners, "winners")
    second = settings.box.to_unit(losers, "losers")
    if first.shape != second.shape:
        raise ShapeError(
            f"winners and losers must have the same shape, one row of each for a comparison, but have shapes "
            f"{tuple(first.shape)} and {tuple(second.shape)}. Repeat a point that won several times."
        )
    pairs = torch.stack([first, second], dim=-2)
    surrogate = state.surrogate
    if surrogate is not None:
        surrogate = absorb_data(surrogate, settings, Data(first[:0], state.y[:0], first[:0], pairs))
    pending = _without(state.pending, torch.cat([first, second]))
    return replace(state, pairs=torch.cat([state.pairs, pairs]), pending=pending, surrogate=surrogate)


def add_pending(state: State, points: Float[Tensor, "q d"]) -> State:
    """Add points of the unit cube whose outcomes are awaited."""
    return replace(state, pending=torch.cat([state.pending, points]))


def cancel(state: State, box: Box, X: Any) -> State:
    """Forget pending points; all of them if `X` is None."""
    if X is None:
        return replace(state, pending=state.pending[:0])
    return replace(state, pending=_without(state.pending, box.to_unit(X)))


def _read_outcomes(y: Any, settings: Settings, *, num_rows: int) -> Float[Tensor, "n o"]:
    rows, o = to_double(y, "y"), len(settings.outcomes)
    if o == 1 and tuple(rows.shape) == (num_rows,):
        rows = rows.unsqueeze(-1)
    if tuple(rows.shape) != (num_rows, o):
        wanted = f"({num_rows},)" if o == 1 else f"({num_rows}, {o}), the objective and then {_names(settings)},"
        raise ShapeError(
            f"y must have shape {wanted} with a row for each of the {num_rows} points, but has shape "
            f"{tuple(rows.shape)}. A failed evaluation is a row of NaN."
        )
    is_good = ~rows.isnan().any(-1)
    where = is_good.nonzero().squeeze(-1)
    for j, outcome in enumerate(settings.outcomes):
        try:
            outcome.likelihood.check_targets(rows[is_good, j])
        except SupportError as error:
            infinite = where[rows[is_good, j].isinf()]
            hint = f" Row {int(infinite[0])} is infinite; tell a failed evaluation as NaN." if len(infinite) else ""
            what = "the objective" if j == 0 else f"constraint {_label(settings, j - 1)}"
            raise SupportError(f"Outcomes of {what} cannot be used. {error}{hint}") from None
    return torch.where(is_good.unsqueeze(-1), rows, torch.nan)


def _names(settings: Settings) -> str:
    return ", ".join(f"constraint {_label(settings, j)}" for j in range(len(settings.constraints)))


def _label(settings: Settings, j: int) -> str:
    name = settings.constraints[j].name
    return str(j) if name is None else repr(name)


def _without(pending: Float[Tensor, "p d"], told: Float[Tensor, "n d"]) -> Float[Tensor, "r d"]:
    """Pending points without the nearest one to each told point, if it is near."""
    remaining: Sequence[int] = range(len(pending))
    for point in told:
        if not remaining:
            break
        distance = (pending[list(remaining)] - point).abs().amax(-1)
        nearest = int(distance.argmin())
        if distance[nearest] < _SAME:
            remaining = [i for k, i in enumerate(remaining) if k != nearest]
    return pending[list(remaining)]
