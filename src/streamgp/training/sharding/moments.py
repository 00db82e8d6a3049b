"""Number and moments of all rows of shards, and a sample of them."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from streamgp.errors import ShapeError
from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.arguments import CheckedRows
from streamgp.training.scaling import Scaling
from streamgp.training.sharding.shards import AbstractShards, read_shard

__all__ = ["RowMoments", "row_moments", "sample_of"]


class RowMoments(NamedTuple):
    """Moments of all rows.

    Attributes:
        counts: Rows of each shard.
        input_mean: Mean of each column.
        input_squares: Squared deviations from it, summed.
        target_mean: Of the targets.
        target_squares: Squared deviations, summed.
        dtype: Of the rows.
        inputs_of_row: Two for comparisons.
    """

    counts: tuple[int, ...]
    input_mean: Tensor
    input_squares: Tensor
    target_mean: Tensor
    target_squares: Tensor
    dtype: torch.dtype
    inputs_of_row: int = 1

    @property
    def num_data(self) -> int:
        """Number of all rows."""
        return sum(self.counts)

    @property
    def target_variance(self) -> float:
        """Variance of all targets."""
        return float(self.target_squares) / self.num_data

    def scaling(self, *, like: Scaling) -> Scaling:
        """The standardization of all rows, of the columns that one of some rows standardizes."""
        changed = like.input_shift.abs().sum() + (like.input_scale - 1.0).abs().sum() > 0
        shift, scale = like.input_shift, like.input_scale
        if bool(changed):
            shift, scale = self.input_mean, _root_or_one(self.input_squares / self.num_inputs, self.input_mean)
        target_shift, target_scale = like.target_shift, like.target_scale
        if float(target_shift) != 0.0 or float(target_scale) != 1.0:
            target_shift = self.target_mean
            target_scale = _root_or_one(self.target_squares / self.num_data, self.target_mean)
        return Scaling(shift, scale, target_shift, target_scale)

    @property
    def num_inputs(self) -> int:
        """Number of all inputs, two for each comparison."""
        return self.num_data * self.inputs_of_row

    def rounded(self) -> "RowMoments":
        """To twelve digits, so that the order of the sums, which shards decide, makes no difference."""
        moments = [
            torch.tensor([float(f"{each:.12g}") for each in value.reshape(-1).tolist()], dtype=value.dtype).reshape(
                value.shape
            )
            for value in (self.input_mean, self.input_squares, self.target_mean, self.target_squares)
        ]
        input_mean, input_squares, target_mean, target_squares = moments
        return self._replace(
            input_mean=input_mean,
            input_squares=input_squares,
            target_mean=target_mean,
            target_squares=target_squares,
        )

    def joined(self, other: "RowMoments") -> "RowMoments":
        """The moments of both, by the formula of Chan, Golub and LeVeque."""
        if self.dtype != other.dtype or self.input_mean.shape != other.input_mean.shape:
            raise ShapeError(
                f"All shards must have as many columns and one dtype, but shard {len(self.counts)} has "
                f"{len(other.input_mean)} columns of {other.dtype}, and those before {len(self.input_mean)} of "
                f"{self.dtype}."
            )
        n, k = self.num_data, other.num_data
        moments = []
        for mean, squares, mean_, squares_ in (
            (self.input_mean, self.input_squares, other.input_mean, other.input_squares),
            (self.target_mean, self.target_squares, other.target_mean, other.target_squares),
        ):
            change = mean_ - mean
            moments += [mean + change * (k / (n + k)), squares + squares_ + change.square() * (n * k / (n + k))]
        input_mean, input_squares, target_mean, target_squares = moments
        return self._replace(
            counts=self.counts + other.counts,
            input_mean=input_mean,
            input_squares=input_squares,
            target_mean=target_mean,
            target_squares=target_squares,
        )


def row_moments(shards: AbstractShards, likelihood: AbstractLikelihood | None) -> RowMoments:
    """Look over all rows once: check and count them."""
    parts = shards.ask(_Survey(likelihood))
    if not parts:
        raise ShapeError("There are no shards. Pass at least one shard (X, y).")
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.joined(part)
    return whole.rounded()


@final
@dataclass(frozen=True, eq=False)
class _Survey:
    likelihood: AbstractLikelihood | None

    def __call__(self, index: int, shard: Any, kept: Any) -> RowMoments:
        rows = read_shard(index, shard, self.likelihood)
        X, y = rows.inputs.double().reshape(-1, rows.inputs.shape[-1]), rows.targets.double()
        x_mean, y_mean = X.mean(0), y.mean()
        return RowMoments(
            (len(y),),
            x_mean,
            (X - x_mean).square().sum(0),
            y_mean,
            (y - y_mean).square().sum(),
            rows.inputs.dtype,
            len(X) // len(y),
        )


def _root_or_one(variance: Tensor, mean: Tensor) -> Tensor:
    """Standard deviations, one for columns that are constant up to rounding."""
    deviation = variance.sqrt()
    return torch.where(deviation > 1e-12 * mean.abs(), deviation, 1.0)


def sample_of(
    shards: AbstractShards, moments: RowMoments, num_rows: int, *, likelihood: Any, generator: torch.Generator
) -> CheckedRows:
    """Random rows of all shards; which ones does not depend on how the rows are divided."""
    n, seed = moments.num_data, int(torch.randint(2**31, (), generator=generator))
    # Without a list of all rows, which may be billions.
    drawn = np.random.default_rng(seed).choice(n, min(num_rows, n), replace=False, shuffle=False)
    chosen = torch.from_numpy(drawn).sort().values
    ends = torch.tensor(moments.counts).cumsum(0)
    rows: list[Tensor] = []
    for end, count in zip(ends.tolist(), moments.counts, strict=True):
        rows.append(chosen[(chosen >= end - count) & (chosen < end)] - (end - count))
    parts = shards.ask(_Take(likelihood, tuple(rows)))
    return CheckedRows(torch.cat([part.inputs for part in parts]), torch.cat([part.targets for part in parts]))


@final
@dataclass(frozen=True, eq=False)
class _Take:
    likelihood: AbstractLikelihood | None
    rows: tuple[Tensor, ...]

    def __call__(self, index: int, shard: Any, kept: Any) -> CheckedRows:
        rows = read_shard(index, shard, self.likelihood)
        return CheckedRows(rows.inputs[self.rows[index]].clone(), rows.targets[self.rows[index]].clone())
