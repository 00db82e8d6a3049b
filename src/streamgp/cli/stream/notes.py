"""Sentences about what the columns and the target of a stream were found to be."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from streamgp.cli.error_handling import list_few
from streamgp.streams.stream import Stream
from streamgp.streams.targets import count_labels, written_differently
from streamgp.tables.columns import KINDS, MOST
from streamgp.tables.values import date_formats, is_missing, to_number

__all__ = ["describe_columns", "describe_target"]

_MEANINGS = {"gaussian": "a real number", "binomial": "a number of successes", "classes": "a class"}
# What formats of dates mean, by the beginning that says the order of day and month.
_SPELLED = {
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y": "month/day/year",
    "%d.%m.%Y": "day.month.year",
    "%Y/%m/%d": "year/month/day",
}
# Fewer numbers that rise by one may do so by chance.
_ENOUGH_TO_COUNT = 10


def describe_target(stream: Stream, first: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what the target is taken as, and what speaks against it."""
    name, likelihood = stream.target, stream.likelihood_
    notes = [f"The target {name!r} is taken as {_MEANINGS[likelihood]}: --likelihood {likelihood}."]
    values = [record.get(name) for record in first]
    if likelihood == "classes":
        counts = count_labels(values)
        notes.append(f"Labels of the first rows: {list_few([f'{str(label)!r} ({n})' for label, n in counts], ', ')}.")
        for group in written_differently([label for label, _ in counts]):
            notes.append(f"These are different classes, although only their writing differs: {', '.join(group)}.")
    elif any(not is_missing(value) and to_number(value) is None for value in values):
        notes.append("Not all of its first values are numbers. If they are labels, pass --likelihood classes.")
    return notes


def describe_columns(stream: Stream, first: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what columns are taken as, and what their first values leave open."""
    columns = stream.columns_.columns
    names = {kind: [each.name for each in columns if each.kind == kind] for kind in KINDS}
    notes = []
    if names["date"] or names["category"]:
        parts = [f"dates: {', '.join(names['date'])}"] if names["date"] else []
        parts += [f"categories: {', '.join(names['category'])}"] if names["category"] else []
        notes.append(f"Columns are taken as {'; '.join(parts)}.")
    if names["text"]:
        notes.append(f"Not used, as most of their texts are different: {', '.join(names['text'])}.")
    for column in columns:
        present = [value for record in first if not is_missing(value := record.get(column.name))]
        if column.is_utc:
            notes.append(f"The dates {column.name!r} have different time zones: they are brought to UTC.")
        if column.kind == "date" and column.format != "iso":
            read, *others = [_SPELLED.get(each[:8], each) for each in date_formats(present, share=MOST)]
            notes.append(f"The dates {column.name!r} are read as {read}.")
            if others:
                notes[-1] += f" They could be {others[0]} as well: write them as year-month-day if that is meant."
        numbers = [column.read(value) for value in present] if column.kind == "number" else []
        if len(numbers) >= _ENOUGH_TO_COUNT and all(b == a + 1.0 for a, b in pairwise(numbers) if a is not None):
            how = "with --exclude" if column.name else "by naming the others with --features"
            notes.append(f"The column {column.name!r} counts the rows. Leave it out {how} unless it stands for time.")
    return notes
