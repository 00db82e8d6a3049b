"""`python -m paper verdicts` and `compare`: what is claimed and found, and results of yours beside the recorded."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from paper.registry import FIGURES, find_figure, find_study
from paper.report.report import Report, make_report
from paper.schema.configuration import SCALES, read_configuration
from paper.schema.record import UnitRecord
from paper.schema.results import load_records
from streamgp.errors import OptionError

__all__ = ["compare_results", "judge_all", "verdicts_as_json"]

# How entries of outcomes begin that say how good a unit is, the first that it has.
_HEADLINES = ("best", "rmse_all", "rmse", "accuracy", "error", "log10_condition", "mean")
# Relative differences below this come from the order of sums.
_SAME = 1e-3


def judge_all(directory: Path, scale: str | None, names: tuple[str, ...] | None, *, home: Path) -> Report:
    """Judge claims by files of results.

    Args:
        directory: Where these are.
        scale: `"quick"`, `"full"`, or the name of the user's own settings; if None, full results where there are any,
            and quick ones elsewhere.
        names: Figures, or None for all.
        home: The directory from which links start.
    """
    figures = [find_figure(name) for name in (FIGURES if names is None else names)]
    studies = {figure.study: find_study(figure.study) for figure in figures}
    configurations = {name: tuple(read_configuration(study, one) for one in SCALES) for name, study in studies.items()}
    return make_report(figures, scale, directory, home=home, configurations=configurations)


def verdicts_as_json(report: Report) -> str:
    """Each claim with its verdict, the parts that it rests on, numbers of trials and settings, as JSON."""
    entries = [
        {
            "figure": section.figure.name,
            "title": section.figure.title,
            "claim": section.figure.claim,
            "verdict": section.verdict,
            "words": section.verdict_words,
            "few_trials": section.has_few_trials,
            "trials": section.judgement.num_trials if section.judgement is not None else None,
            "scale": section.scale,
            "parts": [asdict(part) for part in section.judgement.parts] if section.judgement is not None else [],
            "remark": section.judgement.remark if section.judgement is not None else "",
            "settings": dict(section.settings),
        }
        for section in report.sections
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False)


def compare_results(mine: Path, recorded: Path) -> Table:
    """Units that ran in both places with the same settings, line by line.

    Another processor rounds otherwise, and a loop that chooses its own data amplifies that: what is to be expected is
    a difference within the spread of the recorded seeds.

    Raises:
        OptionError: If nothing ran in both places.
    """
    table = Table("Line", "Seeds", "What", "Recorded", "Yours", "", title=f"{mine} beside {recorded}")
    for file in sorted(mine.glob("*/*.jsonl")):
        study, scale = file.stem, file.parent.name
        theirs = load_records(study, scale, recorded)[0]
        known = {record.unit: record for record in theirs.all}
        pairs: dict[tuple[str, str], list[tuple[UnitRecord, UnitRecord]]] = {}
        for record in load_records(study, scale, mine)[0].all:
            other = known.get(record.unit)
            if other is not None and other.settings == record.settings:
                pairs.setdefault((record.problem, record.method), []).append((other, record))
        for line, found in sorted(pairs.items()):
            name, _ = _headline(found[0][0].outcome)
            old, new = (np.array([_headline(pair[side].outcome)[1] for pair in found]) for side in (0, 1))
            spread = np.array([_headline(record.outcome)[1] for record in theirs.of(*line)])
            place = f"{study}, {scale}: {', '.join(line)}"
            words = _compare(old, new, spread)
            table.add_row(place, str(len(found)), name, f"{old.mean():.4g}", f"{new.mean():.4g}", words)
    if not table.row_count:
        raise OptionError(
            f"No unit of {mine} ran with the settings of {recorded}. Run one: python -m paper run fig8 --results {mine}"
        )
    return table


def _compare(old: np.ndarray, new: np.ndarray, spread: np.ndarray) -> str:
    difference = float(np.abs(new - old).max())
    if difference <= _SAME * max(float(np.abs(old).max()), 1e-12):
        return "the same"
    if len(spread) < 3:
        return f"differs by {difference:.2g}; too few recorded seeds to tell their spread"
    deviation = float(spread.std(ddof=1))
    is_within = abs(float((new - old).mean())) <= 2.0 * deviation
    return f"{'within' if is_within else 'beyond'} two standard deviations of recorded seeds ({deviation:.2g})"


def _headline(outcome: Mapping[str, Any]) -> tuple[str, float]:
    """Name and last number of the entry that says how good a unit is; or of the first with numbers."""
    first = [name for start in _HEADLINES for name in outcome if name.startswith(start)]
    for name in (*first, *outcome):
        numbers = _numbers(outcome[name])
        if numbers:
            return name, numbers[-1]
    return "", float("nan")


def _numbers(value: Any) -> list[float]:
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []
