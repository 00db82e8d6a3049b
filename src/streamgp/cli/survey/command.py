"""The command `streamgp survey`; like the others, it imports what it needs when it is called."""

from pathlib import Path
from typing import Annotated

import typer

from streamgp.cli.arguments import words
from streamgp.cli.error_handling import report_errors

__all__ = ["survey"]


def survey(
    source: Annotated[
        str, typer.Argument(metavar="VILLAGES", help="CSV with one row for each place, surveyed or not; - for input.")
    ],
    coordinates: Annotated[str, typer.Option(help="The two columns of the map, for example lng,lat.")],
    covariates: Annotated[
        str | None,
        typer.Option(help="Further columns to predict from; all others with numbers by default, '' for none."),
    ] = None,
    positives: Annotated[str | None, typer.Option(help="Column of positive tests; empty if not surveyed.")] = None,
    tested: Annotated[str | None, typer.Option(help="Column of numbers of tests.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of real numbers, instead of positives.")] = None,
    noise: Annotated[str | None, typer.Option(help="Column of standard deviations of the target.")] = None,
    count: Annotated[str | None, typer.Option(help="Column of counts, instead of positives.")] = None,
    weights: Annotated[
        str | None, typer.Option(help="Column of how much each place counts, such as how many people live there.")
    ] = None,
    costs: Annotated[
        str | None, typer.Option(help="Column of what a visit costs, such as hours of travel; gains are weighed by it.")
    ] = None,
    identifier: Annotated[str | None, typer.Option("--id", help="Column of names; row numbers by default.")] = None,
    threshold: Annotated[float | None, typer.Option(help="A prevalence, value or rate that matters.")] = None,
    acquisition: Annotated[
        str | None,
        typer.Option(
            help="hotspot_entropy (default with --positives and --threshold), response_variance (default of other "
            "counts), uncertainty_reduction (default of values with --threshold: on which side places are), "
            "integrated_variance (default of values), mutual_information, volume_change, exceedance, variance, or "
            "random."
        ),
    ] = None,
    number: Annotated[int, typer.Option(min=1, help="How many places to choose.")] = 10,
    output: Annotated[Path | None, typer.Option(help="Chosen places as CSV; by default beside the source.")] = None,
    map: Annotated[Path | None, typer.Option(help="Draw a map into this file.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Write predictions of all places as CSV.")] = None,
    save: Annotated[Path | None, typer.Option(help="Keep the learner, for streamgp.PoolLearner.load.")] = None,
    impute: Annotated[str | None, typer.Option(help="median: fill missing covariates with it.")] = None,
    is_bad_skipped: Annotated[bool, typer.Option("--skip-bad", help="Leave bad rows out instead of stopping.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Choose which places to survey next, and draw a map."""
    from streamgp.cli.survey.options import SurveyOptions
    from streamgp.cli.survey.surveying import run_survey

    with report_errors():
        run_survey(
            SurveyOptions(
                source=source,
                coordinates=words(coordinates) or (),
                covariates=() if covariates == "" else words(covariates),
                positives=positives,
                tested=tested,
                target=target,
                noise=noise,
                count=count,
                weights=weights,
                costs=costs,
                identifier=identifier,
                threshold=threshold,
                acquisition=acquisition,
                number=number,
                output=output,
                map=map,
                predictions=predictions,
                save=save,
                imputation=impute,
                is_bad_skipped=is_bad_skipped,
                seed=seed,
                is_quiet=is_quiet,
            )
        )
