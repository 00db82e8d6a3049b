"""Experiments in a file: read, changed and written by one person at a time, whoever has the page open."""

import hashlib
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, final

import torch
from matplotlib.figure import Figure

from streamgp.cli.locks import locked
from streamgp.cli.optimize.notebook import open_notebook
from streamgp.cli.optimize.optimizing import cell, draw_study, rounded
from streamgp.cli.outputs import remove_unfinished, write_together
from streamgp.errors import StreamGPError
from streamgp.loops import AbstractLoop, LoopSettings, ParameterSpace, PoolSpace
from streamgp.loops.observations import read_observations
from streamgp.loops.state import LoopState
from streamgp.loops.tables import FAILED, read_outcome
from streamgp.optimizers import Optimizer
from streamgp.pools import Learner
from streamgp.storage import load
from streamgp.storage.writing import write_atomically

__all__ = ["NEW", "AbstractNotebook", "ConflictError", "Entry", "FormError", "LoopNotebook", "Reading", "StudyNotebook"]

# Seconds to wait for a command that is at work on the same file.
_PATIENCE = 60.0
# Changes that can be undone.
_MOST_UNDONE = 50
# The field of the number of tests, beside that of the positive ones.
_TESTED = "tested"

# Key of the row of the form for an experiment that was not suggested.
NEW = "new"

Loop = Optimizer | Learner
Issues = dict[tuple[str, str], str]


class ConflictError(StreamGPError):
    """Somebody else has changed the file since the page was shown."""


class FormError(StreamGPError):
    """Fields of a form cannot be used.

    Attributes:
        issues: Sentences by row and field; the field is empty for the row as a whole.
    """

    def __init__(self, issues: Mapping[tuple[str, str], str]) -> None:
        """Keep the sentences."""
        super().__init__("Nothing was saved: look at the marked fields.")
        self.issues = issues


class Entry(NamedTuple):
    """A row of the form as it was typed.

    Attributes:
        key: Of the suggestion, or `NEW` for another experiment.
        cells: Texts of what was set, by column.
        outcomes: Texts of what came of it, by field.
        has_failed: Whether the experiment failed.
    """

    key: str
    cells: Mapping[str, str]
    outcomes: Mapping[str, str]
    has_failed: bool = False

    @property
    def is_blank(self) -> bool:
        """Tell whether nothing is said."""
        is_set = self.key == NEW and any(text.strip() for text in self.cells.values())
        return not (self.has_failed or is_set or any(text.strip() for text in self.outcomes.values()))


class Suggestion(NamedTuple):
    """A pending point.

    Attributes:
        key: By which a form names it.
        point: As the loop shows it.
        cells: Texts of its columns.
        facts: More to know of it, such as where a place is.
        why: Why it was suggested, where that is known.
    """

    key: str
    point: Any
    cells: tuple[str, ...]
    facts: tuple[str, ...]
    why: str


