"""The command `streamgp serve`; like the others, it imports what it needs when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from streamgp.cli.error_handling import report_errors

__all__ = ["serve"]


def serve(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A stream or survey that was saved, or the TOML file of a study.")
    ],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes one that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="STREAMGP_TOKEN",
            help="What requests must know. Other machines always need one; by default it is drawn and printed.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Rows of a stream between two checkpoints.")] = 10_000,
    most_megabytes: Annotated[int, typer.Option(min=1, help="Of one request.")] = 8,
) -> None:
    """Serve a stream to programs, or a study or survey as a page to people."""
    from streamgp.serve.serving import ServeOptions, run_serve

    with report_errors():
        run_serve(ServeOptions(file, host, port, token, checkpoint_every, most_megabytes * 2**20))
