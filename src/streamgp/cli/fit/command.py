"""The commands `streamgp fit` and `streamgp predict`; they import what they need when they are called."""

from pathlib import Path
from typing import Annotated

import typer

from streamgp.cli.arguments import number_or_word, words
from streamgp.cli.error_handling import report_errors

__all__ = ["fit", "predict"]


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
    from streamgp.cli.fit.fitting import run_fit

    with report_errors():
        run_fit(
            files,
            target=target,
            features=words(features),
            output=output,
            likelihood=likelihood,
            num_inducing=number_or_word(num_inducing),
            max_iterations=max_iterations,
            is_classes=is_classes,
            dask_address=dask_address,
            seed=seed,
            is_quiet=is_quiet,
        )


def predict(
    model: Annotated[Path, typer.Argument(help="A model that `streamgp fit` wrote.")],
    source: Annotated[Path, typer.Argument(help="CSV or Parquet file with the columns of the inputs.")],
    output: Annotated[Path, typer.Option(help="Where to write the predictions, as CSV.")] = Path("predictions.csv"),
) -> None:
    """Predict each row of a file: mean and standard deviation, noise included, or the probabilities of labels."""
    from streamgp.cli.fit.predicting import run_predict

    with report_errors():
        run_predict(model, source, output=output)
