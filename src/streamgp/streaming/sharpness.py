"""How sure predictions of labels are to be, learned from those that came true."""

from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Float, Int

__all__ = ["Sharpness"]

# Powers of probabilities: below one predictions become less sure, above one more. As they are, they are e³ times as
# likely at first as with any other power.
_POWERS = np.array([0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0])
_ODDS = np.where(_POWERS == 1.0, 1.0, np.exp(-3.0))
_FIRST = _ODDS / _ODDS.sum()
# With this probability another power is right from the next row on.
_SWITCHING = 0.002
# Labels count for half: of a run of easy ones in a row it is not concluded that all will be.
_CAUTION = 0.5
# Probabilities below this are not told apart.
_LEAST = 1e-12


@final
@dataclass(frozen=True)
class Sharpness:
    r"""A mixture of powers of predicted probabilities; a frozen value of constant size.

    Classes that are each predicted against all others are often predicted too cautiously, and after a change too
    boldly. Each power is weighted by the square roots of the probabilities that it gave to the labels that came. The
    order of the classes stays as it is. Whatever labels come, the log loss of n of them is at most
    $2 (-\log w - n \log(1 - s))$ larger than without powers, for the first weight $w$ of the power one and the
    probability $s$ of a change.

    Attributes:
        weights: Of the powers, which sum to one.
    """

    weights: tuple[float, ...] = tuple(_FIRST.tolist())

    def applied(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n k"]:
        """Probabilities of all classes as sure as they are to be."""
        powers = self._powers(probabilities)
        return (np.array(self.weights) @ powers.reshape(len(powers), -1)).reshape(probabilities.shape)

    def learned(self, probabilities: Float[np.ndarray, "n k"], labels: Int[np.ndarray, " n"]) -> "Sharpness":
        """After labels that came, one after the other.

        Args:
            probabilities: What was predicted, as it was before powers were taken.
            labels: Columns of the labels that came.
        """
        given = self._powers(probabilities)[:, np.arange(len(labels)), labels] ** _CAUTION
        weights = np.array(self.weights)
        for each in given.T:
            weights = weights * each
            weights = (1.0 - _SWITCHING) * weights / np.add.reduce(weights) + _SWITCHING * _FIRST
        return Sharpness(tuple(weights.tolist()))

    def _powers(self, probabilities: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "b n k"]:
        """All powers, normalized; those asked for last are kept, as what was predicted is likely learned next."""
        last, key = self.__dict__.get("_last"), (probabilities.shape, probabilities.tobytes())
        if last is None or last[0] != key:
            each = np.maximum(probabilities, _LEAST) ** _POWERS[:, None, None]
            last = key, each / np.add.reduce(each, -1, keepdims=True)
            self.__dict__["_last"] = last
        powers: np.ndarray = last[1]
        return powers

    def __getstate__(self) -> dict[str, object]:
        """What copies and pickles hold: not what was derived from the rest."""
        return {"weights": self.weights}
