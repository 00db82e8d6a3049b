"""What a TuRBO optimizer knows, as a frozen value, and how it changes."""

from dataclasses import dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from streamgp.checks import to_double
from streamgp.errors import ShapeError, SupportError
from streamgp.optimizers.trust_region import Region, update_region
from streamgp.optimizers.turbo_models import Hyperparameters
from streamgp.optimizers.turbo_settings import TurboSettings

__all__ = ["TurboState", "observe", "start_state"]


@final
@dataclass(frozen=True, eq=False)
class TurboState:
    """Everything that suggestions depend on but the settings; points are in the unit cube.

    Attributes:
        X: Evaluated points, in the order in which they were told.
        y: Outcomes in the user's units, NaN for an evaluation that failed.
        run: To which run each belongs; a run ends where its trust region is given up.
        lengths: Length of the trust region after each evaluation.
        region: The trust region of the current run.
        num_runs: Number of runs begun.
        num_designed: How many points of the current run's initial design were given out.
        num_asks: How often points were suggested.
        start: Where the fit of the current data starts; None for a fit from nothing.
        fitted: Where it ended; None before it was made.
    """

    X: Float[Tensor, "n d"]
    y: Float[Tensor, " n"]
    run: Int[Tensor, " n"]
    lengths: Float[Tensor, " n"]
    region: Region
    num_runs: int = 1
    num_designed: int = 0
    num_asks: int = 0
    start: Hyperparameters | None = None
    fitted: Hyperparameters | None = None

    @property
    def is_known(self) -> Bool[Tensor, " n"]:
        """Which evaluations of the current run succeeded."""
        return (self.run == self.num_runs - 1) & ~self.y.isnan()


def start_state(settings: TurboSettings) -> TurboState:
    """Before any data."""
    lower = settings.box.lower
    empty = lower.new_empty(0)
    X = lower.new_empty(0, settings.box.num_dims)
    return TurboState(X, empty, torch.empty(0, dtype=torch.long), empty, settings.rules.start())


def observe(state: TurboState, settings: TurboSettings, X: Any, y: Any) -> TurboState:
    """Add evaluations, which are one step of the trust region, and begin a new run if it is given up.

    Args:
        state: Before.
        settings: Of the optimizer.
        X: Points `(n, d)` in the user's units.
        y: Outcomes `(n,)`; NaN for a failure.
    """
    points = settings.box.to_unit(X)
    outcomes = _read_outcomes(y, settings, num_rows=len(points))
    values = outcomes if settings.maximize else -outcomes
    if int(state.is_known.sum()) < settings.num_initial:
        found = torch.cat([values[~values.isnan()], values.new_tensor([state.region.best])])
        region, is_exhausted = replace(state.region, best=float(found.max())), False
    else:
        region, info = update_region(state.region, values, num_dims=settings.box.num_dims, rules=settings.rules)
        is_exhausted = info.is_exhausted
    after = replace(
        state,
        X=torch.cat([state.X, points]),
        y=torch.cat([state.y, outcomes]),
        run=torch.cat([state.run, torch.full((len(points),), state.num_runs - 1)]),
        lengths=torch.cat([state.lengths, values.new_full((len(points),), region.length)]),
        region=region,
        start=state.fitted or state.start,
        fitted=None,
    )
    if not is_exhausted:
        return after
    return replace(after, region=settings.rules.start(), num_runs=state.num_runs + 1, num_designed=0, start=None)


def _read_outcomes(y: Any, settings: TurboSettings, *, num_rows: int) -> Float[Tensor, " n"]:
    outcomes = to_double(y, "y")
    outcomes = outcomes.squeeze(-1) if outcomes.dim() == 2 and outcomes.shape[-1] == 1 else outcomes
    if outcomes.shape != (num_rows,):
        raise ShapeError(
            f"y must have shape ({num_rows},), one outcome for each of the {num_rows} points, but has shape "
            f"{tuple(outcomes.shape)}. A failed evaluation is NaN."
        )
    is_good = ~outcomes.isnan()
    try:
        settings.outcome.likelihood.check_targets(outcomes[is_good])
    except SupportError as error:
        raise SupportError(f"Outcomes cannot be used. {error} Tell failed evaluations as NaN.") from None
    return outcomes
