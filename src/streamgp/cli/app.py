"""The command `streamgp`.

A command's work lives in a module of its own, which the command imports when it is called:
`streamgp --help` then starts without torch.
"""

from pathlib import Path
from typing import Annotated

import typer

from streamgp import __version__

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


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the picture; the suffix sets its format.")] = Path(
        "streamgp-demo.png"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the data.")] = 0,
    is_quick: Annotated[bool, typer.Option("--quick", hidden=True)] = False,
) -> None:
    """Condition, learn a stream of counts and one of classes, optimise, and draw a picture of it all."""
    from streamgp.cli.pictures import check_output

    complaint = check_output(output)
    if complaint is not None:
        raise typer.BadParameter(complaint, param_hint="--output")

    from streamgp.cli.demo import run_demo

    run_demo(output=output, seed=seed, is_quick=is_quick)


@app.command()
def stream(
    source: Annotated[str, typer.Argument(help="CSV or JSON lines, also compressed by gzip; - for standard input.")],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    features: Annotated[
        str | None, typer.Option(help="Columns to predict from, separated by commas; all others by default.")
    ] = None,
    likelihood: Annotated[
        str,
        typer.Option(
            help="What the target is: gaussian or student_t (real numbers), poisson or negative_binomial (counts), "
            "binomial (successes out of --totals), classes; auto looks at the first 100 rows."
        ),
    ] = "auto",
    totals: Annotated[str | None, typer.Option(help="Column of numbers of trials, for binomial targets.")] = None,
    output: Annotated[
        str | None,
        typer.Option(help="Predictions as JSON lines; - for standard output. By default beside the source."),
    ] = None,
    block: Annotated[int, typer.Option(min=1, help="Rows that are predicted and then learned together.")] = 1,
    num_inducing: Annotated[str, typer.Option(help="Number of inducing points, or auto.")] = "100",
    warmup: Annotated[int, typer.Option(min=1, help="Rows from which scales and hyperparameters are learned.")] = 200,
    refit: Annotated[
        str, typer.Option(help="When hyperparameters are learned again: never, doubling, or a number of rows.")
    ] = "doubling",
    half_life: Annotated[
        float | None,
        typer.Option(help="Rows after which what was learned counts half; nothing is forgotten by default."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of training.")] = 0,
    checkpoint: Annotated[Path | None, typer.Option(help="Where to keep all that a later run needs to go on.")] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 1000,
    is_resumed: Annotated[
        bool | None,
        typer.Option("--resume/--fresh", help="Go on from the checkpoint, if there is one; or replace it."),
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the running metrics into this file.")] = None,
    is_bad_skipped: Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows of the stream.")] = None,
    format: Annotated[str, typer.Option(help="csv, jsonl, or auto.")] = "auto",
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Predict each row of a stream before learning it."""
    from streamgp.cli.stream import run_stream
    from streamgp.cli.stream_options import StreamOptions
    from streamgp.errors import StreamGPError

    try:
        run_stream(
            StreamOptions(
                source=source,
                target=target,
                features=None if features is None else tuple(name.strip() for name in features.split(",")),
                totals=totals,
                format=format,
                likelihood=likelihood,
                output=output,
                block=block,
                num_inducing=_number_or_word(num_inducing),
                warmup=warmup,
                refit=_number_or_word(refit),
                half_life=half_life,
                seed=seed,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                is_resumed=is_resumed,
                picture=picture,
                is_bad_skipped=is_bad_skipped,
                limit=limit,
                is_quiet=is_quiet,
            )
        )
    except (StreamGPError, OSError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error


def _number_or_word(text: str) -> int | str:
    return int(text) if text.isdigit() else text