@final
@dataclass(frozen=True, eq=False)
class Reading:
    """Contents of a file at some time.

    Attributes:
        loop: What is known.
        version: Of the file.
        notes: What a user should know of how it was read.
    """

    loop: Loop
    version: str
    notes: tuple[str, ...] = ()

    @property
    def settings(self) -> LoopSettings:
        """Return the settings of the loop."""
        settings: LoopSettings = self.loop.to_parts()["settings"]
        return settings

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of what is set."""
        return self.settings.space.column_names

    @property
    def fact_names(self) -> tuple[str, ...]:
        """Return the names of what more is known of a suggestion."""
        space = self.settings.space
        if not isinstance(space, PoolSpace):
            return ()
        return space.inputs_called or tuple(f"input {i + 1}" for i in range(space.num_dims))

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of outcomes, with what they hold at first."""
        likelihood = self.settings.outcomes[0].likelihood
        counts = likelihood.row_values
        if isinstance(self.settings.space, PoolSpace) and likelihood.needs_row_data and counts is not None:
            return {"positive": "", _TESTED: f"{float(counts):g}" if counts.numel() == 1 else ""}
        return dict.fromkeys(self.settings.names, "")

    def check(self, point: Any, outcome: Sequence[float], total_count: float | None) -> None:
        """Refuse an experiment that cannot be told."""
        settings = self.settings
        read_observations(
            settings.space,
            settings.outcomes,
            settings.labels,
            [point],
            [outcome],
            names=settings.names,
            total_count=total_count,
            noise_variance=None,
        )

    @property
    def suggestions(self) -> list[Suggestion]:
        """Return the pending points."""
        state: LoopState = self.loop.to_parts()["state"]
        space, found = self.settings.space, []
        seen: list[tuple[str, ...]] = []
        for tensor, point in zip(state.pending, _listed(self.loop.pending), strict=True):
            shown = rounded(point, space) if isinstance(space, ParameterSpace) else point
            values = shown.values() if isinstance(shown, Mapping) else shown if isinstance(shown, list) else [shown]
            cells = tuple(map(cell, values))
            facts = (
                tuple(f"{x:.6g}" for x in space.members[int(tensor)].tolist()) if isinstance(space, PoolSpace) else ()
            )
            key = hashlib.sha256(repr((cells, seen.count(cells))).encode()).hexdigest()[:16]
            found.append(Suggestion(key, point, cells, facts, _why(state, tensor)))
            seen.append(cells)
        return found


class AbstractNotebook(ABC):
    """A file of experiments, which the command line and Python read and write as well.

    Each change is made to what the file holds at that moment, under its lock, and only if nobody has changed it since
    the page was shown. The file as it was before is kept, so that a change can be undone.

    Attributes:
        path: The file that all is kept in.
        title: What is served.
    """

    path: Path
    title: str

    def __init__(self) -> None:
        self._reading: Reading | None = None
        self._lock = threading.RLock()

    @contextmanager
    @abstractmethod
    def _opened(self) -> Iterator[tuple[Loop, tuple[str, ...]]]:
        """Read the file, and keep others from changing it until the end."""

    @abstractmethod
    def _draw(self, loop: Loop) -> Figure:
        """Draw what is known."""

    @property
    def version(self) -> str:
        """Return what changes whenever the files do."""
        return hashlib.sha256(_bytes(self.path)).hexdigest()[:16]

    @property
    def can_undo(self) -> bool:
        """Tell whether the last change was made here."""
        return self._before(self.version).exists()

    def read(self) -> Reading:
        """Read the file, or return what it held at the last time if it is the same."""
        with self._lock:
            if self._reading is None or self._reading.version != self.version:
                with self._opened() as (loop, notes):
                    self._reading = Reading(loop, self.version, notes)
            return self._reading

    def draw(self) -> Figure:
        """Draw what is known; nobody waits for that who writes."""
        return self._draw(self.read().loop)

    def ask(self, version: str, number: int, fixed: Mapping[str, str]) -> None:
        """Suggest more experiments."""

        def change(reading: Reading) -> None:
            reading.loop.ask(number, fixed=dict(fixed) or None)

        self._change(version, change)

    def tell(self, version: str, entries: Sequence[Entry]) -> int:
        """Learn what came of experiments; nothing is learned if any of them cannot be used.

        Suggestions that are still open may be told whatever others did meanwhile.

        Returns:
            Number of experiments learned.
        """
        told = [entry for entry in entries if not entry.is_blank]

        def change(reading: Reading) -> None:
            _tell(reading, told)

        if told:
            self._change(version if any(entry.key == NEW for entry in told) else None, change)
        return len(told)

    def cancel(self, version: str, key: str) -> None:
        """Forget a suggestion that will not be tried."""

        def change(reading: Reading) -> None:
            found = [one for one in reading.suggestions if one.key == key]
            if not found:
                raise ConflictError("This suggestion is not there any more.")
            reading.loop.cancel([found[0].point] if isinstance(found[0].point, Mapping | list) else found[0].point)

        self._change(version, change)

    def take_table(self, version: str, content: bytes) -> int:
        """Learn a table, as `streamgp optimize tell` does; rows that were told before are left out.

        Returns:
            Number of experiments learned.
        """
        before = after = 0

        def change(reading: Reading) -> None:
            nonlocal before, after
            before = len(reading.loop.y)
            with tempfile.TemporaryDirectory() as directory:
                table = Path(directory) / "table.csv"
                table.write_bytes(content)
                self._read_table(reading.loop, table)
            after = len(reading.loop.y)

        self._change(version, change)
        return after - before

    def undo(self, version: str) -> None:
        """Put the file back as it was before the last change that was made here."""
        with self._lock, self._opened():
            self._check(version)
            before = self._before(self.version)
            if not before.exists():
                raise ConflictError("There is nothing to undo: the last change was not made on this page.")
            content = before.read_bytes()
            if content:
                _write(self.path, content)
            else:
                self.path.unlink(missing_ok=True)
            before.unlink()

    def _read_table(self, loop: Loop, table: Path) -> None:
        loop.tell_csv(table)

    def _change(self, version: str | None, change: Callable[[Reading], None]) -> None:
        """Change a copy of what is known, and write it.

        Args:
            version: What the file must be; None for whatever it is.
            change: Changes the copy in place.
        """
        with self._lock, self._opened() as (loop, notes):
            if version is not None:
                self._check(version)
            known = self._reading
            if known is not None and known.version == self.version:
                loop, notes = known.loop, known.notes  # whose model is fitted already
            copy = type(loop).from_parts(**loop.to_parts())
            change(Reading(copy, self.version, notes))
            before = _bytes(self.path)
            write_together({self.path: copy.save})
            self._keep(before)
            self._reading = Reading(copy, self.version)

    def _check(self, version: str) -> None:
        if version != self.version:
            raise ConflictError(
                "Somebody has changed the experiments meanwhile. Look at what is there now, and try again."
            )

    def _before(self, version: str) -> Path:
        """Return where the file is kept that a version was made from."""
        return self.path.with_name(f".{self.path.name}.undo") / version

    def _keep(self, content: bytes) -> None:
        before = self._before(self.version)
        before.parent.mkdir(exist_ok=True)
        _write(before, content)
        kept = sorted((one for one in before.parent.iterdir() if one.is_file()), key=lambda one: one.stat().st_mtime_ns)
        for old in kept[:-_MOST_UNDONE]:
            old.unlink(missing_ok=True)


