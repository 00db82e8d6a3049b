"""`streamgp stream`: predict each row of a stream, then learn it."""

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console

from streamgp.cli.error_handling import list_few
from streamgp.cli.locks import locked
from streamgp.cli.pictures import check_output, save_figure
from streamgp.cli.stream.checkpoints import (
    Checkpoint,
    check_identity,
    check_is_replaceable,
    has_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from streamgp.cli.stream.notes import describe_columns, describe_target
from streamgp.cli.stream.options import StreamOptions
from streamgp.cli.stream.predictions import PredictionFile, check_unclaimed, claim
from streamgp.cli.stream.report import StreamReport
from streamgp.cli.stream.termination import Terminated, Termination
from streamgp.errors import FileFormatError, NumericalError, OptionError
from streamgp.streams.model import ClassPrediction
from streamgp.streams.score import label_loss
from streamgp.streams.stream import Stream
from streamgp.streams.targets import read_target
from streamgp.tables.lines import Lines, Position
from streamgp.tables.records import Record, open_reader

__all__ = ["run_stream"]

# Seconds to wait for another stream with the same checkpoint.
_PATIENCE = 1.0
# What shells report of a process that SIGTERM ended.
_EXIT_TERMINATED = 143


class _Row(NamedTuple):
    """A row that can be used: its line, its fields, its target, and why one that is there is taken as missing."""

    line: int
    fields: dict[str, Any]
    target: Any
    unread: str


class _Block(NamedTuple):
    """Rows that are predicted and then learned together, and bad ones between them."""

    rows: list[_Row]
    bad: list[tuple[Record, str]]
    position: Position


def run_stream(options: StreamOptions, *, console: Console | None = None) -> Checkpoint:
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
    with ExitStack() as stack:
        if options.checkpoint is not None:
            stack.enter_context(locked(options.checkpoint, patience=_PATIENCE))
        termination = Termination()
        stack.enter_context(termination.heeded())
        try:
            _check_start(options)  # once more, as another run may just have ended
            return _run_locked(options, termination, console=console)
        except Terminated:
            raise SystemExit(_EXIT_TERMINATED) from None


def _run_locked(options: StreamOptions, termination: Termination, *, console: Console | None) -> Checkpoint:
    with Lines(options.source, is_followed=options.is_followed) as lines:
        progress, records, notes = _begin(options, lines)
        records = termination.waiting_for(records)
        if options.checkpoint is not None and options.is_resumed is False:
            remove_checkpoint(options.checkpoint)  # before the predictions that belong to it are replaced
        with (
            PredictionFile(options.output_path, progress.num_bytes, progress.checksum) as predictions,
            StreamReport(
                console or Console(stderr=True), is_quiet=options.is_quiet, num_rows=progress.num_rows
            ) as report,
        ):
            claim(options.output_path, options.checkpoint)
            for note in notes:
                report.say(note)
            try:
                progress = _run(progress, records, options, predictions=predictions, report=report)
            except Terminated:
                kept = "" if options.checkpoint is None else f" Go on with --resume: {options.checkpoint} is written."
                report.say(f"Ended by SIGTERM.{kept}")
                raise
        if not progress.num_rows:
            raise FileFormatError(
                f"{lines.name} has no rows that could be learned, and {progress.num_skipped} bad ones."
            )
        if options.picture is not None and progress.stream.num_seen_:
            save_figure(progress.stream.plot_history(), options.picture)
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


def _begin(options: StreamOptions, lines: Lines) -> tuple[Checkpoint, Iterator[Record], list[str]]:
    """Begin, or go on from a checkpoint; returns all records that are still to be read, and sentences to say."""
    loaded = load_checkpoint(options.checkpoint) if options.checkpoint is not None and options.is_resumed else None
    reader = open_reader(lines, options.format)
    features = options.choose_features(tuple(reader.names))
    if loaded is not None:
        assert options.checkpoint is not None
        progress, damage = loaded
        saved = progress.identity
        likelihood = str(saved.get("likelihood")) if options.likelihood == "auto" else options.likelihood
        check_identity(saved, options.identity(likelihood, features), options.checkpoint)
        reader.skip_to(progress.position)
        going_on = f"Going on after row {progress.num_rows}, line {progress.position.num_lines}."
        return progress, reader.records(), [*([] if damage is None else [damage]), going_on]
    stream, records = options.stream(features), reader.records()
    first = list(itertools.islice(records, options.first_rows))
    known = {name for record in first if record.fields is not None for name in record.fields}
    others = sorted(known.difference(reader.names))
    notes = [f"Not used, as the first line has no such fields: {list_few(others, ', ')}."] if others else []
    readable = [record.fields for record in first if record.fields is not None]
    if readable:
        if options.likelihood == "auto" and all(
            read_target(each, options.target, is_label=True)[0] is None for each in readable
        ):
            raise OptionError(
                f"None of the first {len(first)} rows has a target {options.target!r}, so that nothing says what it "
                "is. Name it with --likelihood (gaussian for real numbers, classes for labels), or look at more rows "
                "with --first-rows."
            )
        names = (*features, options.target, *([] if options.total_count is None else [options.total_count]))
        stream.look_at([{name: fields.get(name) for name in names} for fields in readable])
        notes += describe_target(stream, readable) if options.likelihood == "auto" else []
        notes += describe_columns(stream, readable)
    identity = options.identity(stream.likelihood_ or options.likelihood, features)
    return Checkpoint(stream, identity), itertools.chain(first, records), notes


def _run(
    progress: Checkpoint,
    records: Iterator[Record],
    options: StreamOptions,
    *,
    predictions: PredictionFile,
    report: StreamReport,
) -> Checkpoint:
    saved = progress.num_rows, progress.num_skipped
    saved_rows = progress.num_rows
    try:
        for block in _blocks(progress, records, options):
            progress = _advance(progress, block, predictions, is_bad_skipped=options.is_bad_skipped)
            for row in block.rows:
                if row.unread:
                    report.say_unread(row.line, row.unread)
            report.show(progress)
            if options.checkpoint is not None and progress.num_rows - saved_rows >= options.checkpoint_every:
                predictions.sync(progress.num_bytes)
                save_checkpoint(options.checkpoint, progress)
                saved_rows, saved = progress.num_rows, (progress.num_rows, progress.num_skipped)
    finally:
        predictions.sync(progress.num_bytes)
        if options.checkpoint is not None and (progress.num_rows, progress.num_skipped) != saved:
            save_checkpoint(options.checkpoint, progress)
    return progress


def _blocks(progress: Checkpoint, records: Iterator[Record], options: StreamOptions) -> Iterator[_Block]:
    num_rows, limit = progress.num_rows, math.inf if options.limit is None else options.limit
    block = _Block([], [], progress.position)
    while num_rows < limit and (record := next(records, None)) is not None:
        if not record.is_ended and options.checkpoint is not None:
            break  # the source may grow: a later run that goes on from the checkpoint reads the whole line
        row = _read(record, progress.stream)
        if isinstance(row, _Row):
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


def _read(record: Record, stream: Stream) -> _Row | str:
    """Read a row, or say why it cannot be used."""
    if record.fields is None:
        return record.issue
    issue = stream.issues([record.fields])[0]
    if issue:
        return issue
    is_label = stream.likelihood_ == "classes"
    target, unread, _ = read_target(record.fields, stream.target, is_label=is_label)
    if is_label and target is not None:
        target = str(target).lower() if isinstance(target, bool) else str(target).strip()
    names = (*(stream.features or ()), *([] if stream.total_count is None else [stream.total_count]))
    fields = {name: record.fields.get(name) for name in names}
    return _Row(record.line, {**fields, stream.target: target}, target, unread)


def _advance(progress: Checkpoint, block: _Block, predictions: PredictionFile, *, is_bad_skipped: bool) -> Checkpoint:
    """Predict the rows of a block, and then learn them."""
    for record, issue in block.bad:
        progress = progress.skip(record.line, issue, record.position)
    rows, stream = block.rows, progress.stream
    if not rows:
        return progress
    num_rows = stream.num_rows_
    try:
        entries = _predict_and_learn(stream, rows)
    except NumericalError as error:
        if is_bad_skipped:
            for row in rows:
                progress = progress.skip(row.line, f"it cannot be learned ({error})", block.position)
            return replace(progress, position=block.position)
        raise NumericalError(
            f"The rows from line {rows[0].line} to {rows[-1].line} cannot be learned: {error}"
        ) from error
    numbers = [{"row": num_rows + index, "line": row.line} for index, row in enumerate(rows, 1)]
    num_bytes = predictions.write([{**number, **entry} for number, entry in zip(numbers, entries, strict=True)])
    return replace(
        progress,
        position=block.position,
        num_bytes=progress.num_bytes + num_bytes,
        checksum=predictions.checksum,
        num_unread=progress.num_unread + sum(bool(row.unread) for row in rows),
    )


def _predict_and_learn(stream: Stream, rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """Return what is written of each row, with what was said of it before it was learned."""
    fields, targets = [row.fields for row in rows], [row.target for row in rows]
    if not stream.num_seen_:
        stream.learn(fields)
        return [{"prediction": None, "target": target} for target in targets]
    num_seen = stream.num_seen_
    ticket = stream.expect(fields)
    said, entries = ticket.prediction, []
    if isinstance(said, ClassPrediction):
        for target, each in zip(targets, said.records(), strict=True):
            entry = {"prediction": each["label"], "probabilities": each["probabilities"], "target": target}
            if target is not None:
                entry["nlpd"] = label_loss(target, each["probabilities"], num_seen)
            entries.append(entry)
    else:
        y = np.array([math.nan if target is None else target for target in targets])
        nlpd = (-said.log_density(y)).tolist()
        for target, each, density in zip(targets, said.records(), nlpd, strict=True):
            entry = {"prediction": each["mean"], "std": each["std"], "quantiles": each["quantiles"], "target": target}
            entries.append(entry if target is None else {**entry, "nlpd": density})
    stream.learn(ticket, targets)
    return entries
