"""Fits over shards: cost of an evaluation, bytes that travel, memory, and what a second worker brings.

    python benchmarks/distributed.py [--rows N] [--shards K ...] [--inducing P] [--workers W ...] [--evaluations E]
                                     [--iterations I] [--directory DIRECTORY] [--cluster-only]
    python benchmarks/distributed.py --generated ROWS ... [--inducing P] [--evaluations E]

Rows are made from a known function of 8 inputs and written as Parquet files (`.npy` without pyarrow). Measured: value
and gradient of the collapsed bound, which is what a fit repeats, over the files in this process, and on a Dask cluster
of so many workers with one thread each; seconds of an evaluation, microseconds a row, bytes of each way (pickled), and
the peak memory of a process that only evaluates; on the cluster also all bytes that the loopback interface carried.
With `--cluster-only` the files are evaluated on clusters alone, the first of which the others are compared with. With
`--iterations` a whole fit follows, here and on the cluster. The bound of every run is compared with the first. With
`--generated` nothing is written: shards of 50 000 rows are made by functions when they are needed, for each number of
rows in turn, and the peak memory of this process is told.
"""

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import streamgp as sg
from streamgp.likelihoods import Gaussian
from streamgp.training.features import Observed
from streamgp.training.priors import Layout
from streamgp.training.sharding import MappedShards
from streamgp.training.sharding.gaussian import gaussian_objective
from streamgp.training.sharding.shards import ParameterPoint
from streamgp.training.starting import starting_hyperparameters

NUM_DIMS, BLOCK = 8, 1000