@final
class StudyNotebook(AbstractNotebook):
    """The TOML file of a study, and what `streamgp optimize` keeps beside it."""

    def __init__(self, study: Path) -> None:
        """Read a study; nothing is written yet."""
        super().__init__()
        self.title = study.stem
        self._study = study
        with open_notebook(study, None) as notebook:
            self.path = notebook.state

    @property
    def version(self) -> str:
        return hashlib.sha256(_bytes(self._study) + _bytes(self.path)).hexdigest()[:16]

    @contextmanager
    def _opened(self) -> Iterator[tuple[Loop, tuple[str, ...]]]:
        with open_notebook(self._study, None) as notebook:
            yield notebook.optimizer, notebook.notes

    def _draw(self, loop: Loop) -> Figure:
        assert isinstance(loop, Optimizer)
        return draw_study(loop)

    def _read_table(self, loop: Loop, table: Path) -> None:
        loop.tell_csv(table, skip_known=True)


@final
class LoopNotebook(AbstractNotebook):
    """A survey or an optimizer that was saved."""

    def __init__(self, path: Path) -> None:
        """Remember the file."""
        super().__init__()
        self.title, self.path = path.stem, path

    @contextmanager
    def _opened(self) -> Iterator[tuple[Loop, tuple[str, ...]]]:
        with locked(self.path, patience=_PATIENCE):
            remove_unfinished(self.path)
            loop = load(self.path, kind=AbstractLoop)
            assert isinstance(loop, Optimizer | Learner)
            yield loop, ()

    def _draw(self, loop: Loop) -> Figure:
        if isinstance(loop, Optimizer):
            return draw_study(loop)
        figure, space = Figure(layout="constrained"), loop.to_parts()["settings"].space
        if not isinstance(space, PoolSpace) or space.num_dims < 2:
            loop.plot_progress(figure.subplots())
            return figure
        num_panels = 2 if loop.predict().exceedance is None else 3
        figure.set_size_inches(4.5 * num_panels, 4.0)
        loop.plot_map(axes=figure.subplots(1, num_panels, sharex=True, sharey=True))
        return figure


