"""Inducing points that follow a stream: what a point is worth for the next rows, not what it holds."""

import math
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from streamgp.gp import SparseProcess
from streamgp.streaming.bank import Bank, Seen

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

    def add(self, is_used: Bool[Tensor, "m n"], slack: float | None = None) -> "Usage":
        """Count rows by which points they use, and what points left of them, as a share, if they were to follow."""
        n = is_used.shape[-1]
        if n == 1:
            last_rows = self.last_rows.masked_fill(is_used.squeeze(-1), self.num_rows + 1)
        else:
            numbers = torch.arange(self.num_rows + 1, self.num_rows + n + 1, dtype=torch.float64)
            last_rows = torch.maximum(self.last_rows, torch.where(is_used, numbers, 0.0).amax(-1))
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


def follow(
    bank: Bank, usage: Usage, X: Float[Tensor, "n d"], seen: Seen, *, most: int, is_sparing: bool = False
) -> tuple[Bank, Usage, Seen, int]:
    """Let inputs become inducing points where the points leave too much of them open.

    While there is room, an input joins. After that it takes the place of the point that the others explain best, if
    they do so but for a share of the noise, and for less than they explain the input: while points suffice, nothing
    that was learned is lost. Where they do not suffice, it takes the place of a point that no row used of late, however
    much it holds: that which was used longest ago. So rows that were just learned are represented.

    Args:
        bank: The beliefs.
        usage: How much rows leaned on its points.
        X: Inputs of new rows.
        seen: What the bank says of them.
        most: How many inducing points there may be.
        is_sparing: Whether room is left where points are not needed, too.

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
        if bank.num_inducing >= most:
            least = max(least, needed, typical * prior[index])
        elif is_sparing:
            least = max(least, needed)
        if slack < least:
            break
        x = X[index : index + 1]
        if bank.num_inducing < most:
            bank, usage = _joined(bank, x), usage.joined()
        else:
            leaving = _leaving(bank, usage, min(_REDUNDANT * noise, 0.5 * slack))
            if leaving is None:
                break
            bank, usage = _exchanged(bank, x, leaving), usage.exchanged(leaving)
        seen = bank.see(X)
        num_moves += 1
    return bank, usage, seen, num_moves


def used(bank: Bank, usage: Usage, seen: Seen, *, is_following: bool = False) -> Usage:
    """Count rows that were seen by which points they use; and what points left of them, if they are to follow."""
    needed = _SLACK_TOLERANCE * bank.level_noise / bank.experts.largest_amplitude
    slack = float((seen.slack / seen.prior_variance).mean()) if is_following else None
    return usage.add(_losses(bank, seen) > needed, slack)


def _leaving(bank: Bank, usage: Usage, redundant: float) -> int | None:
    """Which point may go: the most redundant one, or that which was used longest ago; None if all are needed."""
    left, index = bank.process.inducing_factor.leave_one_out.min(-1)
    if float(left) < redundant:
        return int(index)
    return int(usage.last_rows.argmin()) if bool(usage.is_unused.any()) else None


def _losses(bank: Bank, seen: Seen) -> Float[Tensor, "m n"]:
    r"""By how much the prior variance of each latent value would grow without each point, $w_i^2 / (K^{-1})_{ii}$."""
    factor = bank.process.inducing_factor
    return (factor.whitening.mT @ seen.features).square() * factor.leave_one_out.unsqueeze(-1)


def _joined(bank: Bank, x: Float[Tensor, "1 d"]) -> Bank:
    """Add an inducing point; the belief about it is what the others say, so nothing is lost."""
    m = bank.num_inducing
    process = _moved(bank, torch.cat([bank.inducing_points, x]))
    mean = torch.cat([bank.mean[..., :m], torch.zeros_like(bank.mean[..., :1]), bank.mean[..., m:]], -1)
    S = bank.covariance
    rows = torch.cat([S[..., :m, :], torch.zeros_like(S[..., :1, :]), S[..., m:, :]], -2)
    covariance = torch.cat([rows[..., :m], torch.zeros_like(rows[..., :1]), rows[..., m:]], -1)
    covariance[..., m, m] = 1.0
    return bank.with_belief(mean, covariance, process)


def _exchanged(bank: Bank, x: Float[Tensor, "1 d"], index: int) -> Bank:
    r"""Replace an inducing point.

    Add $x$, which loses nothing, and let $n$ be what the new points cannot express of $u_i$, scaled to unit prior
    variance. The carried site is the old one at $n = 0$, and the carried belief the old one given $n = 0$: a step of
    rank one.
    """
    m, old = bank.num_inducing, bank.process.inducing_factor
    stays = torch.arange(m) != index
    process = _moved(bank, torch.cat([bank.inducing_points[stays], x]))
    phi = (old.whitening @ bank.process.prior.covariance(bank.inducing_points, x)).squeeze(-1)
    variance = float(bank.process.prior.variance(x)) + bank.process.jitter
    own = math.sqrt(max(variance - float(phi @ phi), bank.process.jitter))
    # From old whitened coordinates, and one more for what is new of x, to values at the new points.
    values = torch.block_diag(old.double_factor[stays], torch.tensor([[own]], dtype=phi.dtype))
    values[-1, :-1] = phi
    T = process.inducing_factor.whitening @ values
    direction = old.whitening[:, index]
    n = torch.cat([direction, -(phi @ direction / own).unsqueeze(-1)])
    n = n / n.norm()
    rest = torch.eye(bank.mean.shape[-1] - m, dtype=phi.dtype)
    T_state, t = torch.block_diag(T[:, :-1], rest), torch.cat([T[:, -1], rest.new_zeros(len(rest))])
    n_state = torch.cat([n[:-1], rest.new_zeros(len(rest))])
    Sn = bank.covariance @ n_state
    c = Sn @ T_state.mT + n[-1] * t
    variance_n = ((Sn @ n_state) + n[-1].square()).unsqueeze(-1)
    mean = bank.mean @ T_state.mT - c * ((bank.mean @ n_state).unsqueeze(-1) / variance_n)
    scaled = c / variance_n.sqrt()
    covariance = T_state @ bank.covariance @ T_state.mT + torch.outer(t, t)
    covariance = covariance - scaled.unsqueeze(-1) * scaled.unsqueeze(-2)
    return bank.with_belief(mean, covariance, process)


def _moved(bank: Bank, Z: Float[Tensor, "m d"]) -> SparseProcess:
    return SparseProcess.from_prior(bank.process.prior, Z, jitter=bank.process.jitter)
