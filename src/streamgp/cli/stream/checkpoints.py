"""Checkpoints of `streamgp stream`: all that a later run needs to go on as if there had been no end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from streamgp.cli.stream.drift import DriftLog
from streamgp.cli.stream.scoring import Learner, Recent, Score
from streamgp.errors import FileFormatError, OptionError, ValueRangeError
from streamgp.storage import load, register, save
from streamgp.streaming.metrics import StreamMetrics
from streamgp.streaming.one_vs_rest import OneVsRest
from streamgp.streaming.prediction import StreamPrediction
from streamgp.streaming.report import ScoreReport
from streamgp.streams.preprocessing import to_records, warn_of_renamed
from streamgp.tables.columns import Preprocessing
from streamgp.tables.lines import Position
from streamgp.tables.values import read_number

__all__ = [
    "Progress",
    "check_identity",
    "check_is_replaceable",
    "has_checkpoint",
    "load_checkpoint",
    "remove_checkpoint",
    "save_checkpoint",
]

_START, _NOTHING = Position(), DriftLog()
# Bad rows that are remembered one by one.
_MOST_SKIPPED = 20
# Predictions that a picture shows.
_MOST_RECENT = 300
# First bytes of an archive; a file that was cut short may have less.
_ARCHIVE = b"PK"


register(Position, name="cli.Position")
register(Recent)
register(DriftLog)


@register
@final
@dataclass(frozen=True, eq=False)
class Progress:
    """How far a stream is; a frozen value.

    Attributes:
        learner: What is known.
        score: How good predictions were.
        preprocessing: What the columns of features are.
        position: How far the source has been read.
        num_rows: Rows that were predicted.
        num_unlabeled: Those of them without a target, which were not learned.
        num_unread: Those of these whose target is there, but is not a number.
        num_bytes: Length of the predictions until then.
        checksum: Of these.
        num_skipped: Bad rows that were left out.
        skipped: Line and issue of the first of them.
        num_refits: How often hyperparameters were learned after the warm-up.
        num_undone: How often that was undone.
        drift: What a detector of changes has seen.
        recent: The latest predictions.
    """

    learner: Learner
    score: Score
    preprocessing: Preprocessing
    position: Position = _START
    num_rows: int = 0
    num_unlabeled: int = 0
    num_bytes: int = 0
    checksum: int = 0
    num_skipped: int = 0
    skipped: tuple[tuple[int, str], ...] = ()
    num_refits: int = 0
    num_undone: int = 0
    num_unread: int = 0
    drift: DriftLog = _NOTHING
    recent: tuple[Recent, ...] = ()

    @property
    def metrics(self) -> StreamMetrics:
        """Sums over rows that were predicted."""
        return self.score.metrics

    def with_recent(self, predictions: Sequence[Recent]) -> "Progress":
        """Remember predictions, the latest ones only."""
        return replace(self, recent=(*self.recent, *predictions)[-_MOST_RECENT:])

    def skip(self, line: int, issue: str, position: Position) -> "Progress":
        """Leave out a bad row."""
        skipped = (*self.skipped, (line, issue))[:_MOST_SKIPPED]
        return replace(self, position=position, num_skipped=self.num_skipped + 1, skipped=skipped)


@register
@final
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What a checkpoint's file holds.

    `streamgp.load(path)` reads it, and `predict` takes rows of the same table.

    Attributes:
        identity: What must be the same in the run that goes on.
        progress: How far the stream was.
    """

    identity: Mapping[str, Any]
    progress: Progress

    def score_report(self) -> ScoreReport:
        """How good the stream was predicted, each row before it was learned."""
        return ScoreReport(self.progress.score)

    def predict(self, rows: Any, *, total_count: Sequence[float] | None = None) -> Any:
        """Predict rows of the table that the stream was read from.

        Args:
            rows: A list of mappings with fields by name, or a DataFrame; what is absent is missing.
            total_count: Numbers of trials, for binomial targets; by default those in the rows.

        Returns:
            A `StreamPrediction` for numbers; for classes, the probabilities of each row by label.

        Raises:
            ValueRangeError: If a value cannot be used, as in a bad row of the stream.
            OptionError: If the rows have none of the columns.
        """
        records = to_records(rows)
        self._check_rows(records)
        X = torch.from_numpy(self.progress.preprocessing.transform(records))
        if total_count is None:
            total_count = self._total_count(records)
        learner = self.progress.learner
        if isinstance(learner, OneVsRest):
            return [dict(zip(learner.classes, each, strict=True)) for each in learner.predict(X).tolist()]
        counts = None if total_count is None else torch.as_tensor(np.asarray(total_count, dtype=np.float64))
        prediction: StreamPrediction = learner.predict(X, counts)
        return prediction

    def _check_rows(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Refuse rows of another table, and values that cannot be used."""
        names = {name for record in records for name in record}
        features = [column.name for column in self.progress.preprocessing.columns if column.kind != "text"]
        absent = [name for name in features if name not in names]
        if names and len(absent) == len(features):
            raise OptionError(
                f"The rows have none of the columns {features} that the stream was predicted from, but "
                f"{sorted(map(str, names))}. Pass mappings with those names, or a DataFrame."
            )
        known = (*self.identity["features"], self.identity["target"], self.identity["total-count"])
        others = sorted(str(name) for name in names if name not in known)
        warn_of_renamed(absent, others, stacklevel=4)
        for row, issue in self.progress.preprocessing.issues(records)[:1]:
            raise ValueRangeError(
                f"Row {row}, counted from 0, cannot be used: {issue}. Mend it, or pass None where nothing is known."
            )

    def _total_count(self, records: Sequence[Mapping[str, Any]]) -> list[float] | None:
        name = self.identity["total-count"]
        if name is None or not any(name in record for record in records):
            return None
        counts = [read_number(record, name, "total count") for record in records]
        for row, count in enumerate(counts):
            if isinstance(count, str):
                raise ValueRangeError(f"Row {row}, counted from 0, cannot be used: {count}.")
        return [float(count) for count in counts]


def save_checkpoint(path: Path, progress: Progress, identity: Mapping[str, Any]) -> None:
    """Write a checkpoint; the one before it is kept beside it, as `PATH.previous`.

    Args:
        path: The file.
        progress: What to keep.
        identity: What must be the same in the run that goes on.
    """
    checkpoint = Checkpoint({name: _plain(value) for name, value in identity.items()}, progress)
    if path.exists():
        path.replace(_previous(path))
    save(checkpoint, path)


def load_checkpoint(path: Path) -> tuple[Progress, dict[str, Any], str | None] | None:
    """Read the last checkpoint that is whole.

    A damaged one is moved aside, so that it does not become the previous one.

    Returns:
        How far the stream was, the identity of the run, and a sentence about damage if there was any; None if there is
        no checkpoint.

    Raises:
        FileFormatError: If there are checkpoints, but none is whole.
    """
    if not has_checkpoint(path):
        return None
    try:
        return *_read(path), None
    except FileFormatError as error:
        damage = str(error)
    previous = _previous(path)
    if not previous.exists():
        raise FileFormatError(f"{damage} There is no earlier one; start again with --fresh.")
    try:
        progress, identity = _read(previous)
    except FileFormatError as error:
        raise FileFormatError(f"{damage} The one before it: {error} Start again with --fresh.") from error
    if not path.exists():
        return progress, identity, None
    aside = path.with_name(f"{path.name}.damaged")
    path.replace(aside)
    return progress, identity, f"{damage} It was moved to {aside}, and the one before it is used."


def has_checkpoint(path: Path) -> bool:
    """Whether there is a checkpoint, damaged or not."""
    return path.exists() or _previous(path).exists()


def check_is_replaceable(path: Path) -> None:
    """Refuse a file that never was a checkpoint, damaged or not, before it is replaced as one."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        beginning = file.read(len(_ARCHIVE))
    if not _ARCHIVE.startswith(beginning):
        raise OptionError(
            f"{path} is not a checkpoint, and would be replaced by one. Name another --checkpoint, or remove the file."
        )


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, and the one before it."""
    _previous(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def check_identity(saved: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    """Refuse the checkpoint of another stream or of other options."""
    for name, value in asked.items():
        if saved.get(name) != value:
            raise OptionError(
                f"The checkpoint {path} was written with {name} = {saved.get(name)!r}, but now it is {value!r}. Pass "
                "the options of that run, or another --checkpoint, or start again with --fresh."
            )


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.name}.previous")


def _read(path: Path) -> tuple[Progress, dict[str, Any]]:
    checkpoint = load(path, kind=Checkpoint)
    return checkpoint.progress, dict(checkpoint.identity)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
