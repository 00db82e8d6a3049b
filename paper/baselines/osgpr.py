"""O-SGPR as in the paper: one step of Adam on the streaming bound for every row."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from paper.baselines.streaming_bound import (
    CarriedSite,
    StreamingBound,
    StreamParameters,
    streaming_bound,
)

__all__ = ["GPYTORCH_START", "OSGPRState", "StreamBlocks", "stream_osgpr"]

# Lengthscale and noise variance before the first fit: the softplus of zero, where GPyTorch starts. From one, a row at a
# time does not under-fit: what the paper shows comes from here.
GPYTORCH_START = math.log(2.0)
# Rates of the paper's code: kernel and noise, then inducing points; in the first fit and along the stream.
_FIRST_RATES = (0.1, 0.01)
_STREAM_RATES = (1e-3, 1e-4)


@final
@dataclass(frozen=True)
class StreamBlocks:
    """How a stream is cut up.

    Attributes:
        num_first: Rows of the first fit.
        num_inducing: Number of inducing points, the first rows.
        block: Rows that come at once.
        num_first_steps: Steps of the first fit.
    """

    num_first: int
    num_inducing: int
    block: int
    num_first_steps: int


@final
@dataclass(frozen=True, eq=False)
class OSGPRState:
    """What O-SGPR knows after some rows.

    Attributes:
        num_seen: Number of rows since the first fit.
        parameters: Learned parameters, cut off from gradients.
        site: The site.
        residual_trace: Trace 1 of the last block.
        lost_trace: Trace 2 of the last block.
    """

    num_seen: int
    parameters: StreamParameters
    site: CarriedSite
    residual_trace: float
    lost_trace: float

    def predict(self, X: Float[Tensor, "n d"]) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
        """Mean and variance of the latent function."""
        site = self.site
        phi = torch.linalg.solve_triangular(site.factor, self.parameters.kernel(site.points, X), upper=False)
        L = torch.linalg.cholesky(torch.eye(len(site.pull), dtype=X.dtype) + site.precision)
        mean = phi.mT @ torch.cholesky_solve(site.pull.unsqueeze(-1), L).squeeze(-1)
        spread = torch.linalg.solve_triangular(L, phi, upper=False)
        return mean, (1.0 - phi.square().sum(0) + spread.square().sum(0)).clamp_min(0.0)


def stream_osgpr(
    X: Float[Tensor, "n d"], y: Float[Tensor, " n"], blocks: StreamBlocks, *, jitter: float
) -> Iterator[OSGPRState]:
    """Learn a stream, and yield the state after the first fit and after every block.

    Args:
        X: Inputs in the order of their arrival.
        y: Targets.
        blocks: How they are cut up. For a block of b rows there are b steps, on the bound over p + b.
        jitter: Added to the diagonal of kernel matrices.
    """
    level = X.new_tensor(math.log(GPYTORCH_START))
    start = (level.clone(), level.clone(), X[: blocks.num_inducing].clone())
    parameters = StreamParameters(*(value.requires_grad_(True) for value in start))

    def learn(old: CarriedSite | None, rows: slice, *, adam: torch.optim.Adam, num_steps: int) -> StreamingBound:
        for _ in range(num_steps):
            adam.zero_grad()
            bound = streaming_bound(parameters, old, X[rows], y=y[rows], jitter=jitter)
            (-bound.value / (blocks.num_inducing + blocks.block)).backward()
            adam.step()
        with torch.no_grad():
            return streaming_bound(parameters, old, X[rows], y=y[rows], jitter=jitter)

    first = slice(blocks.num_first)
    bound = learn(None, first, adam=_adam(parameters, _FIRST_RATES), num_steps=blocks.num_first_steps)
    yield _state(0, parameters, bound)
    adam = _adam(parameters, _STREAM_RATES)
    for start_row in range(blocks.num_first, len(y), blocks.block):
        rows = slice(start_row, start_row + blocks.block)
        bound = learn(bound.site, rows, adam=adam, num_steps=blocks.block)
        yield _state(min(rows.stop, len(y)) - blocks.num_first, parameters, bound)


def _adam(parameters: StreamParameters, rates: tuple[float, float]) -> torch.optim.Adam:
    hyperparameters = [parameters.log_lengthscale, parameters.log_noise]
    return torch.optim.Adam(
        [{"params": hyperparameters, "lr": rates[0]}, {"params": [parameters.points], "lr": rates[1]}]
    )


def _state(num_seen: int, parameters: StreamParameters, bound: StreamingBound) -> OSGPRState:
    kept = StreamParameters(
        parameters.log_lengthscale.detach().clone(), parameters.log_noise.detach().clone(), bound.site.points
    )
    return OSGPRState(num_seen, kept, bound.site, float(bound.residual_trace), float(bound.lost_trace))
