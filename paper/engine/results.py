"""Files of results: one for each study and scale, one line for each unit that has run."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from filelock import FileLock

from paper.schema.record import Records, UnitRecord
from paper.schema.record_lines import as_json, read_line, write_line
from paper.schema.unit import Unit
from streamgp.errors import FileFormatError

__all__ = ["Issue", "append_record", "load_records", "results_file"]

_Lines = list[tuple[int, UnitRecord]]


@final
@dataclass(frozen=True)
class Issue:
    """Something in a file of results that could not be used.

    Attributes:
        file: The file.
        line: Number of the line, from 1; 0 for the whole file.
        sentence: What is wrong with it, and what to do.
    """

    file: Path
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.sentence}" if self.line else f"{self.file}: {self.sentence}"


def results_file(study: str, scale: str, directory: Path) -> Path:
    """Where the results of a study are."""
    return directory / scale / f"{study}.jsonl"


def append_record(record: UnitRecord, directory: Path) -> None:
    """Write a record to the end of its file, and bring it to the disk; one process at a time.

    A line that a killed run left unfinished stays as it is: the record starts on a line of its own.

    Raises:
        ValueRangeError: If the record holds what JSON does not know; nothing is written.
    """
    content = write_line(record).encode()
    path = results_file(record.study, record.scale, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.parent / ".locks" / f"{path.name}.lock"
    lock.parent.mkdir(exist_ok=True)
    with FileLock(lock), path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            content = content if file.read(1) == b"\n" else b"\n" + content
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def load_records(
    study: str, scale: str, directory: Path, *, settings: Mapping[str, Any] | None = None
) -> tuple[Records, tuple[Issue, ...]]:
    """Read the results of a study.

    A unit counts once: of several lines about it with the same settings, the last one does.

    Args:
        study: Name of the study.
        scale: `"quick"`, `"full"`, or the name of the user's own settings.
        directory: Where files of results are.
        settings: The settings of that scale as they are now: records made with others are left out. If None, the
            settings of the last line.

    Returns:
        What could be read, and what could not. A file that does not exist holds no results.
    """
    path = results_file(study, scale, directory)
    if not path.exists():
        return Records(()), ()
    lines, issues = _read(path, study, scale)
    if not lines:
        return Records(()), issues
    wanted = lines[-1][1].settings if settings is None else as_json(settings)
    current = [(line, record) for line, record in lines if record.settings == wanted]
    others = [(line, record) for line, record in lines if record.settings != wanted]
    last = {Unit.of(record): line for line, record in current}
    found = [
        *issues,
        *_issues_of_repeated(path, current, last),
        *_issues_of_others(path, [each for each in others if Unit.of(each[1]) not in last], wanted),
    ]
    kept = tuple(record for line, record in current if last[Unit.of(record)] == line)
    return Records(kept), tuple(sorted(found, key=lambda issue: issue.line))


def _read(path: Path, study: str, scale: str) -> tuple[_Lines, tuple[Issue, ...]]:
    """The records of a file with their lines, whatever their settings, and issues."""
    try:
        content = path.read_bytes()
    except OSError as error:
        return [], (Issue(path, 0, f"The file cannot be read ({error.strerror})."),)
    lines: _Lines = []
    issues = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = read_line(line)
        except FileFormatError as error:
            issues.append(Issue(path, number, f"The line was left out: {error}."))
            continue
        if (record.study, record.scale) == (study, scale):
            lines.append((number, record))
        else:
            issues.append(
                Issue(
                    path,
                    number,
                    f"The line was left out: it is of the study {record.study!r} at scale {record.scale!r}. Move it "
                    f"into {results_file(record.study, record.scale, Path())}.",
                )
            )
    return lines, tuple(issues)


def _issues_of_repeated(path: Path, lines: _Lines, last: Mapping[Unit, int]) -> Iterator[Issue]:
    for line, record in lines:
        if last[Unit.of(record)] != line:
            yield Issue(
                path,
                line,
                f"The line was left out: line {last[Unit.of(record)]} is of the same unit ({record.problem}, "
                f"{record.method}, seed {record.seed}) and came later.",
            )


def _issues_of_others(path: Path, lines: _Lines, wanted: Mapping[str, Any]) -> Iterator[Issue]:
    """One issue for all records that share settings which are not the current ones."""
    groups: list[_Lines] = []
    for each in lines:
        group = next((group for group in groups if group[0][1].settings == each[1].settings), None)
        if group is None:
            groups.append([each])
        else:
            group.append(each)
    for group in groups:
        line, record = group[0]
        count = f"{len(group)} records from this line on were" if len(group) > 1 else "The record was"
        yield Issue(
            path, line, f"{count} made with other settings ({_compare(record.settings, wanted)}); run again to replace."
        )


def _compare(settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """The first setting in which two differ."""
    names = [name for name in {**wanted, **settings} if settings.get(name) != wanted.get(name)]
    name = next(iter(names), "")
    rest = f", and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{name} {settings.get(name, 'absent')} instead of {wanted.get(name, 'absent')}{rest}"
