r"""A noisy sine, observed point by point: O-SGPR, which under-fits it, beside ours and batch fits.

Points on [-1, 1] in random order, $y = \sin(6x) + \varepsilon$ with noise variance 0.01. The first come at once, the
others block by block.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from paper.baselines.osgpr import StreamBlocks, stream_osgpr
from paper.baselines.osvgp import stream_osvgp
from paper.schema.rounding import rounded
from paper.schema.study import Study, UnitOutcome
from streamgp.streams import StreamLearner, StreamOptions
from streamgp.training import fit

__all__ = ["STUDY", "SineSettings", "noisy_sine", "true_sine"]

_NOISE_VARIANCE = 0.01
# Rows that a picture can show without becoming a cloud.
_NUM_SHOWN = 256
# Block size and jitter of the variants of O-SGPR; the jitter of the paper's code is 1e-3.
_OSGPR = {"osgpr-1": (1, 1e-3), "osgpr-16": (16, 1e-3), "osgpr-1-small-jitter": (1, 1e-8)}

# Block size and weight of divergences of the variants of O-SVGP, with the same jitter.
_OSVGP = {"osvgp-1": (1, 1.0), "osvgp-1-beta": (1, 1e-3), "osvgp-16": (16, 1.0)}
_JITTER = 1e-3


@final
@dataclass(frozen=True)
class SineSettings:
    """Settings of the noisy sine.

    Attributes:
        num_first: Rows that come at once, before the stream.
        num_streamed: Rows of the stream.
        num_inducing: Number of inducing points.
        num_first_steps: Steps of Adam in the first fit of O-SGPR.
        marks: Rows of the stream after which predictions are kept.
        num_traces: How often along the stream the traces are kept.
        grid_size: Number of points at which predictions are kept.
    """

    num_first: int
    num_streamed: int
    num_inducing: int
    num_first_steps: int
    marks: tuple[int, ...]
    num_traces: int
    grid_size: int


class _View(NamedTuple):
    """What a method knows after some rows: mean and standard deviation on the grid, points, and the two traces."""

    num_seen: int
    mean: Tensor
    deviation: Tensor
    points: Tensor
    traces: tuple[float, float] | None = None


def true_sine(X: Tensor) -> Tensor:
    """The function that is observed, at inputs `(n, 1)`."""
    return torch.sin(6.0 * X).squeeze(-1)


def noisy_sine(seed: int, num_rows: int) -> tuple[Tensor, Tensor]:
    """Inputs `(n, 1)` and targets `(n,)` in the order of their arrival."""
    generator = torch.Generator().manual_seed(seed)
    ranks = torch.randperm(num_rows, generator=generator)
    X = torch.linspace(-1.0, 1.0, num_rows, dtype=torch.float64)[ranks].unsqueeze(-1)
    noise = torch.randn(num_rows, generator=generator, dtype=torch.float64)
    return X, true_sine(X) + math.sqrt(_NOISE_VARIANCE) * noise


def run(problem: str, method: str, seed: int, settings: SineSettings) -> UnitOutcome:
    """Learn the stream by a method.

    Returns:
        `grid`; at each of `marks` the `mean`, `deviation`, inducing `points` and `rmse` to the truth on the grid; the
        traces `residual_trace` and `lost_trace`, means of the blocks up to each of `trace_rows`, of O-SGPR alone; and
        `inputs` and `targets` of the first rows, for pictures.
    """
    X, y = noisy_sine(seed, settings.num_first + settings.num_streamed)
    grid = torch.linspace(-1.0, 1.0, settings.grid_size, dtype=torch.float64).unsqueeze(-1)
    if method == "batch":
        views = _batch_views(X, y, grid, settings=settings)
    elif method == "learner":
        views = _learner_views(X, y, grid, settings=settings)
    elif method in _OSVGP:
        views = _osvgp_views(X, y, grid, settings=settings, variant=_OSVGP[method])
    else:
        views = _osgpr_views(X, y, grid, settings=settings, variant=_OSGPR[method])
    kept = list(views)
    shown = [view for view in kept if view.num_seen in settings.marks]
    traced = [(view.num_seen, *view.traces) for view in kept if view.traces is not None]
    return {
        "grid": rounded(grid.squeeze(-1)),
        "marks": [view.num_seen for view in shown],
        "mean": [rounded(view.mean) for view in shown],
        "deviation": [rounded(view.deviation) for view in shown],
        "points": [rounded(view.points.squeeze(-1)) for view in shown],
        "rmse": [rounded(_rmse(view.mean, grid)) for view in shown],
        "trace_rows": [row for row, _, _ in traced],
        "residual_trace": [rounded(residual) for _, residual, _ in traced],
        "lost_trace": [rounded(lost) for _, _, lost in traced],
        "inputs": rounded(X.squeeze(-1)[:_NUM_SHOWN], num_digits=3),
        "targets": rounded(y[:_NUM_SHOWN], num_digits=3),
    }


def _osgpr_views(
    X: Tensor, y: Tensor, grid: Tensor, *, settings: SineSettings, variant: tuple[int, float]
) -> Iterator[_View]:
    block, jitter = variant
    blocks = StreamBlocks(settings.num_first, settings.num_inducing, block, settings.num_first_steps)
    every = max(1, settings.num_streamed // settings.num_traces)
    gathered: list[tuple[float, float]] = []
    for state in stream_osgpr(X, y, blocks, jitter=jitter):
        gathered.append((state.residual_trace, state.lost_trace))
        if state.num_seen and (state.num_seen % every < block or state.num_seen in settings.marks):
            mean, variance = state.predict(grid)
            residual, lost = torch.tensor(gathered, dtype=torch.float64).mean(0).tolist()
            gathered = []
            yield _View(state.num_seen, mean, variance.sqrt(), state.site.points, (residual, lost))


def _osvgp_views(
    X: Tensor, y: Tensor, grid: Tensor, *, settings: SineSettings, variant: tuple[int, float]
) -> Iterator[_View]:
    block, beta = variant
    blocks = StreamBlocks(settings.num_first, settings.num_inducing, block, settings.num_first_steps)
    for state in stream_osvgp(X, y, blocks, jitter=_JITTER, beta=beta):
        if state.num_seen in settings.marks:
            mean, variance = state.predict(grid)
            yield _View(state.num_seen, mean, variance.sqrt(), state.belief.points)


def _learner_views(X: Tensor, y: Tensor, grid: Tensor, *, settings: SineSettings) -> Iterator[_View]:
    first = settings.num_first
    learner = StreamLearner(X.shape[1], StreamOptions(most_points=settings.num_inducing, half_life=None))
    inputs, targets = X.numpy(), y.numpy()
    learner.learn(inputs[:first], targets[:first])
    for row in range(first, len(y)):
        learner.learn(inputs[row : row + 1], targets[row : row + 1])
        if row + 1 - first in settings.marks:
            prediction = learner.predict(grid.numpy())
            latent = np.maximum(prediction.variance - learner.noise_variance, 0.0)
            fitted, belief = learner.fitted, learner.belief
            assert fitted is not None
            assert belief is not None
            points = fitted.units.original_inputs(belief.points[: belief.num_points[0]])
            mean, deviation = torch.from_numpy(prediction.mean), torch.from_numpy(np.sqrt(latent))
            yield _View(row + 1 - first, mean, deviation, torch.from_numpy(np.array(points)))


def _batch_views(X: Tensor, y: Tensor, grid: Tensor, *, settings: SineSettings) -> Iterator[_View]:
    for mark in settings.marks:
        n = settings.num_first + mark
        result = fit(X[:n], y[:n], num_inducing=settings.num_inducing)
        prediction = result.predict(grid)
        yield _View(mark, prediction.mean, prediction.variance.clamp_min(0.0).sqrt(), result.gp.inducing_points)


def _rmse(mean: Tensor, grid: Tensor) -> float:
    return float((mean - true_sine(grid)).square().mean().sqrt())


STUDY = Study(
    name="sine",
    problems={"sine": "Noisy sine on [-1, 1], points in random order"},
    methods={
        "osgpr-1": "O-SGPR, one row at a time",
        "osgpr-16": "O-SGPR, 16 rows at a time",
        "osgpr-1-small-jitter": "O-SGPR, one row at a time, jitter 1e-8",
        "osvgp-1": "O-SVGP, one row at a time",
        "osvgp-1-beta": "O-SVGP, one row at a time, divergences weighted by 1e-3",
        "osvgp-16": "O-SVGP, 16 rows at a time",
        "learner": "streamgp, one row at a time",
        "batch": "fit to all rows so far",
    },
    settings=SineSettings,
    run=run,
)
