"""Files of results: one for each study and scale, one line for each unit that has run."""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, final

from paper.schema.record import Records, UnitRecord
from streamgp.errors import FileFormatError, ValueRangeError

__all__ = ["Issue", "append_record", "as_json", "load_records", "read_line", "results_file"]

# Counts up when a field changes its meaning.
_VERSION = 1


@final
@dataclass(frozen=True)
class Issue:
    """Something in a file of results that could not be used.

    Attributes:
        file: The file.
        line: Number of the line, from 1; 0 for the whole file.
        sentence: Why, and what to do.
    """

    file: Path
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.sentence}" if self.line else f"{self.file}: {self.sentence}"


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping as it is after it was written and read: tuples are lists, keys are texts.

    Raises:
        ValueRangeError: If it holds NaN, an infinity, or something that JSON does not know.
    """
    try:
        content: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRangeError(
            f"Results must be finite numbers, texts, truths, lists and tables of them, as JSON has them, but {error}. "
            "Convert tensors and arrays with tolist(), and leave out what is not finite."
        ) from None
    return content


def results_file(study: str, scale: str, directory: Path) -> Path:
    """Path of the results of a study at a scale."""
    return directory / scale / f"{study}.jsonl"


def append_record(record: UnitRecord, directory: Path) -> None:
    """Write a record to the end of its file, and bring it to the disk.

    A line that a killed run left unfinished stays as it is: the record starts on a line of its own.
    """
    content = f"{json.dumps({'version': _VERSION, **as_json(asdict(record))}, ensure_ascii=False)}\n".encode()
    path = results_file(record.study, record.scale, directory)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            content = content if file.read(1) == b"\n" else b"\n" + content
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def read_line(content: bytes) -> UnitRecord:
    """A record from a line.

    Raises:
        FileFormatError: If it is none; the sentence does not name the file.
    """
    try:
        entry = json.loads(content.decode(), parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"it cannot be read as JSON ({error})") from error
    version = entry.get("version") if isinstance(entry, dict) else None
    if version != _VERSION:
        raise FileFormatError(f"its version must be {_VERSION}, but is {version!r}. Run the unit again")
    known = {field.name: entry[field.name] for field in fields(UnitRecord) if field.name in entry}
    try:
        return UnitRecord(**known)
    except TypeError as error:
        raise FileFormatError(f"it lacks fields ({error}). Run the unit again") from error


def load_records(
    study: str, scale: str, directory: Path, *, settings: Mapping[str, Any] | None = None
) -> tuple[Records, tuple[Issue, ...]]:
    """Read the results of a study; of several lines about one unit, the last one counts.

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
    try:
        contents = path.read_bytes().split(b"\n")
    except OSError as error:
        return Records(()), (Issue(path, 0, f"The file cannot be read ({error.strerror})."),)
    lines, issues = [], []
    for number, content in enumerate(contents, start=1):
        if content.strip():
            try:
                lines.append((number, read_line(content)))
            except FileFormatError as error:
                issues.append(Issue(path, number, f"The line was left out: {error}."))
    strays = [(number, record) for number, record in lines if (record.study, record.scale) != (study, scale)]
    lines = [line for line in lines if line not in strays]
    issues += [Issue(path, number, f"The line was left out: it is of {record.unit}.") for number, record in strays]
    if settings is None and lines:
        settings = lines[-1][1].settings
    wanted = as_json(settings or {})
    kept = {record.unit: record for _, record in lines if record.settings == wanted}
    issues += _other_settings(path, [line for line in lines if line[1].unit not in kept], wanted)
    return Records(tuple(kept.values())), tuple(sorted(issues, key=lambda issue: issue.line))


def _other_settings(path: Path, lines: list[tuple[int, UnitRecord]], wanted: Mapping[str, Any]) -> Iterator[Issue]:
    """One issue for all records that share settings which are not the current ones."""
    groups: dict[str, list[tuple[int, UnitRecord]]] = {}
    for each in lines:
        groups.setdefault(json.dumps(each[1].settings, sort_keys=True), []).append(each)
    for (number, record), *more in groups.values():
        names = [name for name in {**wanted, **record.settings} if record.settings.get(name) != wanted.get(name)]
        name = next(iter(names), "")
        change = f"{name} {record.settings.get(name, 'absent')} instead of {wanted.get(name, 'absent')}"
        count = f"{len(more) + 1} records from this line on were" if more else "The record was"
        rest = f", and {len(names) - 1} more" if len(names) > 1 else ""
        yield Issue(path, number, f"{count} made with other settings ({change}{rest}); run again to replace.")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number
