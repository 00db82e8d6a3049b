"""The command `streamgp`.

A command's work lives in a module of its own, which the command imports when it is called:
`streamgp --help` then starts without torch.
"""

from pathlib import Path
from typing import Annotated

import typer

from streamgp import __version__
from streamgp.cli.fit.command import fit, predict
from streamgp.cli.optimize.command import optimize
from streamgp.cli.stream.command import stream
from streamgp.cli.survey.command import survey
from streamgp.serve.command import serve

__all__ = ["app", "main"]

app = typer.Typer(
    name="streamgp",
    help="Sparse Gaussian processes that are conditioned on new data in closed form.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def main() -> None:
    """Run the command line."""
    app()


def _print_version(is_asked: bool) -> bool:
    if is_asked:
        typer.echo(f"streamgp {__version__}")
        raise typer.Exit
    return is_asked


@app.callback()
def _streamgp(
    is_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    # The docstring of a callback would replace the help text of the application.
    pass


def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture; the suffix sets its format.")] = Path(
        "streamgp-demo.png"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    is_quick: Annotated[bool, typer.Option("--quick", hidden=True)] = False,
) -> None:
    """Condition, learn a stream of counts and one of classes, optimize, and draw a picture of it all."""
    from streamgp.cli.pictures import check_output

    issue = check_output(output)
    if issue is not None:
        raise typer.BadParameter(issue, param_hint="--output")

    from streamgp.cli.demo import run_demo

    run_demo(output=output, seed=seed, is_quick=is_quick)


for _command in (demo, fit, predict, stream, survey, serve):
    app.command()(_command)
app.add_typer(optimize, name="optimize")
