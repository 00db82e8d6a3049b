"""`streamgp stream`: predict each row of a stream, then learn it."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

import torch
from rich.console import Console

from streamgp.cli.locks import locked
from streamgp.cli.pictures import check_output
from streamgp.cli.stream.checkpoints import (
    Progress,
    check_is_replaceable,
    has_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from streamgp.cli.stream.drift import Drift
from streamgp.cli.stream.options import StreamOptions
from streamgp.cli.stream.picture import save_picture
from streamgp.cli.stream.planning import StreamPlan, make_plan
from streamgp.cli.stream.predictions import PredictionFile, check_unclaimed, claim
from streamgp.cli.stream.report import StreamReport
from streamgp.cli.stream.rows import (
    Row,
    read_row,
)
from streamgp.cli.stream.scoring import Scored, learn, score
from streamgp.cli.stream.termination import Terminated, Termination
from streamgp.errors import FileFormatError, NumericalError, OptionError
from streamgp.streaming import LearnInfo
from streamgp.streaming.refitting import RefitReport
from streamgp.tables.lines import Lines, Position
from streamgp.tables.records import Record

__all__ = ["run_stream"]

# Seconds to wait for another stream with the same checkpoint.
_PATIENCE = 1.0
# What shells report of a process that SIGTERM ended.
_EXIT_TERMINATED = 143


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


def _run_locked(options: StreamOptions, termination: Termination, *, console: Console | None) -> Progress:
    with Lines(options.source, is_followed=options.is_followed) as lines:
        plan = make_plan(options, lines)
        plan = plan._replace(records=termination.waiting_for(plan.records))
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
            try:
                progress = _run(plan, options, predictions=predictions, report=report)
            except Terminated:
                kept = "" if options.checkpoint is None else f" Go on with --resume: {options.checkpoint} is written."
                report.say(f"Ended by SIGTERM.{kept}")
                raise
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


def _run(plan: StreamPlan, options: StreamOptions, *, predictions: PredictionFile, report: StreamReport) -> Progress:
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


def _blocks(plan: StreamPlan, options: StreamOptions) -> Iterator[_Block]:
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
