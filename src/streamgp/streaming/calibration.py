"""How often what was predicted with a probability came true, in bins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from streamgp.errors import NumericalError

__all__ = ["Calibration"]

_NUM_BINS = 20


@final
@dataclass(frozen=True)
class Calibration:
    """Probabilities and what came of them, in bins of equal width; a frozen value of constant size.

    For values, the probabilities are those of not more than what was observed: each bin should hold as many. For
    classes, they are those of each class: as many as the probability says should have come true.

    Attributes:
        counts: Number of probabilities in each bin.
        totals: Their sum.
        num_true: How many came true.
    """

    counts: tuple[float, ...] = (0.0,) * _NUM_BINS
    totals: tuple[float, ...] = (0.0,) * _NUM_BINS
    num_true: tuple[float, ...] = (0.0,) * _NUM_BINS

    def add(self, probabilities: Sequence[float], is_true: Sequence[float] | None = None) -> "Calibration":
        """Count more of them; for values, nothing has to come true."""
        if any(math.isnan(p) for p in probabilities):
            raise NumericalError(
                "The prediction of a row is NaN, so that it can be neither scored nor learned.",
                advice="Check the scale of inputs and targets, or go on from a saved model without the row.",
            )
        counts, totals, num_true = list(self.counts), list(self.totals), list(self.num_true)
        for index, p in enumerate(probabilities):
            bin = min(int(p * _NUM_BINS), _NUM_BINS - 1)
            counts[bin] += 1.0
            totals[bin] += p
            num_true[bin] += 0.0 if is_true is None else is_true[index]
        return Calibration(tuple(counts), tuple(totals), tuple(num_true))

    @property
    def levels(self) -> tuple[float, ...]:
        """Upper ends of the bins."""
        return tuple((index + 1) / _NUM_BINS for index in range(_NUM_BINS))

    def frequencies(self) -> tuple[float, ...]:
        """For values: the share that lay below each level, which should be the level."""
        total, below = sum(self.counts), 0.0
        shares: list[float] = []
        for count in self.counts:
            below += count
            shares.append(below / total)
        return tuple(shares)

    def reliability(self) -> list[tuple[float, float, float]]:
        """For classes: of each bin that is not empty, the mean probability, the share that came true, and how many."""
        each = zip(self.counts, self.totals, self.num_true, strict=True)
        return [(total / count, true / count, count) for count, total, true in each if count]
