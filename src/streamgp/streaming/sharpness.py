"""How sure predictions of labels are to be, and how far to go by the last one, learned from those that came true."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

__all__ = ["Sharpness"]

# Powers of probabilities: below one predictions become less sure, above one more. First by themselves, then of how far
# probabilities are from the frequencies of the classes, down to zero for these alone, then of the same where classes
# follow the last one. As they are, predictions are e² times as likely at first as in any other way.
_ALONE = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)
_FROM_FREQUENCIES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0)
_FROM_LAST = (0.0, 0.3, 0.6, 1.0, 1.5)
_POWERS = np.array([*_ALONE, *_FROM_FREQUENCIES, *_FROM_LAST])
_GOES_BY_LAST = np.arange(len(_POWERS)) >= len(_ALONE) + len(_FROM_FREQUENCIES)
# Exponents of the frequencies, and of the probabilities of what follows the last label.
_EXPONENTS = np.stack(
    [np.where(np.arange(len(_POWERS)) < len(_ALONE), 0.0, 1.0 - _POWERS - _GOES_BY_LAST), _GOES_BY_LAST], axis=-1
)
_AS_THEY_ARE = np.arange(len(_POWERS)) == _ALONE.index(1.0)
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
    labels, frequencies are hard to beat. So is the last label where labels stay for a while: more ways are
    $t p^a f^{-a}$, where $t$ is the share of labels that were the last known one again, and frequencies for the others.
    Each way is weighted by the square roots of the probabilities that it gave to the labels that came. Whatever labels
    come, the log loss of n of them is at most $2 (-\log w - n \log(1 - s))$ larger than that of the best way, for its
    first weight $w$ and the probability $s$ of a change.

    Attributes:
        weights: Of the ways, which sum to one.
        counts: How often each class has come.
        last: Column of the last label; None before the first.
        num_same: How many labels were the last one again.
    """

    weights: tuple[float, ...] = tuple(_FIRST.tolist())
    counts: tuple[float, ...] = ()
    last: int | None = None
    num_same: float = 0.0

    @classmethod
    def after_fit(cls, labels: Int[np.ndarray, " n"]) -> "Sharpness":
        """Probabilities as they are: labels that were not predicted do not tell how sure to be."""
        counted = cls(tuple(_AS_THEY_ARE.astype(float).tolist())).counting(labels)
        return replace(counted, last=None, num_same=0.0)  # the rows were in no order

    def applied(
        self, probabilities: Float[np.ndarray, "n k"], is_next: Bool[np.ndarray, " n"] | None = None
    ) -> Float[np.ndarray, "n k"]:
        """Probabilities of all classes as sure as they are to be.

        Args:
            probabilities: What was predicted.
            is_next: Whether inputs are where the next row is expected; elsewhere the last label says nothing. All are
                by default.
        """
        parts = []
        for start in range(0, len(probabilities), _MOST_AT_ONCE):
            part = slice(start, start + _MOST_AT_ONCE)
            each, weights = self._each(probabilities[part]), np.array(self.weights)
            found = (weights @ each.reshape(len(each), -1)).reshape(each.shape[1:])
            if is_next is not None and not is_next[part].all():
                weights = np.where(_GOES_BY_LAST, 0.0, weights)
                far = (weights / weights.sum() @ each.reshape(len(each), -1)).reshape(each.shape[1:])
                found = np.where(is_next[part, None], found, far)
            parts.append(found)
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
        return self._counting(tuple(weights.tolist()), labels)

    def counting(self, labels: Int[np.ndarray, " n"]) -> "Sharpness":
        """After labels from which only frequencies are learned, the last known one that of before all of them."""
        return self._counting(self.weights, labels)

    def _counting(self, weights: tuple[float, ...], labels: Int[np.ndarray, " n"]) -> "Sharpness":
        counts, each = list(self.counts), labels.tolist()
        for label in each:
            counts.extend([0.0] * (label + 1 - len(counts)))
            counts[label] += 1.0
        last = each[-1] if each else self.last
        return Sharpness(weights, tuple(counts), last, self.num_same + each.count(self.last))

    def joined(self, others: Sequence["Sharpness"], again: Sequence["Sharpness"]) -> "Sharpness":
        """With the classes that others counted, less those that were counted again; as sure as this one."""
        counts = np.zeros(max(len(each.counts) for each in (self, *others, *again)))
        for sign, group in ((1.0, (self, *others)), (-1.0, again)):
            for each in group:
                counts[: len(each.counts)] += sign * np.array(each.counts)
        return replace(self, counts=tuple(counts.tolist()))

    def _each(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "w n k"]:
        """In all ways; those asked for last are kept, as what was predicted is likely learned next."""
        last, key = self.__dict__.get("_last"), (probabilities.shape, probabilities.tobytes())
        if last is None or last[0] != key:
            each = _POWERS[:, None, None] * np.log(np.maximum(probabilities, _LEAST))
            each += (_EXPONENTS @ np.log(self._tendencies(probabilities.shape[-1])))[:, None, :]
            each -= np.maximum.reduce(each, -1, keepdims=True)
            np.exp(each, out=each)
            each /= np.add.reduce(each, -1, keepdims=True)
            last = key, each
            self.__dict__["_last"] = last
        ways: np.ndarray = last[1]
        return ways

    def _tendencies(self, num_classes: int) -> list[list[float]]:
        """Frequencies of the classes, and the probabilities of what follows the last label."""
        num = sum(self.counts)
        whole = num + num_classes * _COME_BEFORE
        frequencies = [(count + _COME_BEFORE) / whole for count in self.counts]
        frequencies += [_COME_BEFORE / whole] * (num_classes - len(frequencies))
        if self.last is None:
            return [frequencies, frequencies]
        same = (self.num_same + _COME_BEFORE) / (num - 1.0 + 2.0 * _COME_BEFORE)
        share = (1.0 - same) / (1.0 - frequencies[self.last])
        following = [share * each for each in frequencies]
        following[self.last] = same
        return [frequencies, following]

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
