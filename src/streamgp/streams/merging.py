"""Learners that learned different rows of one model, merged without the rows."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from streamgp.errors import OptionError, StreamGPWarning
from streamgp.streams.buffer import Buffer
from streamgp.streams.history import History
from streamgp.streams.learner import StreamLearner
from streamgp.streams.points import choose_points
from streamgp.streams.refit import Fitted, Snapshot, carry, size_of_state
from streamgp.streams.rows import advance_rows
from streamgp.streams.schedule import Schedule
from streamgp.streams.state import Belief, Dynamics

__all__ = ["merge"]

_SAME = 1e-12


def merge(learners: Sequence[StreamLearner], base: StreamLearner | None = None) -> StreamLearner:
    """Merge learners of the same units and hyperparameters into a new one that knows the rows of all.

    What rows have said of the states adds. Learners of different points are carried to common ones first.

    Args:
        learners: At least one.
        base: What all of them began with, whose rows then count once.
    """
    for each in (*learners, *([] if base is None else [base])):
        each.finish()
    fitted, first = learners[0].fitted, learners[0]
    everyone = [*learners, *([] if base is None else [base])]
    if fitted is None or not all(each.fitted is not None and _is_same(each.fitted, fitted) for each in everyone):
        raise OptionError(
            "The models differ in units or hyperparameters. Let all of them begin as copies of one model after its "
            "warm-up, with refit='never'."
        )
    if base is not None and any(each.num_seen < base.num_seen for each in learners):
        raise OptionError("base has learned more rows than a model that is merged. Pass what all of them began with.")
    beliefs = _at_common_points(everyone, fitted, max(first.options.most_points, 1))
    dynamics = fitted.dynamics()
    shared = []
    if base is not None:
        # The rows of the base have aged with those that came after them; what is least forgotten is kept.
        ages = sorted(each.clock - base.clock for each in learners)[1:]
        shared = [_aged(beliefs[-1], age, dynamics) for age in ages]
        beliefs = beliefs[:-1]
    num_shared = 0 if base is None else (len(learners) - 1) * base.num_seen
    merged = StreamLearner(first.num_dims, first.options, num_classes=first.num_classes)
    counts = np.sum([each.sureness.counts for each in learners], axis=0)
    if base is not None:
        counts = counts - (len(learners) - 1) * base.sureness.counts
    ways = _log_shares([each.sureness.log_weights for each in learners])
    merged.sureness = replace(first.sureness, log_weights=ways, counts=np.maximum(counts, 0.0))
    merged.fitted, merged.dynamics = fitted, dynamics
    merged.belief = _added(beliefs, shared, dynamics)
    merged.num_seen = sum(each.num_seen for each in learners) - num_shared
    merged.num_since_start = max(merged.num_seen, 1)
    merged.lower = np.min([each.lower for each in learners], axis=0)
    merged.upper = np.max([each.upper for each in learners], axis=0)
    merged.clock = int(merged.belief.clock[0])
    merged.anchor = Snapshot(fitted, merged.belief.copy())
    merged.buffer, merged.history = Buffer.empty(first.num_dims), History()
    merged.schedule = Schedule(None if first.options.refit == "never" else 2 * merged.num_since_start)
    return merged


def _is_same(first: Fitted, second: Fitted) -> bool:
    parts = [(first.units, second.units), (first.prior, second.prior)]
    numbers = [(vars(a)[name], vars(b)[name]) for a, b in parts for name in vars(a) if name != "kernel"]
    if (first.observing is None) != (second.observing is None):
        return False
    if first.observing is not None and second.observing is not None:
        numbers.append((first.observing.offsets, second.observing.offsets))
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=_SAME, atol=0.0) for a, b in numbers)


def _at_common_points(learners: Sequence[StreamLearner], fitted: Fitted, most: int) -> list[Belief]:
    """Return beliefs at points that all have, carried where theirs are others."""
    beliefs = [each.belief.copy() for each in learners if each.belief is not None]
    points = [each.points[: each.num_points[0]] for each in beliefs]
    if all(np.array_equal(each, points[0]) for each in points):
        return beliefs
    kernel = fitted.prior.stream_kernel
    together = np.unique(np.vstack(points), axis=0)
    chosen = together[choose_points(together, kernel, most=most, tolerance=1e-6)]
    if len(chosen) < len(together):
        warnings.warn(
            f"The models have {len(together)} different inducing points, of which {len(chosen)} are kept; what the "
            "others know more is lost.",
            StreamGPWarning,
            stacklevel=4,
        )
    carried = []
    for belief in beliefs:
        new = fitted.new_belief(chosen, clock=int(belief.clock[0]))
        carry(Snapshot(fitted, belief), new, fitted)
        carried.append(new)
    return carried


def _aged(belief: Belief, num_rows: int, dynamics: Dynamics) -> Belief:
    belief = belief.copy()
    advance_rows(num_rows, belief, dynamics)
    return belief


def _added(beliefs: Sequence[Belief], shared: Sequence[Belief], dynamics: Dynamics) -> Belief:
    """Add what rows have said, and take away what several of the beliefs share."""
    latest = max(beliefs, key=lambda each: int(each.clock[0])).copy()
    p, d = int(latest.num_points[0]), latest.points.shape[1]
    for e in range(len(latest.mean)):
        size = size_of_state(dynamics, e, d, p)
        expected = np.r_[dynamics.level[e], np.full(d, dynamics.slope[e]), np.full(p, dynamics.function[e])][:size]
        prior = np.diag(1.0 / expected)
        precision, weighted = np.zeros((size, size)), np.zeros(size)
        for sign, group in ((1.0, beliefs), (-1.0, shared)):
            for each in group:
                own = np.linalg.inv(each.covariance[e, :size, :size])
                precision += sign * (own - prior)
                weighted += sign * own @ each.mean[e, :size]
        covariance = _inverse(precision + prior, 1.0 / expected)
        latest.covariance[e, :size, :size] = covariance
        latest.mean[e, :size] = covariance @ weighted
    total = np.sum([each.shape for each in beliefs], axis=0)
    latest.rate[:] = latest.shape * np.sum([each.rate for each in beliefs], axis=0) / total
    latest.near[:] = _log_shares([each.near for each in beliefs])
    latest.far[:] = _log_shares([each.far for each in beliefs])
    return latest


def _inverse(precision: Float[np.ndarray, "k k"], least: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k k"]:
    """Invert a precision; what was taken away once too often leaves the prior."""
    root = np.sqrt(least)
    values, vectors = np.linalg.eigh(0.5 * (precision + precision.T) / np.outer(root, root))
    covariance = (vectors / np.maximum(values, 1e-3)) @ vectors.T / np.outer(root, root)
    return np.asarray(0.5 * (covariance + covariance.T))


def _log_shares(log_weights: Sequence[np.ndarray]) -> np.ndarray:
    return np.asarray(np.log(np.mean(np.exp(log_weights), axis=0)))
