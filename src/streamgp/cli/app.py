"""The command `streamgp`.

A command's work lives in a module of its own, which the command imports when it is called:
`streamgp --help` then starts without torch.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from streamgp import __version__
from streamgp.cli.data.command import data
from streamgp.cli.error_handling import report_errors
from streamgp.cli.optimize.command import optimize

__all__ = ["app", "main"]

app = typer.Typer(
    name="streamgp",
    help="Sparse Gaussian processes that are conditioned on new data in closed form.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.add_typer(data, name="data")
app.add_typer(optimize, name="optimize")


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

    issue = check_output(output)
    if issue is not None:
        raise typer.BadParameter(issue, param_hint="--output")

    from streamgp.cli.demo import run_demo

    run_demo(output=output, seed=seed, is_quick=is_quick)


@app.command()
def fit(
    files: Annotated[list[Path], typer.Argument(help="CSV or Parquet files with the same columns.")],
    target: Annotated[str, typer.Option(help="Column to predict.")],
    output: Annotated[Path, typer.Option(help="Where to write the model.")],
    features: Annotated[
        str | None, typer.Option(help="Columns to predict from, separated by commas; all others by default.")
    ] = None,
    likelihood: Annotated[
        str, typer.Option(help="What the target is: gaussian, student_t, poisson, negative_binomial or bernoulli.")
    ] = "gaussian",
    is_classes: Annotated[
        bool, typer.Option("--classes", help="The target is a label, two or more of them, text or numbers.")
    ] = False,
    num_inducing: Annotated[str, typer.Option(help="Number of inducing points, or auto.")] = "200",
    max_iterations: Annotated[int | None, typer.Option(min=1, help="Most iterations of training.")] = None,
    dask_address: Annotated[
        str | None, typer.Option("--dask", help="Address of a Dask scheduler, on whose workers the files are read.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of training.")] = 0,
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Fit a model to all rows of files, more than memory holds if need be, and score it on a tenth held out."""
    from streamgp.cli.fit.running import run_fit

    with report_errors():
        run_fit(
            files,
            target=target,
            features=_words(features),
            output=output,
            likelihood=likelihood,
            num_inducing=_number_or_word(num_inducing),
            max_iterations=max_iterations,
            is_classes=is_classes,
            dask_address=dask_address,
            seed=seed,
            is_quiet=is_quiet,
        )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model that `streamgp fit` wrote.")],
    source: Annotated[Path, typer.Argument(help="CSV or Parquet file with the columns of the inputs.")],
    output: Annotated[Path, typer.Option(help="Where to write the predictions, as CSV.")] = Path("predictions.csv"),
) -> None:
    """Predict each row of a file: mean and standard deviation, noise included, or the probabilities of labels."""
    from streamgp.cli.fit.running import run_predict

    with report_errors():
        run_predict(model, source, output=output)


@app.command()
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
    num_inducing: Annotated[str, typer.Option(help="Number of inducing points, or auto.")] = "100",
    warmup: Annotated[int, typer.Option(min=1, help="Rows from which scales and hyperparameters are learned.")] = 200,
    refit: Annotated[
        str, typer.Option(help="When hyperparameters are learned again: auto, doubling, never, or a number of rows.")
    ] = "auto",
    half_life: Annotated[
        str,
        typer.Option(help="Rows after which half of what was known is lost; auto finds out, none forgets nothing."),
    ] = "auto",
    seed: Annotated[int, typer.Option(help="Seed of training.")] = 0,
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
    format: Annotated[str, typer.Option(help="csv, jsonl, or auto.")] = "auto",
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Predict each row of a stream before learning it."""
    from streamgp.cli.stream.options import StreamOptions
    from streamgp.cli.stream.running import run_stream

    with report_errors():
        run_stream(
            StreamOptions(
                source=source,
                target=target,
                features=_words(features),
                exclude=_words(exclude) or (),
                kinds=_kinds(number=numbers, date=dates, category=categories),
                first_rows=first_rows,
                total_count=total_count,
                format=format,
                likelihood=likelihood,
                output=output,
                block=block,
                num_inducing=_number_or_word(num_inducing),
                warmup=warmup,
                refit=_number_or_word(refit),
                half_life=_half_life(half_life),
                seed=seed,
                drift_detector=drift_detector,
                on_drift=on_drift,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                is_resumed=is_resumed,
                picture=picture,
                is_bad_skipped=is_bad_skipped,
                limit=limit,
                is_quiet=is_quiet,
            )
        )


@app.command()
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
            "counts), integrated_variance (default of values), exceedance, variance, or random."
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
    from streamgp.cli.survey.running import run_survey

    with report_errors():
        run_survey(
            SurveyOptions(
                source=source,
                coordinates=_words(coordinates) or (),
                covariates=() if covariates == "" else _words(covariates),
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


@app.command()
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
    results: Annotated[Path, typer.Option(help="Where files of results are.")] = Path("results"),
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

    from streamgp.cli.run.listing import print_list
    from streamgp.cli.run.running import run_experiments, run_until_decided
    from streamgp.experiments.engine.plan import Request

    console = Console(stderr=not is_listed)
    num_jobs = jobs or os.cpu_count() or 1
    request = Request(
        tuple(names or ()),
        scale="full" if is_full else "quick",
        config=config,
        num_trials=trials,
        first_seed=seed,
        problems=_words(problems),
        methods=_words(methods),
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


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="Where files of results are.")] = Path("results"),
    output: Annotated[Path, typer.Option(help="Where to write the page.")] = Path("streamgp-report.html"),
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

    from streamgp.cli.report import run_report

    names = _words(figures)
    with report_errors():
        is_complete = run_report(Console(markup=False, highlight=False), results, output, scale=scale, names=names)
    if not is_complete:
        raise typer.Exit(1)


def _words(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(","))


def _kinds(**columns: str | None) -> dict[str, str]:
    """What columns are, by name."""
    return {name: kind for kind, names in columns.items() for name in _words(names) or ()}


def _half_life(text: str) -> float | str | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _number_or_word(text: str) -> int | str:
    return int(text) if text.isdigit() else text
