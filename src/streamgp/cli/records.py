"""Records of a CSV file or of JSON lines: named fields, one record after the other."""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, final

from streamgp.checks import check_choice
from streamgp.cli.lines import Lines, Position
from streamgp.errors import FileFormatError

__all__ = ["FORMATS", "AbstractReader", "Record", "open_reader"]

FORMATS = ("auto", "csv", "jsonl")
_DELIMITERS = ",;\t"


class Record(NamedTuple):
    """One record.

    Attributes:
        line: Number of its first line, from 1.
        position: How far the source was read after it.
        fields: Values by name; None if it could not be read.
        complaint: Why not.
    """

    line: int
    position: Position
    fields: Mapping[str, Any] | None
    complaint: str = ""


class AbstractReader(ABC):
    """Records from lines.

    Attributes:
        lines: The source.
        names: Names of the fields, as the beginning of the source gives them.
    """

    lines: Lines
    names: tuple[str, ...]

    @abstractmethod
    def skip_to(self, position: Position) -> None:
        """Read on to where an earlier reading was; see `Lines.skip_to`."""

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """All further records; blank lines are passed over."""


def open_reader(lines: Lines, format: str = "auto") -> AbstractReader:
    """Read the beginning of a source.

    Args:
        lines: The source.
        format: `"csv"`, `"jsonl"` for JSON lines, or `"auto"`: JSON lines are those that begin with a brace.

    Raises:
        FileFormatError: If there is nothing to read, or no names.
    """
    check_choice(format, FORMATS, "format")
    first = ""
    while not first.strip():
        try:
            first = next(lines)
        except StopIteration:
            raise FileFormatError(f"{lines.name} has no rows. Pass CSV with a header, or JSON lines.") from None
        except UnicodeDecodeError:
            raise FileFormatError(
                f"{lines.name} is not text in UTF-8. Pass CSV or JSON lines, as they are or compressed by gzip."
            ) from None
    is_json = first.lstrip().startswith("{") if format == "auto" else format == "jsonl"
    return _JSONReader(lines, first) if is_json else _CSVReader(lines, first)


@final
class _CSVReader(AbstractReader):
    def __init__(self, lines: Lines, header: str) -> None:
        self.lines = lines
        self._delimiter = max(_DELIMITERS, key=header.count)
        try:
            names = [name.strip() for name in next(csv.reader([header], delimiter=self._delimiter))]
        except csv.Error as error:
            raise FileFormatError(
                f"The first line of {lines.name} must name the columns, but cannot be read as CSV ({error}). Pass CSV "
                "with a header."
            ) from None
        if all(_is_number(name) for name in names):
            raise FileFormatError(
                f"The first line of {lines.name} must name the columns, but holds numbers: {header.strip()[:80]}. "
                "Put a line with names in front."
            )
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise FileFormatError(f"{lines.name} has several columns of the names {repeated}. Rename all but one.")
        self.names = tuple(names)

    def skip_to(self, position: Position) -> None:
        if position.num_lines:
            self.lines.skip_to(position)

    def records(self) -> Iterator[Record]:
        reader = csv.reader(self.lines, delimiter=self._delimiter)
        while True:
            line = self.lines.position.num_lines + 1
            try:
                values = next(reader)
            except StopIteration:
                return
            except (csv.Error, UnicodeDecodeError) as error:
                yield Record(line, self.lines.position, None, f"it cannot be read as CSV ({error})")
                continue
            if not values:
                continue
            fields, complaint = None, f"it has {len(values)} fields, but the header has {len(self.names)}"
            if len(values) == len(self.names):
                fields, complaint = dict(zip(self.names, values, strict=True)), ""
            yield Record(line, self.lines.position, fields, complaint)


@final
class _JSONReader(AbstractReader):
    def __init__(self, lines: Lines, first: str) -> None:
        self.lines = lines
        self._first: Record | None = _json_record(first, lines.position.num_lines, lines.position)
        if self._first.fields is None:
            raise FileFormatError(
                f"The first line of {lines.name} must be a JSON object with one field for each column, but "
                f"{self._first.complaint}. Pass --format csv if it is not JSON."
            )
        self.names = tuple(self._first.fields)

    def skip_to(self, position: Position) -> None:
        if position.num_lines:
            self._first = None
            self.lines.skip_to(position)

    def records(self) -> Iterator[Record]:
        if self._first is not None:
            yield self._first
        while True:
            line = self.lines.position.num_lines + 1
            try:
                content = next(self.lines)
            except StopIteration:
                return
            except UnicodeDecodeError as error:
                yield Record(line, self.lines.position, None, f"it is not text in UTF-8 ({error.reason})")
                continue
            if content.strip():
                yield _json_record(content, line, self.lines.position)


def _json_record(content: str, line: int, position: Position) -> Record:
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError) as error:
        return Record(line, position, None, f"it cannot be read as JSON ({error})")
    if not isinstance(fields, dict):
        return Record(line, position, None, f"it holds a {type(fields).__name__} and not an object")
    return Record(line, position, fields)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
