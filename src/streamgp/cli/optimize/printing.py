"""What the commands of `streamgp optimize` print."""

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


def show_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows by name as a table."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(Text(printable(name)))
    for row in rows:
        table.add_row(*(Text(_printed(value)) for value in row.values()))
    Console().print(table)


def say(*sentences: str) -> None:
    """Print sentences, one a line."""
    console = Console()
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