def _tell(reading: Reading, entries: Sequence[Entry]) -> None:
    """Learn rows of a form, all or none."""
    suggestions = {one.key: one for one in reading.suggestions}
    issues: Issues = {}
    points, rows, counts = [], [], []
    for entry in entries:
        if entry.key != NEW and entry.key not in suggestions:
            issues[entry.key, ""] = "This suggestion was told or left out by somebody else meanwhile."
            continue
        point = _read_point(reading, entry, suggestions, issues)
        outcome, count = _read_outcomes(reading, entry, issues)
        points.append(point)
        rows.append(outcome)
        counts.append(count)
        if not any(key == entry.key for key, _ in issues):
            try:
                reading.check(point, outcome, count)
            except StreamGPError as error:
                issues[entry.key, ""] = str(error)
    if issues:
        raise FormError(issues)
    totals = None if None in counts else torch.tensor(counts, dtype=torch.float64)
    reading.loop.tell(points, torch.tensor(rows, dtype=torch.float64), total_count=totals)
    told = [suggestions[entry.key] for entry in entries if entry.key != NEW]
    left = {one.key for one in reading.suggestions}
    for one in told:  # something else was tried instead
        if one.key in left:
            reading.loop.cancel([one.point] if isinstance(one.point, Mapping | list) else one.point)


def _read_point(reading: Reading, entry: Entry, suggestions: Mapping[str, Suggestion], issues: Issues) -> Any:
    space = reading.settings.space
    if isinstance(space, PoolSpace) and entry.key != NEW:
        return suggestions[entry.key].point
    texts = [entry.cells.get(name, "").strip() for name in reading.columns]
    if isinstance(space, ParameterSpace):
        for name, text in zip(reading.columns, texts, strict=True):
            try:
                space.parameters[name].encode(text, name)
            except StreamGPError as error:
                issues[entry.key, name] = str(error) if text else "Say what was set."
        if any(key == entry.key for key, _ in issues):
            return None
    try:
        (point,) = _listed(space.parse([texts]))
        space.read([point])
    except (StreamGPError, ValueError) as error:
        issues[entry.key, reading.columns[0] if len(texts) == 1 else ""] = str(error)
        return None
    return point


def _read_outcomes(reading: Reading, entry: Entry, issues: Issues) -> tuple[list[float], float | None]:
    """Read the outcomes of a row, NaN if it failed, and the number of tests if there is one."""
    names = list(reading.fields)
    texts = [entry.outcomes.get(name, "").strip() for name in names]
    num_outcomes = len(reading.settings.outcomes)
    if entry.has_failed or FAILED in (text.lower() for text in texts):
        return [torch.nan] * num_outcomes, None
    values = []
    for name, text in zip(names, texts, strict=True):
        value = read_outcome({name: text}, name) if text else f"Fill it in, or write {FAILED}"
        if isinstance(value, str):
            issues[entry.key, name] = f"{value}."
        else:
            values.append(value)
    return values[:num_outcomes], values[-1] if _TESTED in names and len(values) == len(names) else None


def _listed(points: Any) -> list[Any]:
    return points.tolist() if isinstance(points, torch.Tensor) else list(points)


def _why(state: LoopState, point: torch.Tensor) -> str:
    """Say why a point was suggested, if it is one of the last suggestion."""
    if state.asked is not None:
        for asked, why in zip(state.asked, state.why, strict=False):
            if torch.equal(asked, point):
                return why
    return ""


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _write(path: Path, content: bytes) -> None:
    def write(file: BinaryIO) -> None:
        file.write(content)

    write_atomically(path, write)
