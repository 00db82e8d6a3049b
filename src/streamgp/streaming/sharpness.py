"""How sure predictions of labels are to be, learned from those that came true."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Sharpness"]

# Powers of probabilities: below one predictions become less sure, above one more. First by themselves, then of how far
# probabilities are from the frequencies of the classes, down to zero for these alone. As they are, predictions are e²
# times as likely at first as in any other way.
_POWERS = np.array([0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, *(0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0)])
_NUM_ALONE = 8
_SHARES = np.where(np.arange(len(_POWERS)) < _NUM_ALONE, 0.0, 1.0 - _POWERS)
_AS_THEY_ARE = _POWERS == 1.0
_ODDS = np.where(_AS_THEY_ARE, 1.0, np.exp(-2.0))
_FIRST = _ODDS / _ODDS.sum()
# With this probability another way is right from the next row on.
_SWITCHING = 0.002
# Labels count for half: of a run of easy ones in a row it is not concluded that all will be.
_CAUTION = 0.5
# Probabilities below this are not told apart.
_LEAST = 1e-12
# How often each class has come before the first row (Krichevsky and Trofimov).
_COME_BEFORE = 0.5
# Rows that are changed at once, in little memory.
_MOST_AT_ONCE = 4096


@final
@dataclass(frozen=True)
class Sharpness:
    r"""A mixture of ways to be more or less sure of predicted probabilities; a frozen value of bounded size.

    Of probabilities $p$ and frequencies $f$ of the classes so far, each way makes $p^a f^b$, normalized: powers of the
    probabilities ($b = 0$), and of how far they are from the frequencies ($b = 1 - a$). Classes that are each predicted
    against all others are often predicted too cautiously, after a change too boldly, and where inputs say little of the
    labels, frequencies are hard to beat. Each way is weighted by the square roots of the probabilities that it gave to
    the labels that came. Whatever labels come, the log loss of n of them is at most $2 (-\log w - n \log(1 - s))$
    larger than that of the best way, for its first weight $w$ and the probability $s$ of a change.

    Attributes:
        weights: Of the ways, which sum to one.
        counts: How often each class has come.
    """

    weights: tuple[float, ...] = tuple(_FIRST.tolist())
    counts: tuple[float, ...] = ()

    @classmethod
    def after_fit(cls, labels: Int[np.ndarray, " n"]) -> "Sharpness":
        """Probabilities as they are: labels that were not predicted do not tell how sure to be."""
        return cls(tuple(_AS_THEY_ARE.astype(float).tolist())).counting(labels)

    def applied(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """Probabilities of all classes as sure as they are to be."""
        weights, parts = np.array(self.weights), []
        for start in range(0, len(probabilities), _MOST_AT_ONCE):
            each = self._each(probabilities[start : start + _MOST_AT_ONCE])
            parts.append((weights @ each.reshape(len(each), -1)).reshape(each.shape[1:]))
        return parts[0] if len(parts) == 1 else np.concatenate([probabilities[:0], *parts])

    def learned(self, probabilities: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"]) -> "Sharpness":
        """After labels that came, one after the other.

        Args:
            probabilities: What was predicted, as it was before it was made more or less sure.
            labels: Columns of the labels that came.
        """
        given = self._each(probabilities)[:, np.arange(len(labels)), labels] ** _CAUTION
        weights = np.array(self.weights)
        for each in given.T:
            weights = weights * each
            weights = (1.0 - _SWITCHING) * weights / np.add.reduce(weights) + _SWITCHING * _FIRST
        return Sharpness(tuple(weights.tolist()), self.counts).counting(labels)

    def counting(self, labels: Int[np.ndarray, " n"]) -> "Sharpness":
        """After labels from which only frequencies are learned."""
        counts = list(self.counts)
        for label in labels.tolist():
            counts.extend([0.0] * (label + 1 - len(counts)))
            counts[label] += 1.0
        return Sharpness(self.weights, tuple(counts))

    def joined(self, others: Sequence["Sharpness"], again: Sequence["Sharpness"]) -> "Sharpness":
        """With the classes that others counted, less those that were counted again; as sure as this one."""
        counts = np.zeros(max(len(each.counts) for each in (self, *others, *again)))
        for sign, group in ((1.0, (self, *others)), (-1.0, again)):
            for each in group:
                counts[: len(each.counts)] += sign * np.array(each.counts)
        return Sharpness(self.weights, tuple(counts.tolist()))

    def _each(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "w n k"]:
        """In all ways; those asked for last are kept, as what was predicted is likely learned next."""
        last, key = self.__dict__.get("_last"), (probabilities.shape, probabilities.tobytes())
        if last is None or last[0] != key:
            num_come = [count + _COME_BEFORE for count in self.counts]
            num_come += [_COME_BEFORE] * (probabilities.shape[-1] - len(num_come))
            each = _POWERS[:, None, None] * np.log(np.maximum(probabilities, _LEAST))
            each += _SHARES[:, None, None] * np.log(num_come)  # normalized below
            each -= np.maximum.reduce(each, -1, keepdims=True)
            np.exp(each, out=each)
            each /= np.add.reduce(each, -1, keepdims=True)
            last = key, each
            self.__dict__["_last"] = last
        ways: np.ndarray = last[1]
        return ways

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {"weights": self.weights, "counts": self.counts}
