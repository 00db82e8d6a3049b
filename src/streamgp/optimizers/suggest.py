"""One suggestion: from the initial design, or from the model and an acquisition function."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.optimizers.acquisitions import propose
from streamgp.optimizers.decision import Decision, refitted
from streamgp.optimizers.design import apart, derived_seed, sobol_points
from streamgp.optimizers.settings import Settings
from streamgp.optimizers.state import State, add_pending

__all__ = ["suggest"]


def suggest(state: State, settings: Settings, q: int) -> tuple[State, Float[Tensor, "q d"]]:
    """Choose points to evaluate next.

    Args:
        state: What is known.
        settings: Of the optimizer.
        q: Number of points.

    Returns:
        The state in which they are pending, and the points, in the unit cube.
    """
    seed = derived_seed(settings.seed, state.num_asks)
    if settings.acquisition == "random" or is_initial(state, settings):
        points = sobol_points(q, settings.box.num_dims, seed=settings.seed, skip=state.num_designed)
        state = replace(state, num_designed=state.num_designed + q)
    else:
        state = refitted(state, settings)
        points = propose(settings.acquisition, Decision.make(state, settings), q, search=settings.search, seed=seed)
    points = apart(points, torch.cat([state.pending, state.failures]), seed=derived_seed(seed, 1))
    return add_pending(replace(state, num_asks=state.num_asks + 1), points), points


def is_initial(state: State, settings: Settings) -> bool:
    """Whether the initial design goes on: until enough points are known or awaited, half of them known."""
    num_known = 2 * len(state.pairs) if settings.is_preference else int(state.is_success.sum())
    num_expected = num_known + len(state.pending)
    return num_expected < settings.num_initial or num_known < math.ceil(0.5 * settings.num_initial)
