"""Errors on the command line: a sentence and an exit code, not a traceback."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from streamgp.errors import StreamGPError

__all__ = ["errors_as_sentences"]


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Print an error of the library or of files, and exit with code 1."""
    try:
        yield
    except (StreamGPError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error
