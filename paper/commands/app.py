"""The command `python -m paper`; a command's work is imported when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from paper.commands.data.command import data
from paper.commands.run import run
from streamgp.cli.arguments import words
from streamgp.cli.error_handling import report_errors

__all__ = ["app"]

_RESULTS = Path("paper/results")

app = typer.Typer(
    name="python -m paper",
    help="The paper's experiments: run them, and judge its claims by what came of them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def report(
    results: Annotated[Path, typer.Option(help="Where files of results are.")] = _RESULTS,
    output: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("paper-report.html"),
    scale: Annotated[
        str | None,
        typer.Option(
            help="Settings of the runs: quick, full, or the name of your own. By default full where there are results, "
            "and quick elsewhere.",
            show_default=False,
        ),
    ] = None,
    figures: Annotated[str | None, typer.Option(help="Figures to show, separated by commas; all by default.")] = None,
) -> None:
    """Make one page from files of results: each figure's claim, picture, numbers and verdict."""
    from rich.console import Console

    from paper.commands.report import run_report

    names = words(figures)
    with report_errors():
        is_complete = run_report(Console(markup=False, highlight=False), results, output, scale=scale, names=names)
    if not is_complete:
        raise typer.Exit(1)


def verdicts(
    results: Annotated[Path, typer.Option(help="Where files of results are.")] = _RESULTS,
    scale: Annotated[str | None, typer.Option(help="Settings of the runs, as for report.", show_default=False)] = None,
    figures: Annotated[str | None, typer.Option(help="Figures, separated by commas; all by default.")] = None,
) -> None:
    """Print each claim with its verdict, effects, intervals, numbers of trials and settings, as JSON."""
    from paper.commands.verdicts import judge_all, verdicts_as_json

    with report_errors():
        typer.echo(verdicts_as_json(judge_all(results, scale, words(figures), home=Path())))


def compare(
    mine: Annotated[Path, typer.Argument(help="The directory that you named with run --results.")],
    results: Annotated[Path, typer.Option(help="The results to compare with.")] = _RESULTS,
) -> None:
    """Hold results of yours against those that are recorded, line by line."""
    from rich.console import Console

    from paper.commands.verdicts import compare_results

    with report_errors():
        Console(markup=False, highlight=False).print(compare_results(mine, results))


for _command in (run, report, verdicts, compare):
    app.command()(_command)
app.add_typer(data, name="data")
