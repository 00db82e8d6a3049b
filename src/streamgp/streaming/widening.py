"""More input columns while a stream is still in its warm-up."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from streamgp.streaming.learner import StreamLearner
from streamgp.streaming.rows import Rows

__all__ = ["widen"]


def widen(learner: StreamLearner, values: Float[np.ndarray, " k"]) -> StreamLearner:
    """Add input columns to a learner that is in its warm-up, and so has all of its rows.

    Args:
        learner: The learner.
        values: What the rows so far are given in the new columns.

    Returns:
        A learner that has learned its rows anew, with these columns last.
    """
    buffer = learner.buffer
    if buffer is None:
        return learner
    inputs = np.concatenate([buffer.inputs, np.tile(values, (buffer.num_rows, 1))], -1)
    return replace(learner, buffer=Rows(inputs, buffer.targets, buffer.total_count)).relearned()
