"""Labels in a stream: ways of being sure, and classes that appear later."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, logsumexp, ndtri

from streamgp.streams.constants import LEAST_PROBABILITY
from streamgp.streams.observing import Observing
from streamgp.streams.refit import Snapshot

__all__ = ["Sureness", "with_questions"]

# Powers of how far probabilities are from the frequencies of the classes: zero for these alone, one as they are.
_POWERS = np.array([0.0, 0.5, 1.0, 1.5, 2.5])
# How much more likely than the others the second is at first; larger waits longer before it is surer or less sure.
_FIRST_ODDS = 7.0
# Probability that another way is right from the next row on; larger follows changes faster, and mixes more.
_SHARE = 0.002
# Labels count for half: of a run of easy ones in a row it is not concluded that all will be.
_CAUTION = 0.5
# How often each class has come before the first row (Krichevsky and Trofimov).
_COME_BEFORE = 0.5


@final
@dataclass(frozen=True, eq=False)
class Sureness:
    r"""A mixture of ways to be more or less sure of predicted probabilities; a frozen value.

    Of probabilities $p$ and frequencies $f$ of the classes so far, each way makes $p^a f^{1 - a}$, normalized. Classes
    that are each predicted against all others are often predicted too cautiously, after a change too boldly, and where
    inputs say little of the labels, frequencies are hard to beat. Each way is weighted by the square roots of the
    probabilities that it gave to the labels that came.

    Attributes:
        log_weights: Log weights of the ways.
        counts: How often each class has come.
    """

    log_weights: Float[np.ndarray, " w"]
    counts: Float[np.ndarray, " k"]

    @classmethod
    def new(cls, num_classes: int) -> "Sureness":
        """Return what is expected before the first label: probabilities as they are, most likely."""
        odds = np.where(_POWERS == 1.0, _FIRST_ODDS, 1.0)
        return cls(np.log(odds / odds.sum()), np.zeros(num_classes))

    def applied(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """Return probabilities as sure as they are to be."""
        if probabilities.shape[1] < 2:
            return probabilities
        return np.exp(logsumexp(self._each(probabilities) + self.log_weights[:, None, None], axis=0))

    def learned(
        self, probabilities: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"]
    ) -> tuple["Sureness", Float[np.ndarray, "n k"]]:
        """Return what is known after labels, and the probabilities as they were predicted before each of them."""
        state, applied = self, np.empty_like(probabilities)
        for i, label in enumerate(labels):
            each = state._each(probabilities[i : i + 1])[:, 0]
            applied[i] = np.exp(logsumexp(each + state.log_weights[:, None], axis=0))
            counts = state.counts.copy()
            counts[label] += 1.0
            weights = state.log_weights
            if len(counts) > 1:
                weights = log_softmax(weights + _CAUTION * np.maximum(each[:, label], np.log(LEAST_PROBABILITY)))
                weights = np.log((1.0 - _SHARE) * np.exp(weights) + _SHARE / len(_POWERS))
            state = Sureness(weights, counts)
        return state, applied

    def with_classes(self, num_classes: int) -> "Sureness":
        """Return this with room for more classes."""
        return Sureness(self.log_weights, np.pad(self.counts, (0, num_classes - len(self.counts))))

    def _each(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "w n k"]:
        """Return log probabilities by each way."""
        counts = self.counts + _COME_BEFORE
        logs = np.log(np.maximum(probabilities, LEAST_PROBABILITY))
        powers = _POWERS[:, None, None]
        return np.asarray(log_softmax(powers * logs + (1.0 - powers) * np.log(counts / counts.sum()), axis=-1))


def with_questions(start: Snapshot, num_classes: int, num_rows: int) -> Snapshot:
    """Return a belief with room for classes of which none of so many rows was.

    Two classes are one question, whether a row is of the second; of more, each is one against all others.
    """
    fitted, belief = start.fitted, start.belief
    assert fitted.observing is not None
    before, after = fitted.num_questions, num_classes if num_classes > 2 else 1
    if after == before:
        return start
    known = fitted.observing.offsets
    known = np.r_[-known, known] if before == 1 else known
    rare = float(ndtri(0.5 / (num_rows + 1.0)))
    offsets = np.r_[known, np.full(after - len(known), rare)]
    wider = fitted._replace(observing=Observing(fitted.observing.likelihood, offsets))
    p, room = int(belief.num_points[0]), len(belief.points)
    new = wider.new_belief(belief.points[:p].copy(), belief.whitening[:p, :p].copy()).with_room(room)
    size = belief.mean.shape[1]
    for e in range(len(belief.near)):
        for q in range(len(known)):
            source, sign = (e, 2.0 * q - 1.0) if before == 1 else (e * before + q, 1.0)
            new.mean[e * after + q, :size] = sign * belief.mean[source]
            new.covariance[e * after + q, :size, :size] = belief.covariance[source]
    same = ("clock", "near", "far", "moments", "counts", "use", "shape", "rate")
    return Snapshot(wider, new._replace(**{name: getattr(belief, name).copy() for name in same}))
