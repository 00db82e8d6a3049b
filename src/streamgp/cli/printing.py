"""Text for terminals: sentences, tables and JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamgp.cli.error_handling import printable

__all__ = ["count_of", "print_json", "say", "show_table"]

# Digits of printed numbers.
_DIGITS = 6


def count_of(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _printed(value: Any) -> str:
    if isinstance(value, float):
        return "failed" if value != value else f"{value:.{_DIGITS}g}"
    return printable(str(value))


def show_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    console: Console | None = None,
    most_rows: int | None = None,
) -> None:
    """Print a table, or its first rows and how many more there are.

    Args:
        title: Its title.
        header: Names of the columns.
        rows: Cells of each row.
        console: Where it goes; standard output by default.
        most_rows: Rows that are printed.
    """
    table, console = Table(title=title), console or Console()
    for name in header:
        table.add_column(Text(printable(name)))
    for row in rows[:most_rows]:
        table.add_row(*(Text(_printed(value)) for value in row))
    console.print(table)
    if most_rows is not None and len(rows) > most_rows:
        say(f"And {len(rows) - most_rows} more.", console=console)


def say(*sentences: str, console: Console | None = None) -> None:
    """Print sentences, one a line, on standard output by default."""
    console = console or Console()
    for sentence in sentences:
        console.print(printable(sentence), soft_wrap=True, highlight=False, markup=False)


def print_json(value: Any) -> None:
    """Print JSON, in which numbers that are not finite are null."""
    text = json.dumps(_plain(value), ensure_ascii=False, indent=2, default=str)
    Console().print(printable(text), soft_wrap=True, highlight=False, markup=False)


def _plain(value: Any) -> Any:
    """Without numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
