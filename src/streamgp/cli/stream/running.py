"""`streamgp stream`: predict each row of a stream, then learn it."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from rich.console import Console

from streamgp.cli.error_handling import list_few
from streamgp.cli.pictures import check_output
from streamgp.cli.reading.lines import Lines, Position
from streamgp.cli.reading.records import AbstractReader, Record, open_reader
from streamgp.cli.stream.checkpoints import (
    Progress,
    check_identity,
    check_is_replaceable,
    has_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from streamgp.cli.stream.drift import Drift
from streamgp.cli.stream.options import StreamOptions
from streamgp.cli.stream.picture import save_picture
from streamgp.cli.stream.predictions import PredictionFile, check_unclaimed, claim
from streamgp.cli.stream.report import StreamReport
from streamgp.cli.stream.rows import (
    Columns,
    Row,
    check_targets,
    choose_columns,
    choose_likelihood,
    count_labels,
    read_row,
    unread_targets,
    written_differently,
)
from streamgp.cli.stream.scoring import Scored, learn, score
from streamgp.errors import FileFormatError, NumericalError, OptionError
from streamgp.streaming import LearnInfo, StreamLearner
from streamgp.streaming.columns import KINDS, MOST, Preprocessing
from streamgp.streaming.fields import date_formats, is_missing
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.refitting import RefitReport
from streamgp.streaming.scoring import ClassScore, ValueScore

__all__ = ["run_stream"]

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


class _StreamPlan(NamedTuple):
    """What is known before the first row is read: where the stream stands, and what its fields are."""

    columns: Columns
    likelihood: str
    identity: Mapping[str, Any]
    records: Iterator[Record]
    progress: Progress
    notes: tuple[str, ...]


class _Block(NamedTuple):
    """Rows that are predicted and then learned together, and bad ones between them."""

    rows: list[Row]
    bad: list[tuple[Record, str]]
    position: Position


def run_stream(options: StreamOptions, *, console: Console | None = None) -> Progress:
    """Predict each row, then learn it; write predictions, checkpoints, a summary and a picture.

    However the run ends, the predictions and the checkpoint hold the same rows, and a later run can go on.

    Args:
        options: What to do.
        console: Where text goes; standard error if None.

    Returns:
        How far the stream came.
    """
    # The matrices are small, and sums of several threads would not be the same to the last bit.
    torch.set_num_threads(1)
    _check_start(options)
    with Lines(options.source) as lines:
        plan = _make_plan(options, lines)
        if options.checkpoint is not None and options.is_resumed is False:
            remove_checkpoint(options.checkpoint)  # before the predictions that belong to it are replaced
        with (
            PredictionFile(options.output_path, plan.progress.num_bytes, plan.progress.checksum) as predictions,
            StreamReport(
                console or Console(stderr=True), is_quiet=options.is_quiet, num_rows=plan.progress.num_rows
            ) as report,
        ):
            claim(options.output_path, options.checkpoint)
            for note in plan.notes:
                report.say(note)
            progress = _run(plan, options, predictions=predictions, report=report)
        if not progress.num_rows:
            raise FileFormatError(
                f"{lines.name} has no rows that could be learned, and {progress.num_skipped} bad ones."
            )
        if options.picture is not None:
            save_picture(progress, options.picture)
        written = {"Predictions": options.output_path, "Checkpoint": options.checkpoint, "Picture": options.picture}
        report.finish(progress, files={name: str(path) for name, path in written.items() if path is not None})
    return progress


def _check_start(options: StreamOptions) -> None:
    """Refuse to overwrite a checkpoint, or predictions of one, that may be wanted, before anything is read."""
    check_unclaimed(options.output_path, options.checkpoint)
    issue = None if options.picture is None else check_output(options.picture)
    if issue is not None:
        raise OptionError(f"--picture: {issue}")
    path = options.checkpoint
    if path is None:
        if options.is_resumed:
            raise OptionError("--resume needs a checkpoint to go on from. Name it with --checkpoint.")
        return
    if not options.is_resumed:
        check_is_replaceable(path)
    if options.is_resumed is None and has_checkpoint(path):
        raise OptionError(
            f"There is a checkpoint {path} of an earlier run. Pass --resume to go on from it, or --fresh to replace it "
            "and start again."
        )


def _make_plan(options: StreamOptions, lines: Lines) -> _StreamPlan:
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
    return _StreamPlan(columns, likelihood, identity, reader.records(), progress, tuple(notes))


def _first_plan(options: StreamOptions, reader: AbstractReader, columns: Columns) -> _StreamPlan:
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
    return _StreamPlan(columns, likelihood, identity, itertools.chain(first, records), progress, tuple(notes))


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


def _run(plan: _StreamPlan, options: StreamOptions, *, predictions: PredictionFile, report: StreamReport) -> Progress:
    progress = saved = plan.progress
    drift = None
    if options.drift_detector is not None:
        is_classes = plan.likelihood == "classes"
        drift = Drift(options.drift_detector, options.on_drift, progress.drift, is_classes=is_classes)
    try:
        for block in _blocks(plan, options):
            progress = _advance(progress, block, predictions, drift=drift, is_bad_skipped=options.is_bad_skipped)
            for row in block.rows:
                if row.unread:
                    report.say_unread(row.line, row.unread)
            report.show(progress)
            if options.checkpoint is not None and progress.num_rows - saved.num_rows >= options.checkpoint_every:
                predictions.sync(progress.num_bytes)
                save_checkpoint(options.checkpoint, progress, plan.identity)
                saved = progress
    finally:
        predictions.sync(progress.num_bytes)
        if options.checkpoint is not None and progress is not saved:
            save_checkpoint(options.checkpoint, progress, plan.identity)
    return progress


def _blocks(plan: _StreamPlan, options: StreamOptions) -> Iterator[_Block]:
    num_rows, limit = plan.progress.num_rows, math.inf if options.limit is None else options.limit
    block = _Block([], [], plan.progress.position)
    while num_rows < limit and (record := next(plan.records, None)) is not None:
        if not record.is_ended and options.checkpoint is not None:
            break  # the source may grow: a later run that goes on from the checkpoint reads the whole line
        row = read_row(record, plan.columns, plan.likelihood, plan.progress.preprocessing.columns)
        if isinstance(row, Row):
            block.rows.append(row)
            num_rows += 1
        elif options.is_bad_skipped:
            block.bad.append((record, row))
        else:
            raise FileFormatError(
                f"Line {record.line} of the stream cannot be used: {row}. Mend it, leave a column out with --exclude, "
                "or leave such rows out with --skip-bad."
            )
        block = block._replace(position=record.position)
        if len(block.rows) == options.block:
            yield block
            block = _Block([], [], record.position)
    if block.rows or block.bad:
        yield block


def _advance(
    progress: Progress,
    block: _Block,
    predictions: PredictionFile,
    *,
    drift: Drift | None = None,
    is_bad_skipped: bool = False,
) -> Progress:
    """Predict the rows of a block, and then learn them."""
    for record, issue in block.bad:
        progress = progress.skip(record.line, issue, record.position)
    rows = block.rows
    if not rows:
        return progress
    fields = [row.fields for row in rows]
    X = torch.from_numpy(progress.preprocessing.transform(fields))
    try:
        scored = score(progress.learner, rows, X, progress.score, num_rows=progress.num_rows)
        learned, info = _learned(progress, rows, X, scored=scored, drift=drift)
    except NumericalError as error:
        if is_bad_skipped:
            for row in rows:
                progress = progress.skip(row.line, f"it cannot be learned ({error})", row.position)
            return replace(progress, position=block.position)
        raise NumericalError(
            f"The rows from line {rows[0].line} to {rows[-1].line} cannot be learned: {error}"
        ) from error
    num_bytes = predictions.write(scored.entries)
    return replace(
        learned,
        score=scored.score,
        preprocessing=progress.preprocessing.learned(fields),
        position=block.position,
        num_rows=progress.num_rows + len(rows),
        num_unlabeled=progress.num_unlabeled + sum(row.target is None for row in rows),
        num_unread=progress.num_unread + sum(bool(row.unread) for row in rows),
        num_bytes=progress.num_bytes + num_bytes,
        checksum=predictions.checksum,
        num_refits=progress.num_refits + len(info.refits),
        num_undone=progress.num_undone + sum(not report.is_kept for report in info.refits),
    ).with_recent(scored.recent)


def _learned(
    progress: Progress, rows: Sequence[Row], X: torch.Tensor, *, scored: Scored, drift: Drift | None
) -> tuple[Progress, LearnInfo]:
    """Learn rows; where a detector finds that errors have grown, by a model that begins anew at that row."""
    learner, log, change = progress.learner, progress.drift, None
    refits: tuple[RefitReport, ...] = ()
    if drift is not None and learner.is_warm:
        log, change = drift.inspect(log, scored.errors)
    if change is not None and drift is not None:
        known = [index for index, row in enumerate(rows) if row.target is not None]
        start = known[change]
        learner, info = learn(learner, rows[:start], X[:start])
        learner, refits = learner.reset() if drift.action == "reset" else learner.rewarm(), info.refits
        rows, X = rows[start:], X[start:]
    learner, info = learn(learner, rows, X)
    return replace(progress, learner=learner, drift=log), info._replace(refits=(*refits, *info.refits))
