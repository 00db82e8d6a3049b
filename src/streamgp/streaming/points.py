"""Inducing points that follow a stream: what a point is worth for the next rows, not what it holds."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.streaming.bank import Bank, Seen
from streamgp.streaming.settings import Room

__all__ = ["Usage", "follow", "used"]

# What the inducing points may leave of a latent value, in units of the noise, before a point is added for it.
_SLACK_TOLERANCE = 0.02
# What they may leave of it in units of what they leave of rows on average: in many dimensions no point is close to the
# next row, and a stream that stands still would exchange one for each.
_UNUSUAL, _MOST_UNUSUAL = 1.5, 0.9
# Below this share of its prior variance an input is a copy of the inducing points, up to rounding.
_COPY = 1e-6
# A point may go when none of the latest rows, so many for each point, would have missed it.
_UNUSED = 1.0
# Of all points, this share is left to what was learned before and is not used of late.
_PAST_SHARE = 0.25
# A point that the others explain but for this share of the noise may go, whoever uses it: little is lost.
_REDUNDANT = 0.25


@final
@dataclass(frozen=True, eq=False)
class Usage:
    """Which row last used each inducing point: without the point, more of its latent value would be left open.

    Attributes:
        last_rows: Numbers of the rows that last used each point.
        num_rows: Number of rows so far.
        typical_slack: What the points left of latent values of late, on average, as a share of the prior variance,
            before any moved to them.
        num_followed: Number of rows that this is known from.
    """

    last_rows: Float[Tensor, " m"]
    num_rows: int = 0
    typical_slack: float = 0.0
    num_followed: int = 0

    @classmethod
    def none(cls, num_inducing: int) -> "Usage":
        """Before any row."""
        return cls(torch.zeros(num_inducing, dtype=torch.float64))

    def for_points(self, num_inducing: int) -> "Usage":
        """The same for other inducing points, which no row used so far."""
        return replace(self.none(num_inducing), typical_slack=self.typical_slack, num_followed=self.num_followed)

    @property
    def is_unused(self) -> Bool[Tensor, " m"]:
        """Which points no row used of late."""
        return self.num_rows - self.last_rows > _UNUSED * len(self.last_rows)

    def add(self, is_used: Bool[np.ndarray, "m n"], slack: float | None = None) -> "Usage":
        """Count rows by which points they use, and what points left of them, as a share, if they were to follow."""
        n, before = is_used.shape[-1], self.last_rows.numpy()
        numbers = np.arange(self.num_rows + 1.0, self.num_rows + n + 1.0)
        latest = np.where(is_used, numbers, 0.0)
        last_rows = torch.from_numpy(np.maximum(before, latest[:, 0] if n == 1 else latest.max(-1)))
        typical, num_followed = self.typical_slack, self.num_followed
        if slack is not None:
            num_followed += n
            typical += n / max(n, min(num_followed, len(last_rows))) * (slack - typical)
        return Usage(last_rows, self.num_rows + n, typical, num_followed)

    def exchanged(self, index: int) -> "Usage":
        """With a newcomer, at the end, in place of a point."""
        stays = torch.arange(len(self.last_rows)) != index
        return replace(self, last_rows=self.last_rows[stays]).joined()

    def joined(self) -> "Usage":
        """With a newcomer at the end, which the latest row uses."""
        return replace(self, last_rows=torch.cat([self.last_rows, self.last_rows.new_tensor([self.num_rows])]))


def follow(bank: Bank, usage: Usage, X: Float[Tensor, "n d"], seen: Seen, room: Room) -> tuple[Bank, Usage, Seen, int]:
    """Let inputs become inducing points where the points leave too much of them open.

    While there is room, an input joins. After that it takes the place of the point that the others explain best, if
    they do so but for a share of the noise, and for less than they explain the input: while points suffice, nothing
    that was learned is lost. Where they do not suffice, it takes the place of a point that no row used of late, however
    much it holds: that which the others explain best. So rows that were just learned are represented. A share of the
    points stays with what was learned before, spread over all of it, or predictions there would come from afar.

    Args:
        bank: The beliefs.
        usage: How much rows leaned on its points.
        X: Inputs of new rows.
        seen: What the bank says of them.
        room: How many inducing points there may be.

    Returns:
        Bank, usage and what is then seen of the rows; the number of new points.
    """
    noise = bank.level_noise / bank.experts.largest_amplitude
    needed = _SLACK_TOLERANCE * noise
    typical = min(_UNUSUAL * usage.typical_slack, _MOST_UNUSUAL)
    usage = used(bank, usage, seen, is_following=True)
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
        if bank.num_inducing < room.most:
            bank, usage = bank.joined(x), usage.joined()
        else:
            leaving = _leaving(bank, usage, min(_REDUNDANT * noise, 0.5 * slack))
            if leaving is None:
                break
            bank, usage = bank.exchanged(x, leaving), usage.exchanged(leaving)
        seen = bank.see(X)
        num_moves += 1
    return bank, usage, seen, num_moves


def used(bank: Bank, usage: Usage, seen: Seen, *, is_following: bool = False) -> Usage:
    """Count rows that were seen by which points they use; and what points left of them, if they are to follow."""
    needed = _SLACK_TOLERANCE * bank.level_noise / bank.experts.largest_amplitude
    shares = seen.slack.numpy() / seen.prior_variance.numpy()
    slack = float(shares.sum()) / len(shares) if is_following else None
    return usage.add(bank.features.losses(seen.features.numpy()) > needed, slack)


def _leaving(bank: Bank, usage: Usage, redundant: float) -> int | None:
    """Which point may go: the most redundant one, of all or of more than the past has a share in; None if none may.

    Args:
        bank: The beliefs.
        usage: How much rows leaned on its points.
        redundant: What the others may leave open of a point that goes whoever uses it.
    """
    left = bank.features.leave_one_out
    index = int(left.argmin())
    if left[index] < redundant:
        return index
    is_unused = usage.is_unused.numpy()
    if is_unused.sum() <= _PAST_SHARE * len(left):
        return None
    return int(np.where(is_unused, left, np.inf).argmin())
