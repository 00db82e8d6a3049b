"""Errors on the command line: a sentence and an exit code, not a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from streamgp.errors import StreamGPError

__all__ = ["printable", "report_errors"]


def printable(text: str) -> str:
    """A text that any terminal can show: halves of pairs of surrogates are written out."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error of the library or of files, and exit with code 1."""
    try:
        yield
    except (StreamGPError, OSError) as error:
        typer.echo(printable(f"Error: {error}"), err=True)
        raise typer.Exit(1) from error
