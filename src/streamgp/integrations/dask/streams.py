"""Streams that are learned apart on the workers of a cluster, and merged in a tree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch

from streamgp.conditioning import SparseGP, merge
from streamgp.errors import ArgumentTypeError
from streamgp.gp import SparseProcess
from streamgp.integrations.dask.shards import from_collections, gather_within, read_client, send
from streamgp.training import FitResult, fit

__all__ = ["DaskStream"]

# Beliefs that are merged by one task.
_FAN_IN = 8


@final
@dataclass(frozen=True, eq=False)
class DaskStream:
    """Knowledge of a stream whose parts lie on many workers; a frozen value.

    Each chunk of new rows is learned where it lies, from the prior, by hyperparameters and inducing points that all
    chunks share. The beliefs, p² numbers each, are then merged in a tree, exactly: `learn` gives what one process would
    have learned of all rows.

    Attributes:
        result: Hyperparameters, likelihood and units, and the belief about all rows so far.
        client: Client of the cluster; None for the current one.
        time_limit: Seconds after which a step that has not ended is given up.
    """

    result: Any
    client: Any = None
    time_limit: float = 600.0

    def __post_init__(self) -> None:
        """Check what was given."""
        if not isinstance(self.result, FitResult):
            raise ArgumentTypeError(f"result must be what fit returned, but is a {type(self.result).__name__}.")

    @property
    def gp(self) -> SparseGP:
        """The belief about all rows so far, in the units of training."""
        return self.result.gp

    def learn(self, X: Any, y: Any) -> "DaskStream":
        """Learn new rows.

        Args:
            X: `dask.array` or `dask.dataframe` of inputs.
            y: Targets, divided alike.
        """
        client = read_client(self.client)
        shards = from_collections(client, X, y, time_limit=self.time_limit)
        process = self.gp.process
        prior = SparseProcess.from_prior(process.prior, process.inducing_points, jitter=process.jitter)
        bare = send(client, replace(self.result, gp=SparseGP(prior)))
        beliefs = [client.submit(_learn, bare, pair, pure=False) for pair in shards.pairs]
        while len(beliefs) > 1:
            groups = [beliefs[start : start + _FAN_IN] for start in range(0, len(beliefs), _FAN_IN)]
            beliefs = [client.submit(_merge, group, pure=False) for group in groups]
        (learned,) = gather_within(client, beliefs, self.time_limit)
        return replace(self, result=replace(self.result, gp=merge([self.gp, learned])))

    def refit(self, X: Any, y: Any, **options: Any) -> "DaskStream":
        """Learn new rows, and hyperparameters from them and all that is known; chunks to come are learned by these.

        Args:
            X: Inputs `(n, d)` in memory, or a collection that is small enough to be.
            y: Targets `(n,)`.
            options: As for `streamgp.fit`.
        """
        inputs, targets = (torch.from_numpy(np.ascontiguousarray(np.asarray(each))) for each in (X, y))
        like = self.gp.inducing_points
        result = fit(inputs.to(like), targets.to(like), start=self.result, carried=self.gp, **options)
        return replace(self, result=result)


def _learn(result: FitResult, pair: tuple[np.ndarray, np.ndarray]) -> SparseGP:
    """The prior with one chunk of rows."""
    like, scaling = result.gp.inducing_points, result.scaling
    X, y = (torch.from_numpy(np.ascontiguousarray(each)).to(like) for each in pair)
    if scaling is not None:
        X, y = scaling.inputs(X), scaling.targets(y)
    learned, _ = result.gp.absorb(X, y, likelihood=result.likelihood, inducing="keep")
    return learned


def _merge(beliefs: Sequence[SparseGP]) -> SparseGP:
    return merge(list(beliefs))
