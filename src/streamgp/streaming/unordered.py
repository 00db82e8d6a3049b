"""Learning from rows whose order means nothing."""

from dataclasses import replace

from streamgp.streaming.learner import Array, LearnInfo, StreamLearner

__all__ = ["learn_unordered"]


def learn_unordered(
    learner: StreamLearner, X: Array, y: Array, total_count: Array | None = None
) -> tuple[StreamLearner, LearnInfo]:
    """Learn from a data set as a whole, and be ready for a stream after it.

    Units, hyperparameters and inducing points are learned once, from as many of the first rows as the warm-up or the
    buffer holds, so the caller shuffles them. The others are absorbed, with refits by policy, where `"auto"` means
    `"doubling"`. All rows have the same age: a half-life that is given counts from their end.

    Args:
        learner: A learner before its first row.
        X: Inputs `(n, d)`, at least one row.
        y: Targets `(n,)`, or `(n, c)` for several outputs.
        total_count: Numbers of trials `(n,)`, for binomial targets.

    Returns:
        The learner after these rows, and diagnostics.
    """
    n, settings = len(y), learner.settings
    warmup = max(settings.warmup, min(n, settings.buffer_size))
    half_life = settings.half_life if settings.half_life == "auto" else None
    # Later rows are like the first, so that more of them tell more only when there are many more.
    refit = "doubling" if settings.refit == "auto" else settings.refit
    as_a_whole = replace(settings, warmup=warmup, half_life=half_life, refit=refit, num_expected=n)
    learner = replace(learner, settings=as_a_whole, next_refit=min(n, warmup))
    learner, info = learner.learn(X, y, total_count)
    following = settings.next_refit(n)
    if learner.next_refit is not None and following is not None and n >= warmup:
        following = min(learner.next_refit, following)  # in a stream there may be a change
        learner = replace(learner, next_refit=following)
    learner = replace(learner, settings=settings)
    if learner.model is None:
        return learner, info
    bank = learner.model.bank
    bank = replace(bank, experts=settings.experts(len(bank.constant), bank.inducing_points.shape[-1]))
    return replace(learner, model=replace(learner.model, bank=bank)), info
