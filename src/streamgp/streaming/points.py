"""Inducing points that follow a stream: what a point is worth for the next rows, not what it holds."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from jaxtyping import Bool, Float

from streamgp.streaming.bank import Bank, Seen
from streamgp.streaming.settings import Room

__all__ = ["Usage", "follow", "used"]

# What the inducing points may leave of a latent value, in units of the noise, before a point is added for it.
_SLACK_TOLERANCE = 0.02
# What they may leave of it in units of what they leave of rows on average: in many dimensions no point is close to the
# next row, and a stream that stands still would exchange one for each.
_UNUSUAL, _MOST_UNUSUAL = 1.5, 0.9
# What they leave of rows, in units of what they left of those that they were placed for, up to which the stream has not
# moved: then a point that was learned for many rows is worth more than one at an unusual row.
_MOVED = 2.0
# Below this share of its prior variance an input is a copy of the inducing points, up to rounding.
_COPY = 1e-6
# A point may go when none of the latest rows, so many for each point, would have missed it.
_UNUSED = 1.0
# Of all points, this share is left to what was learned before and is not used of late.
_PAST_SHARE = 0.25
# A point that the others explain but for this share of the noise may go, although rows use it.
_REDUNDANT = 0.25
# For so many rows a newcomer counts, as the next ones are like it: a point that none used of late may go if all rows so
# far lose less without it than these would gain.
_NUM_SERVED = 4.0
# What points may leave of a row, in units of the noise, before it takes the place of a point that is worth more.
_UNREPRESENTED = 1.0


@final
@dataclass(frozen=True, eq=False)
class Usage:
    """Which row last used each inducing point: without the point, more of its latent value would be left open.

    Attributes:
        last_rows: Numbers of the rows that last used each point.
        num_rows: Number of rows so far.
        typical_slack: What the points left of latent values of late, on average, as a share of the prior variance,
            before any moved to them.
        placed_slack: The same of the latest rows that they were placed for; zero where that is not known.
    """

    last_rows: Float[np.ndarray, " m"]
    num_rows: int = 0
    typical_slack: float = 0.0
    placed_slack: float = 0.0

    @classmethod
    def none(cls, num_inducing: int) -> "Usage":
        """Before any row."""
        return cls(np.zeros(num_inducing))

    def for_points(self, num_inducing: int) -> "Usage":
        """The same for other inducing points, which no row used so far."""
        return replace(self.none(num_inducing), typical_slack=self.typical_slack, placed_slack=self.placed_slack)

    def placed(self) -> "Usage":
        """The same for points that were placed for the rows so far."""
        return replace(self, placed_slack=self.typical_slack)

    @property
    def has_moved(self) -> bool:
        """Whether points leave more of the latest rows than of those that they were placed for."""
        return self.typical_slack > _MOVED * self.placed_slack

    @property
    def is_unused(self) -> Bool[np.ndarray, " m"]:
        """Which points no row used of late."""
        return self.num_rows - self.last_rows > _UNUSED * len(self.last_rows)

    def add(self, is_used: Bool[np.ndarray, "m n"], slack: float) -> "Usage":
        """Count rows by which points they use, and what points left of them on average, as a share."""
        n, typical = is_used.shape[-1], self.typical_slack
        num_rows = self.num_rows + n
        if n == 1:
            last_rows = np.where(is_used[:, 0], float(num_rows), self.last_rows)
        else:
            latest = np.where(is_used, np.arange(self.num_rows + 1.0, num_rows + 1.0), 0.0)
            last_rows = np.maximum(self.last_rows, latest.max(-1))
        typical += n / max(n, min(num_rows, len(last_rows))) * (slack - typical)
        return Usage(last_rows, num_rows, typical, self.placed_slack)

    def exchanged(self, index: int) -> "Usage":
        """With a newcomer, at the end, in place of a point."""
        return replace(self, last_rows=np.delete(self.last_rows, index)).joined()

    def joined(self) -> "Usage":
        """With a newcomer at the end, which the latest row uses."""
        return replace(self, last_rows=np.append(self.last_rows, float(self.num_rows)))


def follow(
    bank: Bank, usage: Usage, X: Float[np.ndarray, "n d"], seen: Seen, room: Room, *, believed: int = 0
) -> tuple[Bank, Usage, Seen, int]:
    r"""Let inputs become inducing points where the points leave too much of them open.

    While there is room, an input joins. After that, it takes the place of a point that is worth less: without which all
    rows so far, as far as they are not forgotten, would lose less than the next few would gain (`Bank.worths`). By what
    the others leave of a point alone, those that stand close would go, and they stand where most rows are.

    A row of which the points leave more than the noise takes the place of the point that no row used for longest, even
    if that is worth more, or a stream that moves on would not be represented: newcomers are worth least, and would
    displace each other. A share of the points stays with what was
    learned before, spread over all of it, or predictions there would come from afar.

    Args:
        bank: The beliefs.
        usage: How much rows leaned on its points.
        X: Inputs of new rows.
        seen: What the bank says of them.
        room: How many inducing points there may be.
        believed: The expert by whose belief points are judged.

    Returns:
        Bank, usage and what is then seen of the rows; the number of new points.
    """
    noise = bank.level_noise / bank.experts.largest_amplitude
    needed = _SLACK_TOLERANCE * noise
    typical = min(_UNUSUAL * usage.typical_slack, _MOST_UNUSUAL)
    usage = used(bank, usage, seen)
    if not usage.has_moved:
        typical = _MOST_UNUSUAL
    prior = seen.prior_variance.tolist()
    num_moves = 0
    while num_moves < len(prior):
        left = seen.slack.tolist()
        slack = max(left)
        index = left.index(slack)
        least = _COPY * prior[index]
        if bank.num_inducing >= room.most:
            least = max(least, needed, typical * prior[index])
        elif bank.num_inducing >= room.least:
            least = max(least, needed)
        if slack < least:
            break
        x = X[index : index + 1]
        if bank.num_inducing < room.most or (bank.num_inducing < room.limit and slack > _UNREPRESENTED * noise):
            bank, usage = bank.joined(x), usage.joined()
        else:
            leaving = _leaving(bank, usage, slack, noise, believed)
            if leaving is None:
                break
            bank, usage = bank.exchanged(x, leaving), usage.exchanged(leaving)
        seen = bank.see(X)
        num_moves += 1
    return bank, usage, seen, num_moves


def used(bank: Bank, usage: Usage, seen: Seen) -> Usage:
    """Count rows that were seen by which points they use, and what points left of them."""
    needed = _SLACK_TOLERANCE * bank.level_noise / bank.experts.largest_amplitude
    shares = (seen.slack / seen.prior_variance).tolist()
    return usage.add(bank.features.losses(seen.features) > needed, sum(shares) / len(shares))


def _leaving(bank: Bank, usage: Usage, slack: float, noise: float, believed: int) -> int | None:
    """Which point gives way to an input; None if none does.

    Args:
        bank: The beliefs.
        usage: How much rows leaned on its points.
        slack: What the points leave of the input.
        noise: The noise variance, in the same units.
        believed: The expert by whose belief points are judged.
    """
    left, is_unused = bank.features.leave_one_out, usage.is_unused
    is_redundant = ~is_unused & (left < min(_REDUNDANT * noise, 0.5 * slack))
    is_free = is_unused & (is_unused.sum() > _PAST_SHARE * len(left))
    worth = bank.worths(believed) if is_free.any() else np.zeros_like(left)
    may_go = is_redundant | (is_free & (worth < _NUM_SERVED * slack / noise))
    if may_go.any():
        return int(np.where(may_go, left, np.inf).argmin())
    if slack <= _UNREPRESENTED * noise or not is_free.any():
        return None
    return int(np.where(is_free, usage.last_rows, np.inf).argmin())
