"""The command `streamgp stream`; like the others, it imports what it needs when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from streamgp.cli.arguments import number_or_word, words
from streamgp.cli.error_handling import report_errors

__all__ = ["stream"]


def stream(
    source: Annotated[str, typer.Argument(help="CSV or JSON lines, also compressed by gzip; - for standard input.")],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    features: Annotated[
        str | None,
        typer.Option(
            "--features", "--include", help="Columns to predict from, separated by commas; all others by default."
        ),
    ] = None,
    exclude: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = None,
    dates: Annotated[str | None, typer.Option(help="Columns of dates; found by themselves in most cases.")] = None,
    categories: Annotated[str | None, typer.Option(help="Columns of categories; texts are by themselves.")] = None,
    numbers: Annotated[str | None, typer.Option(help="Columns of numbers; what is none then is a bad row.")] = None,
    first_rows: Annotated[
        int, typer.Option(min=1, help="Rows that say what columns and target are, before the first is predicted.")
    ] = 100,
    likelihood: Annotated[
        str,
        typer.Option(
            help="What the target is: gaussian or student_t (real numbers), poisson or negative_binomial (counts), "
            "binomial (successes out of --total-count), classes; auto looks at the first rows."
        ),
    ] = "auto",
    total_count: Annotated[
        str | None, typer.Option("--total-count", "--totals", help="Column of numbers of trials, for binomial targets.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="Predictions as JSON lines; - for standard output. By default beside the source."),
    ] = None,
    block: Annotated[int, typer.Option(min=1, help="Rows that are predicted and then learned together.")] = 1,
    num_inducing: Annotated[str, typer.Option(help="Number of inducing points, or auto.")] = "auto",
    warmup: Annotated[int, typer.Option(min=1, help="Rows from which scales and hyperparameters are learned.")] = 200,
    refit: Annotated[
        str, typer.Option(help="When hyperparameters are learned again: auto, doubling, never, or a number of rows.")
    ] = "auto",
    half_life: Annotated[
        str,
        typer.Option(help="Rows after which half of what was known is lost; auto finds out, none forgets nothing."),
    ] = "auto",
    drift_detector: Annotated[
        str | None,
        typer.Option(
            help="A detector of river: adwin, kswin, page_hinkley; for classes also ddm, eddm, fhddm, hddm_a, hddm_w."
        ),
    ] = None,
    on_drift: Annotated[
        str, typer.Option(help="When it finds that errors have grown: rewarm begins anew, reset keeps hyperparameters.")
    ] = "rewarm",
    checkpoint: Annotated[Path | None, typer.Option(help="Where to keep all that a later run needs to go on.")] = None,
    checkpoint_every: Annotated[int, typer.Option(min=1, help="Rows between two checkpoints.")] = 1000,
    is_resumed: Annotated[
        bool | None,
        typer.Option("--resume/--fresh", help="Go on from the checkpoint, if there is one; or replace it."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the latest predictions and the running metrics into this file.")
    ] = None,
    is_bad_skipped: Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows of the stream.")] = None,
    is_followed: Annotated[
        bool, typer.Option("--follow", help="At the end of the file, wait for further rows until Ctrl-C or SIGTERM.")
    ] = False,
    format: Annotated[str, typer.Option(help="csv, jsonl, or auto.")] = "auto",
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Predict each row of a stream before learning it."""
    from streamgp.cli.stream.options import StreamOptions
    from streamgp.cli.stream.streaming import run_stream

    with report_errors():
        run_stream(
            StreamOptions(
                source=source,
                target=target,
                features=words(features),
                exclude=words(exclude) or (),
                kinds=_kinds(number=numbers, date=dates, category=categories),
                first_rows=first_rows,
                total_count=total_count,
                format=format,
                likelihood=likelihood,
                output=output,
                block=block,
                num_inducing=number_or_word(num_inducing),
                warmup=warmup,
                refit=number_or_word(refit),
                half_life=_half_life(half_life),
                drift_detector=drift_detector,
                on_drift=on_drift,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                is_resumed=is_resumed,
                picture=picture,
                is_bad_skipped=is_bad_skipped,
                limit=limit,
                is_followed=is_followed,
                is_quiet=is_quiet,
            )
        )


def _kinds(**columns: str | None) -> dict[str, str]:
    """Kinds of columns, by name."""
    from streamgp.errors import OptionError

    kinds: dict[str, str] = {}
    for kind, names in columns.items():
        for name in words(names) or ():
            if kinds.setdefault(name, kind) != kind:
                raise OptionError(f"The column {name!r} is said to hold a {kinds[name]} and a {kind}. Say one of them.")
    return kinds


def _half_life(text: str) -> float | str | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        return text
