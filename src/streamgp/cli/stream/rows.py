"""Rows of a stream from records: inputs, a target, and what is wrong with those that have none."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from streamgp.errors import OptionError
from streamgp.tables.columns import MOST, Column, is_free
from streamgp.tables.lines import Position
from streamgp.tables.records import Record
from streamgp.tables.values import check_decimal_points, is_missing, read_number, to_number

__all__ = [
    "LIKELIHOODS",
    "Columns",
    "Row",
    "check_targets",
    "choose_columns",
    "choose_likelihood",
    "count_labels",
    "read_row",
    "unread_targets",
    "written_differently",
]

LIKELIHOODS = ("gaussian", "student_t", "poisson", "negative_binomial", "binomial", "classes")
_COUNTS = ("poisson", "negative_binomial", "binomial")
# Fewer rows than these do not tell two classes from numbers that happen to be equal.
_ENOUGH_ROWS = 10


class Row(NamedTuple):
    """One row.

    Attributes:
        line: Number of its line.
        position: How far the source was read after it.
        fields: Features by name, as they were given.
        target: A number, a label as text, or None where it is missing: such a row is predicted and not learned.
        total_count: Number of trials, for binomial targets.
        unread: Why a target that is there is taken as missing; empty for all others.
    """

    line: int
    position: Position
    fields: Mapping[str, Any]
    target: float | str | None
    total_count: float | None = None
    unread: str = ""


@final
@dataclass(frozen=True)
class Columns:
    """Which fields of a record are what.

    Attributes:
        features: Names of the inputs.
        target: Name of what is predicted.
        total_count: Name of the numbers of trials, or None.
    """

    features: tuple[str, ...]
    target: str
    total_count: str | None


def choose_columns(
    names: Sequence[str],
    target: str,
    features: Sequence[str] | None,
    *,
    exclude: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    total_count: str | None = None,
) -> Columns:
    """Check names of columns against those that there are.

    Args:
        names: All names.
        target: The target's.
        features: The inputs'; all others if None.
        exclude: Those that are left out.
        kinds: What features are, by name, where it was said.
        total_count: Name of the numbers of trials, or None.
    """
    known = ", ".join(map(repr, names))
    roles = [("target", target), ("total count", total_count), *(("feature", each) for each in features or ())]
    roles += [("exclusion", each) for each in exclude] + [(kind, name) for name, kind in (kinds or {}).items()]
    for role, name in roles:
        if name is not None and name not in names:
            only = " If these are several, separate them by commas, semicolons or tabs." if len(names) == 1 else ""
            raise OptionError(f"There is no column {name!r} for the {role}. The columns are {known}.{only}")
    others = tuple(name for name in names if name not in (target, total_count)) if features is None else tuple(features)
    chosen = tuple(name for name in others if name not in exclude)
    if not chosen:
        raise OptionError(f"There are no features: the columns are {known}, and the target is {target!r}.")
    for name, kind in (kinds or {}).items():
        if name not in chosen:
            raise OptionError(
                f"The column {name!r} is said to be a {kind}, but is no feature. Leave that out, or name it among the "
                "features; --likelihood says what a target is."
            )
    used = [*chosen, target] if total_count is None else [*chosen, target, total_count]
    repeated = sorted({name for name in used if used.count(name) > 1})
    if repeated:
        raise OptionError(
            f"The columns {repeated} are used twice. Name each column once, and the target not among them."
        )
    return Columns(chosen, target, total_count)


def choose_likelihood(records: Sequence[Record], columns: Columns) -> str:
    """Tell from the first records what the targets are: classes if they are texts, truth values or two whole numbers.

    Everything else is taken as real numbers; counts are not guessed. Where nine in ten are numbers, the others are
    mistakes; where one in ten is at most, they are names of classes, too.

    Raises:
        OptionError: If there are no targets, or numbers and texts in between.
    """
    if columns.total_count is not None:
        return "binomial"
    present = [target for _, target in _targets(records, columns)]
    if not present and any(record.fields is not None for record in records):
        raise OptionError(
            f"None of the first {len(records)} rows has a target {columns.target!r}, so that nothing says what it is. "
            "Name it with --likelihood (gaussian for real numbers, classes for labels), or look at more rows with "
            "--first-rows."
        )
    if not present:
        return "gaussian"
    check_decimal_points(present, columns.target, share=MOST)
    texts = [target for target in present if _is_text(target)]
    numbers = [to_number(target) for target in present if not _is_text(target)]
    is_whole = all(number is not None and number.is_integer() for number in numbers)
    is_pair = is_whole and len(set(numbers)) <= 2 and len(numbers) >= _ENOUGH_ROWS
    if len(numbers) >= MOST * len(present):
        return "classes" if is_pair else "gaussian"
    if len(texts) >= MOST * len(present):
        _check_repeated(texts, columns.target)
        return "classes"
    raise OptionError(
        f"Of the first {len(present)} targets {columns.target!r}, {len(numbers)} are numbers and the others not, such "
        f"as {texts[0]!r}. Pass --likelihood gaussian if it holds numbers: rows without one are then predicted and not "
        "learned. Pass --likelihood classes if it holds labels."
    )


def check_targets(records: Sequence[Record], columns: Columns) -> None:
    """Refuse first targets of which none is a number, where numbers are asked for.

    Raises:
        OptionError: If there are targets, and none is a number.
    """
    present = [target for _, target in _targets(records, columns)]
    check_decimal_points(present, columns.target, share=MOST)
    if present and len(unread_targets(records, columns)) == len(present):
        raise OptionError(
            f"None of the first {len(present)} targets {columns.target!r} is a number, but for instance "
            f"{present[0]!r}. Pass --likelihood classes if they are labels, or look at more rows with --first-rows."
        )


def unread_targets(records: Sequence[Record], columns: Columns) -> list[tuple[int, Any]]:
    """Lines and values of targets that are there and are no numbers."""
    return [(line, target) for line, target in _targets(records, columns) if to_number(target) is None]


def count_labels(records: Sequence[Record], columns: Columns) -> list[tuple[str, int]]:
    """Labels among the targets, the most frequent first, and how often they come."""
    labels = [_read_label(each.fields, columns) for each in records if each.fields is not None]
    return Counter(label for label in labels if label is not None).most_common()


def written_differently(labels: Sequence[str]) -> list[list[str]]:
    """Labels that differ only in capitals, or are the same number: True and TRUE, or 1 and 1.0."""
    groups: dict[object, list[str]] = {}
    for label in labels:
        number = to_number(label)
        groups.setdefault(label.casefold() if number is None else number, []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _targets(records: Sequence[Record], columns: Columns) -> list[tuple[int, Any]]:
    """Lines and values of targets that are there."""
    given = [(each.line, each.fields.get(columns.target)) for each in records if each.fields is not None]
    return [(line, target) for line, target in given if not is_missing(target)]


def _check_repeated(texts: Sequence[Any], name: str) -> None:
    """Refuse texts of which most are different: each would be a class of its own."""
    num_different = len(set(map(str, texts)))
    if is_free(num_different, len(texts)):
        raise OptionError(
            f"The first {len(texts)} targets {name!r} are {num_different} different texts, such as {texts[0]!r}: "
            "names, dates or numbers with units, hardly labels. Write numbers without units, name another --target, or "
            "pass --likelihood classes if each is a label."
        )


def read_row(record: Record, columns: Columns, likelihood: str, features: Sequence[Column]) -> Row | str:
    """Read a row from a record, or say what is wrong with it.

    Args:
        record: The record.
        columns: Which of its fields are what.
        likelihood: What the target is.
        features: What is known of the features.
    """
    fields = record.fields
    if fields is None:
        return record.issue
    for column in features:
        issue = column.issue(fields)
        if issue:
            return issue
    total_count = None if columns.total_count is None else read_number(fields, columns.total_count, "total count")
    if isinstance(total_count, str):
        return total_count
    target: float | str | None = None
    value, unread = fields.get(columns.target), ""
    if likelihood == "classes":
        target = _read_label(fields, columns)
    elif not is_missing(value) and to_number(value) is None:
        unread = f"the target {columns.target!r} is {value!r} and not a number"
    elif not is_missing(value):
        target = read_number(fields, columns.target, "target")
        if isinstance(target, str):
            return target
    given = {name: fields.get(name) for name in columns.features}
    row = Row(record.line, record.position, given, target, total_count, unread)
    return _outside_support(row, columns, likelihood) or row


def _outside_support(row: Row, columns: Columns, likelihood: str) -> str:
    """Say why a target cannot have been observed; nothing if it can."""
    if likelihood not in _COUNTS:
        return ""
    counts = {columns.target: row.target, columns.total_count: row.total_count}
    for name, value in counts.items():
        if isinstance(value, float) and not (value >= 0 and value.is_integer()):
            return f"the count {name!r} is {value:g}, but must be a whole number that is not negative"
    if row.total_count is not None and isinstance(row.target, float) and row.target > row.total_count:
        return f"the target {columns.target!r} is {row.target:g}, more than its {row.total_count:g} trials"
    return ""


def _is_text(target: Any) -> bool:
    """Whether a target is no number; truth values are names of classes."""
    return isinstance(target, bool) or to_number(target) is None


def _read_label(fields: Mapping[str, Any], columns: Columns) -> str | None:
    value = fields.get(columns.target)
    if is_missing(value) or isinstance(value, list | dict):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
