"""The rows of shards as training sees them: some of all, or those of one in blocks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from streamgp.likelihoods import AbstractLikelihood
from streamgp.training.data import CheckedRows, to_observed
from streamgp.training.features import Observed
from streamgp.training.scaling import Scaling
from streamgp.training.sharding.overview import Overview
from streamgp.training.sharding.shards import AbstractShards, read_shard

__all__ = ["blocks_of", "sample_of"]

# Rows of a shard that are in work together: their features at 256 inducing points take 32 MB.
_ROWS_OF_BLOCK = 16_384


def sample_of(
    shards: AbstractShards, overview: Overview, num_rows: int, *, likelihood: Any, generator: torch.Generator
) -> CheckedRows:
    """Random rows of all shards; which ones does not depend on how the rows are divided."""
    n, seed = overview.num_data, int(torch.randint(2**31, (), generator=generator))
    # Without a list of all rows, which may be billions.
    drawn = np.random.default_rng(seed).choice(n, min(num_rows, n), replace=False, shuffle=False)
    chosen = torch.from_numpy(drawn).sort().values
    ends = torch.tensor(overview.counts).cumsum(0)
    rows: list[Tensor] = []
    for end, count in zip(ends.tolist(), overview.counts, strict=True):
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


def blocks_of(index: int, shard: Any, *, likelihood: Any, scaling: Scaling | None) -> Iterable[Observed]:
    """The rows of a shard in blocks, as training sees them."""
    rows = read_shard(index, shard, likelihood)
    for start in range(0, len(rows.targets), _ROWS_OF_BLOCK):
        part = CheckedRows(rows.inputs[start : start + _ROWS_OF_BLOCK], rows.targets[start : start + _ROWS_OF_BLOCK])
        data = to_observed(part, dtype=rows.inputs.dtype)
        yield data if scaling is None else scaling.observed(data)
