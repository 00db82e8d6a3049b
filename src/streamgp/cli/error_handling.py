"""Errors on the command line: a sentence and an exit code, not a traceback."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from streamgp.errors import StreamGPError, StreamGPWarning

__all__ = ["list_few", "printable", "report_errors", "report_warnings"]

_MOST_LISTED = 5


def list_few(items: Sequence[str], separator: str = "; ") -> str:
    """The first items, and how many more there are."""
    more = [f"and {len(items) - _MOST_LISTED} more"] if len(items) > _MOST_LISTED else []
    return separator.join([*items[:_MOST_LISTED], *more])


def printable(text: str) -> str:
    """A text that any terminal can show: halves of pairs of surrogates are written out."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def report_warnings() -> Iterator[None]:
    """Print warnings of the library as sentences, and no others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StreamGPWarning)
        yield
    for text in sorted({str(each.message) for each in caught if issubclass(each.category, StreamGPWarning)}):
        typer.echo(printable(f"Warning: {text}"), err=True)


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error of the library or of files, and exit with code 1."""
    try:
        yield
    except (StreamGPError, OSError) as error:
        typer.echo(printable(f"Error: {error}"), err=True)
        raise typer.Exit(1) from error
