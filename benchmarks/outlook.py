"""Calibration of the outlook: what was left to gain, beside what the optimizer said, on 30 functions of known maximum.

Run `python benchmarks/outlook.py --output runs.jsonl`; it goes on where it stopped, and prints the table at the end.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import streamgp as sg

BUDGETS = (12, 20, 30, 40)
SEEDS = (0, 1)


def _shifted(function: Callable[[Tensor], Tensor], d: int, seed: int) -> Callable[[Tensor], Tensor]:
    """A function whose maximum, zero, is at a point drawn within the unit cube, in rotated axes if d > 1."""
    generator = torch.Generator().manual_seed(1000 + seed)
    center = 0.2 + 0.6 * torch.rand(d, generator=generator, dtype=torch.float64)
    rotation, _ = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64))
    return lambda x: function((x - center) @ rotation)


def _kinds() -> dict[str, tuple[Callable[[Tensor], Tensor], float]]:
    """Functions of the distance to their maximum in each axis; the maximum is 0, at 0."""
    scales = lambda z: torch.logspace(0.0, 1.0, z.shape[-1], dtype=z.dtype)  # noqa: E731
    return {
        "bowl": (lambda z: -z.square().sum(-1), 0.0),
        "ellipsoid": (lambda z: -(scales(z) * z).square().sum(-1), 0.0),
        "cone": (lambda z: -z.square().sum(-1).sqrt(), 0.0),
        "ripples": (lambda z: -(10.0 * z.square() + 1.0 - torch.cos(8.0 * z)).sum(-1), 0.0),
        "bump": (lambda z: torch.exp(-8.0 * z.square().sum(-1)) - 1.0, 0.0),
        "ramp": (lambda z: -torch.tanh(5.0 * z.abs()).sum(-1), 0.0),
        "banana": (
            lambda z: -(20.0 * (z[..., :1] - z[..., -1:].square()).square() + z.square()).sum(-1),
            0.0,
        ),
        "two hills": (
            lambda z: torch.maximum(-3.0 * z.square().sum(-1), -0.3 - 3.0 * (z.abs() - 0.4).square().sum(-1)),
            0.0,
        ),
        "ackley": (
            lambda z: (
                20.0 * torch.exp(-1.0 * z.square().mean(-1).sqrt())
                + torch.exp(torch.cos(6.0 * z).mean(-1))
                - 20.0
                - math.e
            ),
            0.0,
        ),
        "saturated": (lambda z: -(z.square().sum(-1) / (0.1 + z.square().sum(-1))), 0.0),
    }


def problems() -> dict[str, tuple[int, Callable[[Tensor], Tensor], float]]:
    """Ten kinds in two, four and six dimensions: each with the noise of every third one, a twentieth of its range."""
    found = {}
    for k, (name, (function, _)) in enumerate(_kinds().items()):
        for j, d in enumerate((2, 4, 6)):
            shifted = _shifted(function, d, 10 * k + d)
            x = torch.rand(512, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            noise = 0.05 * float(shifted(x).std()) if (k + j) % 3 == 0 else 0.0
            found[f"{name}-{d}"] = (d, shifted, noise)
    return found


def run(name: str, seed: int) -> list[dict[str, Any]]:
    """The outlook at each budget, with what was left and what came of the next ten evaluations."""
    d, function, noise = problems()[name]
    generator = torch.Generator().manual_seed(seed)
    optimizer = sg.Optimizer([(0.0, 1.0)] * d, seed=seed)
    rows = []
    for n in range(1, max(BUDGETS) + 1):
        X = optimizer.ask()
        y = function(X)
        optimizer.tell(X, y + noise * torch.randn(y.shape, generator=generator, dtype=y.dtype))
        if n in BUDGETS:
            began = time.process_time()
            outlook = optimizer.outlook()
            seconds = time.process_time() - began
            at = float(function(torch.as_tensor(optimizer.best().X).unsqueeze(0)))
            rows.append(
                {
                    "problem": name,
                    "seed": seed,
                    "n": n,
                    "noise": noise,
                    "left": -at,
                    "said": outlook.left,
                    "most": outlook.most,
                    "next": outlook.next,
                    "below": float((outlook.gains < -at).double().mean()),
                    "seconds": seconds,
                }
            )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print coverage and ratios by budget."""
    for n in BUDGETS:
        some = [row for row in rows if row["n"] == n]
        if not some:
            continue
        held = sum(row["left"] <= row["most"] + 1e-9 for row in some) / len(some)
        ratio = sorted(math.log10(max(row["said"], 1e-9) / max(row["left"], 1e-9)) for row in some)
        after = {(row["problem"], row["seed"]): row["left"] for row in rows if row["n"] == n + 10}
        steps = [
            (10 * row["next"], row["left"] - after[row["problem"], row["seed"]])
            for row in some
            if (row["problem"], row["seed"]) in after
        ]
        line = (
            f"n {n}: {len(some)} runs, left <= most in {100 * held:.0f} %, log10(said / left) "
            f"{ratio[len(ratio) // 10]:.1f}, {ratio[len(ratio) // 2]:.1f}, {ratio[9 * len(ratio) // 10]:.1f}; "
            f"seconds {sum(row['seconds'] for row in some) / len(some):.2f}"
        )
        if steps:
            said, gained = (sorted(values)[len(steps) // 2] for values in zip(*steps, strict=True))
            line += f"; of ten more, ten times the next {said:.2g}, gained {gained:.2g}"
        print(line)


def main() -> None:
    """Run what is missing, and show all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--problems", nargs="*", default=None)
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in arguments.output.open()] if arguments.output.exists() else []
    done = {(row["problem"], row["seed"]) for row in rows}
    for seed in SEEDS:
        for name in arguments.problems or problems():
            if (name, seed) not in done:
                found = run(name, seed)
                with arguments.output.open("a") as file:
                    file.writelines(f"{json.dumps(row)}\n" for row in found)
                rows += found
    show(rows)


if __name__ == "__main__":
    main()
