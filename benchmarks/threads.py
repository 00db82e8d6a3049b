"""Effect of threads on the main calls: a default environment beside one thread everywhere and one in OpenBLAS.

    python benchmarks/threads.py [--only NAME ...] [--repeats N] [--json]

Each call runs in a process of its own, once to load what is loaded on first use and then `--repeats` times, in three
environments: as it is after variables that limit threads have been removed, with one thread everywhere, and with one
thread in OpenBLAS. The fastest repeat counts. `ratio` is the default over the best of the three.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable

VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "BLIS_NUM_THREADS")
ENVIRONMENTS = {
    "default": {},
    "one thread": dict.fromkeys(VARIABLES, "1"),
    "one in OpenBLAS": {"OPENBLAS_NUM_THREADS": "1"},
}
MOST_RATIO = 1.15


def fit(n: int, p: int) -> Callable[[], object]:
    import torch
    from botorch.test_functions import Hartmann

    import streamgp as sg

    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, 6, generator=generator, dtype=torch.float64)
    y = -Hartmann()(X) + 0.1 * torch.randn(n, generator=generator, dtype=torch.float64)
    return lambda: sg.fit(X, (y - y.mean()) / y.std(), num_inducing=p)


def stream(num_classes: int) -> Callable[[], object]:
    import numpy as np

    import streamgp as sg

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1100, 4))
    f = np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(len(X))
    y = np.digitize(f, np.quantile(f, np.arange(1, num_classes) / num_classes)) if num_classes else f

    def run() -> None:
        model = sg.StreamingGPClassifier(random_state=0) if num_classes else sg.StreamingGPRegressor(random_state=0)
        for i in range(0, len(X), 10):
            if num_classes:
                model.partial_fit(X[i : i + 10], y[i : i + 10], classes=np.arange(num_classes))
            else:
                model.partial_fit(X[i : i + 10], y[i : i + 10])

    return run


def ask() -> Callable[[], object]:
    import torch
    from botorch.test_functions import Hartmann

    import streamgp as sg

    def run() -> None:
        optimizer = sg.Optimizer([(0.0, 1.0)] * 6, seed=0)
        X = torch.rand(40, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        optimizer.tell(X, Hartmann()(X))
        optimizer.ask()

    return run


CALLS: dict[str, Callable[[], Callable[[], object]]] = {
    "fit (160, 25)": lambda: fit(160, 25),
    "fit (1000, 100)": lambda: fit(1000, 100),
    "fit (5000, 200)": lambda: fit(5000, 200),
    "stream of 1100 rows": lambda: stream(0),
    "stream of 4 classes": lambda: stream(4),
    "Optimizer.ask": ask,
}


def measure(name: str, num_repeats: int) -> float:
    """The fastest of some repeats, in this process."""
    warnings.filterwarnings("ignore")
    call, seconds = CALLS[name](), []
    fit(20, 5)()
    for _ in range(num_repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def measure_apart(name: str, num_repeats: int, variables: dict[str, str]) -> float:
    """Measure in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES} | variables
    command = [sys.executable, __file__, "--here", name, "--repeats", str(num_repeats)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tuple(CALLS), default=list(CALLS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="one line of JSON for each call")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(measure(arguments.here, arguments.repeats))
        return
    for name in arguments.only:
        seconds = {key: measure_apart(name, arguments.repeats, value) for key, value in ENVIRONMENTS.items()}
        ratio = seconds["default"] / min(seconds.values())
        if arguments.json:
            print(json.dumps({"call": name, "seconds": seconds, "ratio": ratio}), flush=True)
        else:
            times = "   ".join(f"{key} {value:.3f} s" for key, value in seconds.items())
            verdict = "" if ratio <= MOST_RATIO else f"   above {MOST_RATIO}"
            print(f"{name:20} {times}   ratio {ratio:.2f}{verdict}", flush=True)


if __name__ == "__main__":
    main()
