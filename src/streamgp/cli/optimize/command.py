"""The commands `streamgp optimize ...`; like the others, they import what they need when they are called."""

from pathlib import Path
from typing import Annotated

import typer

from streamgp.cli.error_handling import report_errors, report_warnings

__all__ = ["optimize"]

optimize = typer.Typer(
    help="Plan experiments: ask what to try next, tell what came of it. The study is a file: see init.",
    no_args_is_help=True,
)

_Study = Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The file with parameters and outcomes.")]
_State = Annotated[
    Path | None,
    typer.Option(help="Where all that was told is kept; by default beside the study.", show_default=False),
]
_IsJSON = Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")]


@optimize.command()
def init(study: _Study) -> None:
    """Write an example of a study, to be changed to yours."""
    from streamgp.cli.optimize.optimizing import run_init

    with report_errors():
        run_init(study)


@optimize.command()
def ask(
    study: _Study,
    number: Annotated[int, typer.Option(min=1, help="How many experiments to suggest.")] = 1,
    fix: Annotated[
        list[str] | None, typer.Option(help="A value to be kept this time, as in solvent=water; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The table to be filled in, as CSV; by default beside the study.", show_default=False),
    ] = None,
    state: _State = None,
    is_json: _IsJSON = False,
) -> None:
    """Suggest what to try next, and write a table to be filled in."""
    from streamgp.cli.optimize.optimizing import run_ask

    with report_errors(), report_warnings():
        run_ask(study, state, number=number, fixed=fix or (), output=output, is_json=is_json)


@optimize.command()
def tell(
    study: _Study,
    results: Annotated[
        list[str],
        typer.Argument(metavar="RESULTS.csv...", help="Tables with parameters and outcomes; - for standard input."),
    ],
    is_again: Annotated[bool, typer.Option("--again", help="Also learn rows that were told before: repeats.")] = False,
    state: _State = None,
    is_json: _IsJSON = False,
) -> None:
    """Learn what came of experiments, those that were suggested or any others."""
    from streamgp.cli.optimize.optimizing import run_tell

    with report_errors(), report_warnings():
        run_tell(study, state, results, is_again=is_again, is_json=is_json)


@optimize.command()
def best(study: _Study, state: _State = None, is_json: _IsJSON = False) -> None:
    """Print the best experiment so far, and what the model recommends; of several objectives, the best trade-offs."""
    from streamgp.cli.optimize.optimizing import run_best

    with report_errors(), report_warnings():
        run_best(study, state, is_json=is_json)


@optimize.command()
def show(study: _Study, state: _State = None, is_json: _IsJSON = False) -> None:
    """Print parameters, all results so far, and what is pending."""
    from streamgp.cli.optimize.optimizing import run_show

    with report_errors(), report_warnings():
        run_show(study, state, is_json=is_json)


@optimize.command()
def plot(
    study: _Study,
    output: Annotated[
        Path, typer.Option(help="The picture, whose suffix sets its format; .html for a page with all.")
    ] = Path("optimize.png"),
    state: _State = None,
) -> None:
    """Draw the results so far, or the trade-offs of several objectives, and what to expect along each parameter."""
    from streamgp.cli.optimize.optimizing import run_plot

    with report_errors(), report_warnings():
        run_plot(study, state, output=output)


@optimize.command()
def cancel(study: _Study, state: _State = None) -> None:
    """Forget experiments that were suggested and will not be done."""
    from streamgp.cli.optimize.optimizing import run_cancel

    with report_errors(), report_warnings():
        run_cancel(study, state)
