"""Streams: how close does learning row by row come to a batch fit, and what do others reach?

    python benchmarks/streams.py [--parts streams sine cost] [--quick] [--jobs N] [--output FILE] [--rows N]

streams: powerplant, elevators (first 10 000 rows), skillcraft, protein (first 10 000 rows) and bananas, in random order
and sorted by the first input, in blocks of 1 and 64, with 100 inducing points; see `stream_methods.py` and
`stream_rivals.py` for the others.
A fifth of the rows is held out (bananas have a test set). Rows are predicted before they are learned;
these scores count from row 200. Targets are in units of their standard deviation; for bananas, RMSE is that of the
probability of the second class. `batch` is `streamgp.fit` on all rows that stream. The state is measured by its pickle.
sine: the noisy sine on which the paper's O-SGPR under-fits. cost: time and memory of b = 1 along a stream of --rows.

A unit (data, order, block, method, seed) runs in a process with one thread, and its result is a line of --output;
units that are there are not run again, so a run can be stopped and goes on where it was. Delete the file, or name
another, to measure changed code. The data sets come from `paper.datasets`.
"""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before torch is loaded, here and in the processes of the units

from rich.console import Console  # noqa: E402
from stream_cost import cost_table  # noqa: E402
from stream_data import NAMES, ORDERS  # noqa: E402
from stream_rivals import BATCH, METHODS  # noqa: E402
from stream_sine import sine_table  # noqa: E402
from stream_tables import LEGEND, stream_tables  # noqa: E402
from stream_units import Unit, run_units  # noqa: E402

BLOCKS = (1, 64)
PARTS = ("streams", "sine", "cost")
NUM_QUICK_ROWS = 600
console = Console(width=190)


def units(names: list[str], methods: list[str], *, num_seeds: int, max_rows: int | None) -> Iterator[Unit]:
    """All units, batch fits first, as the others are compared with them."""
    for seed in range(num_seeds):
        for name in names:
            yield Unit(name, "random", 0, BATCH, seed, max_rows)
            for order in ORDERS:
                for block in BLOCKS:
                    for method in methods:
                        if method != BATCH:
                            yield Unit(name, order, block, method, seed, max_rows)


def read_results(path: Path) -> dict[Unit, dict[str, float]]:
    """Finished units; the last line of one counts, and a half-written line does not."""
    results = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "error" not in entry["result"]:
            results[Unit(**entry["unit"])] = entry["result"]
    return results


def run_streams(arguments: argparse.Namespace) -> None:
    max_rows = NUM_QUICK_ROWS if arguments.quick and arguments.max_rows is None else arguments.max_rows
    num_seeds = 1 if arguments.quick else arguments.seeds
    wanted = list(units(arguments.data, arguments.methods, num_seeds=num_seeds, max_rows=max_rows))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    results = read_results(arguments.output)
    missing = [unit for unit in wanted if unit not in results]
    console.print(f"{len(wanted)} units, of which {len(wanted) - len(missing)} are in {arguments.output}")
    with arguments.output.open("a") as file:
        file.write("\n")  # ends a line that a stopped run left half-written
        for number, (unit, result) in enumerate(run_units(missing, arguments.jobs), start=1):
            file.write(json.dumps({"unit": unit._asdict(), "result": result}) + "\n")
            file.flush()
            outcome = result.get("error", f"{result.get('seconds', 0.0):.1f} s")
            console.print(f"{number}/{len(missing)}  {' '.join(map(str, unit))}: {outcome}", highlight=False)
    results = read_results(arguments.output)
    for table in stream_tables({unit: results[unit] for unit in wanted if unit in results}):
        console.print(table)
    console.print(LEGEND, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="600 rows of each stream, one seed; about ten minutes")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "streams.jsonl")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=list(METHODS))
    parser.add_argument("--max-rows", type=int, default=None, help="use so many rows of each stream")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the stream of `cost`")
    arguments = parser.parse_args()
    if "streams" in arguments.parts:
        run_streams(arguments)
    if "sine" in arguments.parts:
        console.print(sine_table(1 if arguments.quick else 5))
    if "cost" in arguments.parts:
        console.print(cost_table(min(arguments.rows, 2000) if arguments.quick else arguments.rows))


if __name__ == "__main__":
    main()