def rows(num_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(num_rows, NUM_DIMS))
    f = np.sin(6.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.abs(X[:, 3] - 0.5) + 0.5 * np.cos(4.0 * X[:, 4] * X[:, 5])
    return X, f + 0.2 * rng.standard_normal(num_rows)


@dataclass(frozen=True)
class FileShard:
    """A function that loads one file."""

    path: Path

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        if self.path.suffix == ".npy":
            table = np.load(self.path)
        else:
            import pyarrow.parquet as parquet

            table = parquet.read_table(self.path).to_pandas().to_numpy()
        return np.ascontiguousarray(table[:, :-1]), np.ascontiguousarray(table[:, -1])


@dataclass(frozen=True)
class GeneratedShard:
    """A function that makes some blocks of rows."""

    blocks: range

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [rows(BLOCK, block) for block in self.blocks]
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def generated(sizes: list[int], num_inducing: int, num_evaluations: int) -> None:
    for num_rows in sizes:
        num_blocks = num_rows // BLOCK
        shards = [GeneratedShard(range(i, min(i + 50, num_blocks))) for i in range(0, num_blocks, 50)]
        value, seconds, processor = evaluate(MappedShards(shards, map), num_inducing, num_evaluations)
        print(
            f"{num_rows} rows in {len(shards)} shards, p = {num_inducing}, {num_evaluations} evaluations: "
            f"{seconds:.1f} s, processor {processor:.1f} s, {1e6 * processor / num_rows:.2f} us a row, "
            f"{peak_megabytes()} MB at the peak, bound {value:.6f}",
            flush=True,
        )


def write(directory: Path, num_rows: int, num_shards: int) -> list[FileShard]:
    shards, names = [], [*(f"x{i}" for i in range(NUM_DIMS)), "y"]
    for index, blocks in enumerate(np.array_split(np.arange(num_rows // BLOCK), num_shards)):
        # Made block by block, so that the rows are the same however they are divided.
        table = np.concatenate([np.column_stack(rows(BLOCK, int(block))) for block in blocks])
        try:
            import pyarrow
            import pyarrow.parquet as parquet

            path = directory / f"{num_shards}-{index}.parquet"
            columns = {name: table[:, i] for i, name in enumerate(names)}
            parquet.write_table(pyarrow.table(columns), path)
        except ImportError:
            path = directory / f"{num_shards}-{index}.npy"
            np.save(path, table)
        shards.append(FileShard(path))
    return shards


class Counted:
    """The built-in `map`, with the bytes counted that would travel."""

    def __init__(self) -> None:
        self.down = self.up = 0

    def __call__(self, function: Any, items: Any) -> Any:
        self.down = max(self.down, len(pickle.dumps(function)))
        for item in items:
            result = function(item)
            self.up = max(self.up, len(pickle.dumps(result)))
            yield result


def layout(num_inducing: int) -> tuple[Layout, float]:
    X, y = rows(max(2000, num_inducing), 10**6)
    data = Observed(torch.from_numpy(X), torch.from_numpy(y))
    setting = starting_hyperparameters(
        data, likelihood=Gaussian(0.1), kernel=None, mean=None, start=None, latent_variance=1.0
    )
    setting = type(setting)(setting.kernel, setting.mean, setting.likelihood, data.inputs[:num_inducing], {})
    return Layout(setting, True, {}, {}), data.jitter


def evaluate(shards: Any, num_inducing: int, num_evaluations: int) -> tuple[float, float, float]:
    """The bound, seconds and processor seconds of one evaluation of value and gradient."""
    what, jitter = layout(num_inducing)
    objective = gaussian_objective(shards, ParameterPoint(what, what.space().start), jitter, beta=1.0)
    seconds, processor, value = [], [], 0.0
    for _ in range(num_evaluations):
        x = what.space().start.requires_grad_(True)
        began, used = time.perf_counter(), time.process_time()
        bound = objective(x)
        torch.autograd.grad(bound, x)
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        value = float(bound.detach())
    return value, min(seconds), min(processor)


def memory(paths: list[FileShard], num_inducing: int, num_evaluations: int) -> str:
    """Peak megabytes of a process that only evaluates."""
    names = [str(shard.path) for shard in paths]
    command = [sys.executable, __file__, "--memory", str(num_inducing), str(num_evaluations), *names]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def peak_megabytes() -> int:
    """Of this process alone; `ru_maxrss` would begin with that of the process that started it."""
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM"))
    return int(line.split()[1]) // 1024


def loopback_bytes() -> int:
    """Count bytes that this machine has sent to itself: between client, scheduler and workers, if nobody else talks."""
    line = next(each for each in Path("/proc/net/dev").read_text().splitlines() if each.strip().startswith("lo:"))
    return int(line.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--inducing", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--evaluations", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=0, help="of a whole fit, here and on the last cluster")
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--cluster-only", action="store_true")
    parser.add_argument("--generated", type=int, nargs="+", help="numbers of rows, made by functions")
    parser.add_argument("--memory", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        shards = MappedShards([FileShard(Path(name)) for name in arguments.memory[2:]], map)
        evaluate(shards, int(arguments.memory[0]), int(arguments.memory[1]))
        print(peak_megabytes())
        return
    torch.set_num_threads(1)
    if arguments.generated:
        generated(arguments.generated, arguments.inducing, arguments.evaluations)
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        directory, first = Path(name), None
        for num_shards in arguments.shards:
            files = write(directory, arguments.rows, num_shards)
            if arguments.cluster_only:
                continue
            counted = Counted()
            value, seconds, processor = evaluate(
                MappedShards(files, counted), arguments.inducing, arguments.evaluations
            )
            peak = memory(files, arguments.inducing, 1)
            print(
                f"{arguments.rows} rows, {num_shards} shards, p = {arguments.inducing}: {seconds:.2f} s, processor "
                f"{processor:.2f} s, {1e6 * processor / arguments.rows:.2f} us a row, {counted.down} bytes to a shard, "
                f"{counted.up} back, {peak} MB at the peak, bound {value:.6f}",
                flush=True,
            )
            first = (value, seconds) if num_shards == arguments.shards[-1] else first
        for num_workers in arguments.workers:
            value = on_dask(files, num_workers, arguments, first)
            first = first or (value, None)


def on_dask(files: list[FileShard], num_workers: int, arguments: Any, first: Any) -> float:
    here = Path(__file__).resolve().parent
    sys.path[:] = [each for each in sys.path if Path(each).resolve() != here]  # this file has the name of the package
    import distributed

    from streamgp.integrations.dask import DaskShards

    with (
        distributed.LocalCluster(n_workers=num_workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        shards = DaskShards(client, [client.submit(file, pure=False) for file in files])
        distributed.wait(shards.pairs)
        before, used = loopback_bytes(), client.run(time.process_time)
        value, seconds, _ = evaluate(shards, arguments.inducing, arguments.evaluations)
        moved = (loopback_bytes() - before) / arguments.evaluations / 1e6
        spent = [now - used[worker] for worker, now in client.run(time.process_time).items()]
        busiest = max(spent) / arguments.evaluations
        peaks = client.run(peak_megabytes).values()
        print(
            f"{num_workers} workers: {seconds:.2f} s, processor {busiest:.2f} s of the busiest, {moved:.1f} MB on the "
            f"loopback for each evaluation, {max(peaks)} MB at the peak of a worker, bound {value:.6f}, differs by "
            f"{abs(value / (first or (value,))[0] - 1.0):.1e} of itself",
            flush=True,
        )
        if arguments.iterations:
            options = {"num_inducing": arguments.inducing, "max_iterations": arguments.iterations}
            began = time.perf_counter()
            result = sg.fit(shards, **options)
            print(f"{num_workers} workers, fit: {time.perf_counter() - began:.1f} s, bound {result.info.bound:.6f}")
        return value


if __name__ == "__main__":
    main()
