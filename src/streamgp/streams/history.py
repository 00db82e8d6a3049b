"""History of a stream's model: weights, scale, points and refits, in bounded memory."""

from typing import NamedTuple, final

import numpy as np

from streamgp.streams.state import Belief

__all__ = ["History", "HistoryPoint", "RefitRecord"]

_MOST_POINTS = 512
_MOST_REFITS = 128


class HistoryPoint(NamedTuple):
    """Record of the model at some row.

    Attributes:
        row: Number of rows learned until then.
        weights: Weights of the experts for rows such as came of late.
        scale: Standard deviation of the noise, in the units of the targets.
        tail_share: Weight of long-tailed errors.
        num_points: Number of inducing points.
    """

    row: int
    weights: tuple[float, ...]
    scale: float
    tail_share: float
    num_points: int


class RefitRecord(NamedTuple):
    """Record of a refit.

    Attributes:
        row: Number of rows learned until then.
        gain: Nats a row by which the marginal likelihood rose; infinite for the first.
        seconds: Seconds that it took; zero once it was saved.
        num_points: Number of inducing points after it.
    """

    row: int
    gain: float
    seconds: float
    num_points: int


@final
class History:
    """Points at the first refits and then evenly spread over the stream, at most 512, and the latest refits."""

    def __init__(
        self, points: tuple[HistoryPoint, ...] = (), refits: tuple[RefitRecord, ...] = (), spacing: int = 64
    ) -> None:
        self.points = points
        self.refits = refits
        self.spacing = spacing

    def note(self, row: int, belief: Belief, scale: float) -> None:
        """Take note of what is known at an early row or a multiple of the spacing, which doubles now and then."""
        if row > self.spacing and row % self.spacing:
            return
        weights = np.exp(belief.near)
        point = HistoryPoint(
            row=row,
            weights=tuple(weights.sum(1).tolist()),
            scale=scale,
            tail_share=float(weights[:, 1:].sum()),
            num_points=int(belief.num_points[0]),
        )
        self.points = (*self.points, point)
        if len(self.points) > _MOST_POINTS:
            self.spacing *= 2
            self.points = tuple(point for point in self.points if point.row % self.spacing == 0)

    def note_refit(self, row: int, gain: float, seconds: float, num_points: int) -> None:
        """Take note of a refit."""
        self.refits = (*self.refits, RefitRecord(row, gain, seconds, num_points))[-_MOST_REFITS:]
