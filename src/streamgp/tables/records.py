"""Records of a CSV file or of JSON lines: named fields, one record after the other; and tables that are written."""

import csv
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

from streamgp.checks import check_choice
from streamgp.display import escape_formula, unescape_formula
from streamgp.errors import FileFormatError
from streamgp.tables.lines import Lines, Position

__all__ = ["FORMATS", "AbstractReader", "Record", "open_reader", "read_header", "write_table"]

FORMATS = ("auto", "csv", "jsonl")
_DELIMITERS = ",;\t"
_WANTED = {"auto": "CSV with a header, or JSON lines", "csv": "CSV with a header", "jsonl": "JSON lines"}
# Lines that a quoted field may span. Where one is not closed, as many are read again, line by line.
_MOST_LINES = 100


class Record(NamedTuple):
    """One record.

    Attributes:
        line: Number of its first line, from 1.
        position: How far the source was read after it.
        fields: Values by name; None if it could not be read.
        issue: Why not.
        is_ended: Whether its last line has an end; if not, more of it may come.
    """

    line: int
    position: Position
    fields: Mapping[str, Any] | None
    issue: str = ""
    is_ended: bool = True


class _Line(NamedTuple):
    """A line that was read: its number, how far the source was read after it, and its text or what is wrong."""

    number: int
    position: Position
    text: str
    issue: str = ""
    is_ended: bool = True


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


def read_header(lines: Lines) -> tuple[tuple[str, ...], str]:
    """Names of the columns of a CSV file, and what separates its cells.

    Args:
        lines: The source, whose first lines are read.

    Raises:
        FileFormatError: If there is nothing to read, or no names.
    """
    reader = open_reader(lines, "csv")
    assert isinstance(reader, _CSVReader)
    return reader.names, reader.delimiter


def open_reader(lines: Lines, format: str = "auto", *, names: Sequence[str] = ()) -> AbstractReader:
    """Read the beginning of a source.

    Args:
        lines: The source.
        format: `"csv"`, `"jsonl"` for JSON lines, or `"auto"`: JSON lines are those that begin with a brace.
        names: Columns that are looked for: what gives most of them separates the cells of CSV.

    Raises:
        FileFormatError: If there is nothing to read, or no names.
    """
    check_choice(format, FORMATS, "format")
    first = ""
    while not first.strip():
        try:
            first = next(lines)
        except StopIteration:
            raise FileFormatError(f"{lines.name} has no rows. Pass {_WANTED[format]}.") from None
        except UnicodeDecodeError:
            raise FileFormatError(
                f"{lines.name} is not text in UTF-8. Pass {_WANTED[format]} in UTF-8, as it is or compressed by gzip."
            ) from None
    is_json = first.lstrip().startswith("{") if format == "auto" else format == "jsonl"
    return _JSONReader(lines, first) if is_json else _CSVReader(lines, first, names)


@final
class _CSVReader(AbstractReader):
    def __init__(self, lines: Lines, header: str, wanted: Sequence[str] = ()) -> None:
        self.lines = lines
        try:
            found = {each: _header_names(header, each) for each in _DELIMITERS}
            self.delimiter = max(
                _DELIMITERS, key=lambda each: (len(set(wanted) & set(found[each])), header.count(each))
            )
            names = found[self.delimiter]
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
            if repeated == [""]:
                raise FileFormatError(
                    f"{lines.name} has {names.count('')} columns without a name. Name all in the first line, or "
                    "remove empty ones."
                )
            raise FileFormatError(f"{lines.name} has several columns of the names {repeated}. Rename all but one.")
        self.names = tuple(names)
        self._ahead: deque[_Line] = deque()

    def skip_to(self, position: Position) -> None:
        if position.num_lines:
            self.lines.skip_to(position)

    def records(self) -> Iterator[Record]:
        while (line := self._next_line()) is not None:
            if line.issue:
                yield Record(line.number, line.position, None, line.issue)
            elif line.text.strip("\r\n"):
                yield self._record(line)

    def _next_line(self) -> _Line | None:
        if self._ahead:
            return self._ahead.popleft()
        number, issue, text = self.lines.position.num_lines + 1, "", ""
        try:
            text = next(self.lines)
        except StopIteration:
            return None
        except UnicodeDecodeError as error:
            issue = f"it is not text in UTF-8 ({error.reason}): save the file as UTF-8"
        return _Line(number, self.lines.position, text, issue, self.lines.is_ended)

    def _record(self, first: _Line) -> Record:
        """A record from a line, and from those after it while a quoted field is open.

        If the quote is never closed, or what it encloses makes no record, the first line alone is bad, and those after
        it are read again.
        """
        taken, values, issue = [first], None, ""
        while True:
            try:
                values = self._values(taken)
                break
            except _OpenQuoteError:
                issue = "a quote is opened in it and not closed"
            except csv.Error as error:
                issue = f"it cannot be read as CSV ({error})"
                break
            following = self._next_line() if len(taken) < _MOST_LINES else None
            if following is None:
                break
            taken.append(following)
            if following.issue:
                break
        if values is not None and len(values) == len(self.names):
            last = taken[-1]
            return Record(first.number, last.position, dict(zip(self.names, values, strict=True)), "", last.is_ended)
        if values is not None:
            issue = f"it has {len(values)} fields, but the header has {len(self.names)}"
        if values is not None and len(taken) > 1:
            issue = f"a quote is opened in it, and with the lines up to the next one {issue}"
        self._ahead.extendleft(reversed(taken[1:]))
        return Record(first.number, first.position, None, issue, first.is_ended)

    def _values(self, taken: list[_Line]) -> list[str]:
        texts = [line.text for line in taken]
        if any('"' in text for text in texts):
            try:
                next(csv.reader(texts, delimiter=self.delimiter, strict=True))
            except csv.Error as error:
                if "unexpected end" in str(error):
                    raise _OpenQuoteError from None
        return next(csv.reader(texts, delimiter=self.delimiter))


def _header_names(header: str, delimiter: str) -> list[str]:
    """Names of columns, which spreadsheets and people pad, and commands escape where a spreadsheet would run them."""
    return [unescape_formula(name.strip()) for name in next(csv.reader([header], delimiter=delimiter))]


class _OpenQuoteError(Exception):
    """A quoted field is not closed yet."""


@final
class _JSONReader(AbstractReader):
    def __init__(self, lines: Lines, first: str) -> None:
        self.lines = lines
        self._first: Record | None = _json_record(first, lines.position.num_lines, lines.position)
        if self._first.fields is None:
            raise FileFormatError(
                f"The first line of {lines.name} must be a JSON object with one field for each column, but "
                f"{self._first.issue}. Pass --format csv if it is not JSON."
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
                record = _json_record(content, line, self.lines.position)
                yield record._replace(is_ended=self.lines.is_ended)


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


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write CSV; texts that a spreadsheet would run as a formula get an apostrophe in front."""
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        for row in (header, *rows):
            table.writerow([escape_formula(cell) for cell in row])
