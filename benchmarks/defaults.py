"""Defaults against defaults: what a user gets who sets nothing.

The problems of `default_problems.py` were declared before the first run; settings are chosen by some of them, and never
by those that are held out. All methods see the same noise and, if they have one, the same initial design for a seed,
and each is judged by the true value at the point that it would recommend by its own means (`default_methods.py`).
Results are lines of JSON, one for each (problem, method, q, seed), so that a run can be stopped and taken up anywhere:

    python benchmarks/defaults.py --output DIRECTORY --seeds 20
    python benchmarks/defaults.py --output DIRECTORY --report

With `--development` or `--hard`, functions of `development_problems.py` are run instead, by which defaults are chosen;
with `--unseen`, those of `unseen_problems.py`, by which nothing was: 40 evaluations each, for the last two.
"""

import argparse
import json
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from default_methods import METHODS, run_method
from default_problems import HELD_OUT, PROBLEMS
from development_problems import DEVELOPMENT, HARD, TRADE_OFFS
from scipy import stats
from unseen_problems import UNSEEN

BUDGETS = {1: 50, 4: 60}
SHORT = 40  # evaluations of each hard or unseen problem
ALL = {**PROBLEMS, **DEVELOPMENT, **TRADE_OFFS, **HARD, **UNSEEN}
Line = dict[str, Any]


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half-width of a 95 % interval from the t distribution."""
    n = len(values)
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5 if n > 1 else math.nan
    return float(np.mean(values)), float(half)


def report(lines: Sequence[Line]) -> None:
    """Print what each method reached, how that differs from ours by seed, seconds per ask, and mean ranks."""
    cells: dict[tuple[str, int, int], dict[str, Line]] = {}
    for line in lines:
        cells.setdefault((line["problem"], line["q"], line["seed"]), {})[line["method"]] = line
    for q in sorted({key[1] for key in cells}):
        shown = [name for name in ALL if any(key[:2] == (name, q) for key in cells)]
        print(f"q = {q}, {BUDGETS[q]} evaluations: true value of the recommended point, mean over seeds (difference to")
        print("streamgp of the same seeds, with its standard error; negative is better than ours), seconds per ask\n")
        for name in shown:
            runs = [one for key, one in cells.items() if key[:2] == (name, q)]
            print(f"{name}{' (held out)' if name in HELD_OUT else ''}")
            for method in METHODS:
                _report_method(method, [one for one in runs if method in one])
        _report_ranks({key: one for key, one in cells.items() if key[1] == q})


def _report_method(method: str, runs: Sequence[dict[str, Line]]) -> None:
    if not runs:
        return
    values = [one[method]["value"] for one in runs]
    # The second half, as the first asks of a run only look at the design.
    spent = [float(np.median(one[method]["seconds"][len(one[method]["seconds"]) // 2 :])) for one in runs]
    pairs = [one[method]["value"] - one["streamgp"]["value"] for one in runs if "streamgp" in one]
    compared = ""
    if method != "streamgp" and len(pairs) > 1:
        error = float(np.std(pairs, ddof=1)) / len(pairs) ** 0.5
        verdict = "  BETTER by more than two standard errors" if np.mean(pairs) < -2.0 * error else ""
        compared = f"({np.mean(pairs):+.3g} ± {error:.2g}){verdict}"
    print(
        f"  {method:10s} {np.mean(values):10.4g} median {np.median(values):10.4g} {np.mean(spent):7.3f} s  {compared}"
    )


def _report_ranks(cells: dict[tuple[str, int, int], dict[str, Line]]) -> None:
    """Mean ranks over problems, with intervals over seeds for which all methods ran on all problems shown."""
    present = [method for method in METHODS if any(method in one for one in cells.values())]
    names = {key[0] for key in cells}
    seeds = sorted({key[2] for key in cells})
    whole = [s for s in seeds if {k[0] for k, one in cells.items() if k[2] == s and set(present) <= set(one)} == names]
    groups = {"all problems": names, "held out": names & set(HELD_OUT), "others": names - set(HELD_OUT)}
    for label, group in groups.items():
        ranks: dict[str, list[float]] = {method: [] for method in present}
        for seed in whole if group else ():
            rows = [one for key, one in cells.items() if key[2] == seed and key[0] in group]
            table = np.array([stats.rankdata([one[m]["value"] for m in present]) for one in rows])
            for method, rank in zip(present, table.mean(0), strict=True):
                ranks[method].append(float(rank))
        if any(ranks.values()):
            print(f"\nmean rank over {label} ({len(group)}), 95 % interval over {len(whole)} seeds")
            for method, found in ranks.items():
                mean, half = interval(found)
                print(f"  {method:10s} {mean:.2f} ± {half:.2f}")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=Path("benchmarks/results/defaults"), help="directory of the results"
    )
    parser.add_argument("--seeds", type=int, default=20, help="number of seeds, from 0")
    parser.add_argument("--problems", nargs="*", choices=list(ALL), help="all declared ones by default")
    parser.add_argument("--development", action="store_true", help="functions by which defaults are chosen")
    parser.add_argument("--hard", action="store_true", help="functions by which models are chosen")
    parser.add_argument("--unseen", action="store_true", help="functions by which nothing was chosen")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--q", nargs="*", type=int, default=[1], choices=list(BUDGETS))
    parser.add_argument("--threads", type=int, default=None, help="of torch")
    parser.add_argument("--report", action="store_true", help="only report what is there of methods and problems")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "defaults.jsonl"
    lines: list[Line] = [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []
    done = {(one["problem"], one["method"], one["q"], one["seed"]) for one in lines}
    warnings.simplefilter("ignore")
    chosen = DEVELOPMENT if options.development else HARD if options.hard else UNSEEN if options.unseen else PROBLEMS
    units = [
        (problem, method, q, seed)
        for seed in range(options.seeds)
        for q in options.q
        for method in options.methods
        for problem in options.problems or chosen
    ]
    for problem, method, q, seed in () if options.report else units:
        if (problem, method, q, seed) in done:
            continue
        budget = SHORT if problem in HARD or problem in UNSEEN else BUDGETS[q]
        result = run_method(method, ALL[problem], q, budget, seed)
        lines.append({"problem": problem, "method": method, "q": q, "seed": seed, **result})
        with path.open("a") as file:
            file.write(json.dumps(lines[-1]) + "\n")
        print(problem, method, q, seed, f"{result['value']:.4g}", flush=True)
    names = options.problems or list(ALL)
    report([one for one in lines if one["method"] in options.methods and one["problem"] in names])


if __name__ == "__main__":
    main()
