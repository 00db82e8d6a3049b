"""The figures of the section on benchmarks are those of the results that are under version control."""

import json
import math
import re
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "defaults" / "defaults.jsonl"
# Columns of the page, by their names in the results.
METHODS = ("streamgp", "botorch", "gpsampler", "tpe", "random")
RANKED = ("streamgp", "gpsampler", "botorch", "tpe", "random")
BUDGETS = {"Mean ranks": 1, "Four at a time": 4}


def rows_below(heading: str) -> dict[str, list[str]]:
    """Cells of the first table after a heading, by what the first cell of a row says."""
    page = (ROOT / "docs" / "benchmarks" / "defaults.md").read_text(encoding="utf-8")
    table = page[page.index("| --- |", page.index(f"# {heading}\n")) :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    return {name: cells for name, *cells in rows}


def rows_of_the_table() -> dict[str, list[str]]:
    return {name.removesuffix(" (held out)"): cells for name, cells in rows_below("Default settings").items()}


def runs_of_the_results(q: int) -> list[dict[str, Any]]:
    runs = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return [run for run in runs if run["q"] == q]


def values_of_the_results() -> dict[tuple[str, str], list[float]]:
    values = defaultdict(list)
    for run in runs_of_the_results(1):
        values[run["problem"], run["method"]].append(run["value"])
    return values


def rounding(text: str) -> float:
    """Half a unit of the last digit that a number shows."""
    mantissa, _, exponent = text.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


@pytest.mark.parametrize("problem", rows_of_the_table())
def test_means_of_default_settings_are_those_of_the_results(problem):
    values = values_of_the_results()
    for method, cell in zip(METHODS, rows_of_the_table()[problem], strict=True):
        runs = values[problem, method]
        if cell:
            number, seeds = re.fullmatch(r"(\S+)(?: \((\d+)\))?", cell.replace("−", "-")).groups()
            slack = 1.01 * rounding(number)
            assert math.isclose(float(number), statistics.mean(runs), rel_tol=0.0, abs_tol=slack), method
            assert len(runs) == (int(seeds) if seeds else 20), method
        else:
            assert not runs, method


@pytest.mark.parametrize("heading", BUDGETS)
def test_mean_ranks_over_all_pairs_are_those_of_the_results(heading):
    reached: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for run in runs_of_the_results(BUDGETS[heading]):
        reached[run["problem"], run["seed"]][run["method"]] = run["value"]
    columns = RANKED if heading == "Mean ranks" else tuple(name for name in RANKED if name != "botorch")
    checked = 0
    for words, (pairs, *cells) in rows_below(heading).items():
        if not words.startswith(("three", "four", "five methods, twelve")):
            continue
        methods = [method for method, cell in zip(columns, cells, strict=True) if cell]
        by_problem = defaultdict(list)
        for (problem, _), one in reached.items():
            if set(methods) <= set(one):
                by_problem[problem].append(stats.rankdata([one[method] for method in methods]))
        ranks = np.array([np.mean(each, axis=0) for each in by_problem.values()])
        half = stats.t.ppf(0.975, len(ranks) - 1) * stats.sem(ranks, axis=0)
        expected = [f"{mean:.2f} ± {width:.2f}" for mean, width in zip(ranks.mean(0), half, strict=True)]
        assert [cell for cell in cells if cell] == expected, words
        assert int(pairs) == sum(map(len, by_problem.values())), words
        checked += 1
    assert checked >= 2
