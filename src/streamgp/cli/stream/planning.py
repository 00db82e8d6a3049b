"""What is known of a stream before its first row is read: what columns mean, and where it goes on."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from streamgp.cli.error_handling import list_few
from streamgp.cli.stream.checkpoints import (
    Progress,
    check_identity,
    load_checkpoint,
)
from streamgp.cli.stream.options import StreamOptions
from streamgp.cli.stream.rows import (
    Columns,
    check_targets,
    choose_columns,
    choose_likelihood,
    count_labels,
    unread_targets,
    written_differently,
)
from streamgp.errors import OptionError
from streamgp.streaming import StreamLearner
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.tables.columns import KINDS, MOST, Preprocessing
from streamgp.tables.lines import Lines
from streamgp.tables.records import AbstractReader, Record, open_reader
from streamgp.tables.values import date_formats, is_missing

__all__ = ["StreamPlan", "make_plan"]

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


class StreamPlan(NamedTuple):
    """Where the stream stands, and what its fields are.

    Attributes:
        columns: Which are features, and which is the target.
        likelihood: Of the targets.
        identity: What a checkpoint must agree with.
        records: All that are still to be read.
        progress: What was learned before.
        notes: Sentences for who started the command.
    """

    columns: Columns
    likelihood: str
    identity: Mapping[str, Any]
    records: Iterator[Record]
    progress: Progress
    notes: tuple[str, ...]


def make_plan(options: StreamOptions, lines: Lines) -> StreamPlan:
    """Read what columns there are, and begin or go on from a checkpoint.

    Args:
        options: Of the command.
        lines: Of the source, from its beginning.
    """
    loaded = load_checkpoint(options.checkpoint) if options.checkpoint is not None and options.is_resumed else None
    reader = open_reader(lines, options.format)
    columns = choose_columns(
        reader.names,
        options.target,
        options.features,
        exclude=options.exclude,
        kinds=options.kinds,
        total_count=options.total_count,
    )
    if loaded is None:
        return _first_plan(options, reader, columns)
    assert options.checkpoint is not None
    progress, saved, damage = loaded
    likelihood = str(saved.get("likelihood")) if options.likelihood == "auto" else options.likelihood
    identity = options.identity(likelihood, columns.features)
    check_identity(saved, identity, options.checkpoint)
    reader.skip_to(progress.position)
    notes = [] if damage is None else [damage]
    notes.append(f"Going on after row {progress.num_rows}, line {progress.position.num_lines}.")
    return StreamPlan(columns, likelihood, identity, reader.records(), progress, tuple(notes))


def _first_plan(options: StreamOptions, reader: AbstractReader, columns: Columns) -> StreamPlan:
    """Start at the first row; look at the first rows for what columns and target are, if nobody says it."""
    records = reader.records()
    first = list(itertools.islice(records, options.first_rows))
    likelihood, notes = options.likelihood, _unnamed(first, reader.names)
    if likelihood == "auto":
        likelihood = choose_likelihood(first, columns)
        notes += _target_notes(likelihood, first, columns)
    if likelihood != "classes":
        check_targets(first, columns)
    preprocessing = _preprocessing(options, columns, first)
    notes += _notes(preprocessing) + _doubts(preprocessing, first)
    settings = options.settings(likelihood)
    is_classes = likelihood == "classes"
    progress = Progress(
        learner=OneVsRest(settings) if is_classes else StreamLearner(settings),
        score=ClassScore() if is_classes else ValueScore(),
        preprocessing=preprocessing,
    )
    identity = options.identity(likelihood, columns.features)
    return StreamPlan(columns, likelihood, identity, itertools.chain(first, records), progress, tuple(notes))


def _unnamed(first: Sequence[Record], names: Sequence[str]) -> list[str]:
    """Which fields of the first records are not used, as the very first does not name them."""
    known = {name for record in first if record.fields is not None for name in record.fields}
    others = sorted(known.difference(names))
    return [f"Not used, as the first line has no such fields: {list_few(others, ', ')}."] if others else []


def _target_notes(likelihood: str, first: Sequence[Record], columns: Columns) -> list[str]:
    """What the target is taken as, and what speaks against it."""
    notes = [f"The target {columns.target!r} is taken as {_MEANINGS[likelihood]}: --likelihood {likelihood}."]
    if likelihood == "classes":
        counts = count_labels(first, columns)
        notes.append(f"Labels of the first rows: {list_few([f'{label!r} ({n})' for label, n in counts], ', ')}.")
        for group in written_differently([label for label, _ in counts]):
            notes.append(f"These are different classes, although only their writing differs: {', '.join(group)}.")
    elif unread_targets(first, columns):
        notes.append("Not all of its first values are numbers. If they are labels, pass --likelihood classes.")
    return notes


def _preprocessing(options: StreamOptions, columns: Columns, first: Sequence[Record]) -> Preprocessing:
    """What the features are, from the first records that can be read."""
    readable = [record.fields for record in first if record.fields is not None]
    if not readable:
        return Preprocessing(())
    given = [{name: fields.get(name) for name in columns.features} for fields in readable]
    preprocessing = Preprocessing.from_records(given, kinds=options.kinds)
    if not preprocessing.outputs:
        raise OptionError(
            f"There are no features: the columns {list(columns.features)} hold texts of which most are different. Name "
            "those that are categories with --categories."
        )
    return preprocessing


def _notes(preprocessing: Preprocessing) -> list[str]:
    """What columns are taken as, but for numbers."""
    names = {kind: [each.name for each in preprocessing.columns if each.kind == kind] for kind in KINDS}
    notes = []
    if names["date"] or names["category"]:
        parts = [f"dates: {', '.join(names['date'])}"] if names["date"] else []
        parts += [f"categories: {', '.join(names['category'])}"] if names["category"] else []
        notes.append(f"Columns are taken as {'; '.join(parts)}.")
    if names["text"]:
        notes.append(f"Not used, as most of their texts are different: {', '.join(names['text'])}.")
    return notes


def _doubts(preprocessing: Preprocessing, first: Sequence[Record]) -> list[str]:
    """What first values leave open of dates, and which numbers may only count the rows."""
    notes = []
    for column in preprocessing.columns:
        values = [record.fields.get(column.name) for record in first if record.fields is not None]
        present = [value for value in values if not is_missing(value)]
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
