"""The commands `python -m paper data ...`; like the others, they import what they need when they are called."""

from typing import Annotated

import typer

from streamgp.cli.error_handling import report_errors

__all__ = ["data"]

data = typer.Typer(help="List, fetch, find and check the data sets of the experiments.", no_args_is_help=True)


@data.command("list")
def list_datasets() -> None:
    """Show the data sets, their licenses, and where they are."""
    from rich.console import Console

    from paper.commands.data.tables import print_datasets

    print_datasets(Console())


@data.command()
def fetch(names: Annotated[list[str], typer.Argument(help="Names of data sets, or all.")]) -> None:
    """Fetch data sets into the cache, unless they are here."""
    with report_errors():
        from rich.console import Console

        from paper.commands.data.fetching import fetch_datasets

        is_complete = fetch_datasets(names, Console(stderr=True))
    if not is_complete:
        raise typer.Exit(1)


@data.command()
def where(name: Annotated[str, typer.Argument(help="Name of a data set.")]) -> None:
    """Print the paths of the files of a data set; nothing is fetched."""
    with report_errors():
        from paper.datasets import find_dataset, locate

        dataset = find_dataset(name)
        found = {file.name: locate(file) for file in dataset.files}
    for location in found.values():
        if location is not None:
            typer.echo(location.path)
    missing = [file_name for file_name, location in found.items() if location is None]
    if missing:
        start = "python -m paper data"
        hint = f"Fetch with: {start} fetch {name}" if dataset.is_fetchable else f"See: {start} list"
        typer.echo(f"Not here: {', '.join(missing)}. {hint}", err=True)
        raise typer.Exit(1)


@data.command()
def check() -> None:
    """Compare the checksums of all files that are here."""
    with report_errors():
        from rich.console import Console

        from paper.commands.data.tables import print_check

        is_whole = print_check(Console())
    if not is_whole:
        raise typer.Exit(1)
