"""The command `python -m paper run`; like the others, it imports what it needs when it is called."""

import os
from pathlib import Path
from typing import Annotated

import typer

from streamgp.cli.arguments import words
from streamgp.cli.error_handling import report_errors

__all__ = ["run"]


def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Figures or studies, as --list shows them; or all.", show_default=False)
    ] = None,
    is_quick: Annotated[bool, typer.Option("--quick", help="Settings that take minutes; the default.")] = False,
    is_full: Annotated[bool, typer.Option("--full", help="Settings of the paper.")] = False,
    config: Annotated[Path | None, typer.Option(help="A file with settings of your own for one study.")] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds; by default as the settings say.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    methods: Annotated[str | None, typer.Option(help="Methods to run, separated by commas.")] = None,
    problems: Annotated[str | None, typer.Option(help="Problems to run, separated by commas.")] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Units that run at a time; by default one for each core.")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler whose workers run the units.")] = None,
    results: Annotated[Path, typer.Option(help="Where files of results are.")] = Path("paper/results"),
    is_listed: Annotated[bool, typer.Option("--list", help="Show what there is and what has run, and exit.")] = False,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Show what would run and how long, and exit.")] = False,
    until_decided: Annotated[
        int | None,
        typer.Option(min=2, help="Add trials to figures until their claims are decided, up to this number."),
    ] = None,
) -> None:
    """Run experiments; units that have run before are not run again."""
    if not names and not is_listed:
        raise typer.BadParameter("Name figures or studies, or all. --list shows them.", param_hint="NAMES")
    if is_quick + is_full + (config is not None) > 1:
        raise typer.BadParameter("Choose one of --quick, --full and --config.")

    from rich.console import Console

    from paper.commands.run.listing import print_list
    from paper.commands.run.running import run_experiments, run_until_decided
    from paper.engine.plan import RunRequest

    console = Console(stderr=not is_listed)
    num_jobs = jobs or os.cpu_count() or 1
    request = RunRequest(
        tuple(names or ()),
        scale="full" if is_full else "quick",
        config=config,
        num_trials=trials,
        first_seed=seed,
        problems=words(problems),
        methods=words(methods),
    )
    try:
        with report_errors():
            if is_listed:
                print_list(console, request, results, num_workers=num_jobs)
                return
            if until_decided is not None and not is_dry:
                failures = run_until_decided(
                    console, request, results, max_trials=until_decided, num_jobs=num_jobs, address=dask
                )
            else:
                failures = run_experiments(console, request, results, num_jobs=num_jobs, address=dask, is_dry=is_dry)
    except KeyboardInterrupt:
        typer.echo("Stopped. Units that had ended are kept; run the same command again to go on.", err=True)
        raise typer.Exit(130) from None
    if failures:
        raise typer.Exit(1)
