"""Load one process of `streamgp serve` with predict and learn in blocks, and report latencies.

python benchmarks/serving.py [--rate 1000] [--seconds 20] [--points 50]
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import streamgp as sg

BLOCK, NUM_DIMS, NUM_FIRST = 20, 5, 1000


def function(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=1000.0, help="rows a second; 0 for as many as there can be")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--points", type=int, default=50)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "sensor.sgp"
        X = rng.random((NUM_FIRST, NUM_DIMS))
        sg.StreamingGPRegressor(num_inducing=options.points).partial_fit(X, function(X, rng)).save(path)
        command = [sys.executable, "-m", "streamgp", "serve", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            address = urlsplit(re.search(r"http://\S+", service.stdout.readline())[0])
            connection = HTTPConnection(address.hostname, address.port)

            def send(route: str, body: object) -> tuple[float, dict]:
                began = time.perf_counter()
                connection.request("POST", route, json.dumps(body), {"content-type": "application/json"})
                answer = json.loads(connection.getresponse().read())
                return time.perf_counter() - began, answer

            seconds: dict[str, list[float]] = {"predict": [], "learn": []}
            began, num_rows = time.perf_counter(), 0
            while time.perf_counter() < began + options.seconds:
                X = rng.random((BLOCK, NUM_DIMS))
                took, said = send("/predict", {"rows": X.tolist()})
                seconds["predict"].append(took)
                took, _ = send("/learn", {"ticket": said["ticket"], "targets": function(X, rng).tolist()})
                seconds["learn"].append(took)
                num_rows += BLOCK
                if options.rate:
                    time.sleep(max(0.0, began + num_rows / options.rate - time.perf_counter()))
            print(f"{num_rows / (time.perf_counter() - began):.0f} rows a second, predicted and learned")
            for name, each in seconds.items():
                p50, p99, most = (1000 * float(x) for x in (np.quantile(each, 0.5), np.quantile(each, 0.99), max(each)))
                print(f"{name}: median {p50:.1f} ms, 99th percentile {p99:.1f} ms, longest {most:.1f} ms")
            service.terminate()


if __name__ == "__main__":
    main()
