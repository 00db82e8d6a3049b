"""Learning from rows whose order means nothing."""

from dataclasses import replace

from torch import Tensor

from streamgp.streaming.learner import LearnInfo, StreamLearner
from streamgp.streaming.settings import StreamSettings

__all__ = ["learn_unordered"]


def learn_unordered(
    settings: StreamSettings, X: Tensor, y: Tensor, totals: Tensor | None = None
) -> tuple[StreamLearner, LearnInfo]:
    """Learn from a data set as a whole, and be ready for a stream after it.

    Units, hyperparameters and inducing points are learned once, from as many of the first rows as the warm-up or the
    buffer holds, so the caller shuffles them. The others are absorbed, with refits by policy. All rows have the same
    age: a half-life counts from their end.

    Args:
        settings: Options of the stream.
        X: Inputs `(n, d)`, at least one row.
        y: Targets `(n,)`.
        totals: Numbers of trials `(n,)`, for binomial targets.

    Returns:
        The learner after these rows, and diagnostics.
    """
    n = len(y)
    warmup = max(settings.warmup, min(n, settings.buffer_size))
    learner = StreamLearner(replace(settings, warmup=warmup, half_life=None), next_refit=min(n, warmup))
    learner, info = learner.learn(X, y, totals)
    return replace(learner, settings=settings), info
