"""Cost of a stream at its end beside that at its beginning; the time of one step is in `steps.py`."""

import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from rich.progress import track
from rich.table import Table
from torch import Tensor

from streamgp.streams import StreamLearner, StreamOptions

NUM_DIMS, NUM_INDUCING = 8, 100
# The rows before a mark whose steps are timed.
NUM_TIMED = 500


def rows(num_rows: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Single rows of a smooth function of eight inputs with noise, made when they are asked for."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(NUM_DIMS, 3, generator=generator, dtype=torch.float64)
    for _ in range(num_rows):
        X = torch.rand(1, NUM_DIMS, generator=generator, dtype=torch.float64)
        noise = 0.1 * torch.randn(1, generator=generator, dtype=torch.float64)
        yield X, torch.sin(X @ weights).sum(-1) + noise


def cost_table(num_rows: int) -> Table:
    """Time and memory at rows 10^3, 10^4 and so on."""
    torch.set_num_threads(1)
    table = Table(title=f"One row at a time, p = {NUM_INDUCING}, d = {NUM_DIMS}, Gaussian")
    for column in ("rows", f"median of {NUM_TIMED} steps, ms", "mean since the last, ms", "state, kB", "process, MB"):
        table.add_column(column, justify="right")
    learner = StreamLearner(NUM_DIMS, StreamOptions(most_points=NUM_INDUCING))
    mark, since, num_since, times = 1000, 0.0, 0, torch.zeros(NUM_TIMED)
    for number, (X, y) in enumerate(track(rows(num_rows), total=num_rows, description="Cost"), start=1):
        began = time.perf_counter()
        learner.learn(X.numpy(), y.numpy())
        seconds = time.perf_counter() - began
        times[number % NUM_TIMED] = seconds
        since, num_since = since + seconds, num_since + 1
        if number in (mark, num_rows):
            state = len(pickle.dumps(learner)) / 1e3
            table.add_row(
                f"{number}",
                f"{1e3 * times.median().item():.3f}",
                f"{1e3 * since / num_since:.3f}",
                f"{state:.0f}",
                f"{_resident_megabytes():.0f}",
            )
            mark, since, num_since = 10 * mark, 0.0, 0
    return table


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
