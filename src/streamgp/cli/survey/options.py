"""Options of `streamgp survey`."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from streamgp.acquisition.rules.names import POOL_RULES
from streamgp.checks import check_choice, keep_count
from streamgp.cli.outputs import check_output_paths
from streamgp.cli.pictures import check_output
from streamgp.errors import OptionError

__all__ = ["SurveyOptions"]

_THRESHOLDED = ("hotspot_entropy", "exceedance")


@final
@dataclass(frozen=True)
class SurveyOptions:
    """Options of a survey: what to read, how to choose, and what to write.

    Attributes:
        source: A file with all places, or `-` for standard input.
        coordinates: The two columns of the map.
        covariates: Further columns to predict from; all others that hold numbers if None.
        positives: Column of numbers of positive tests.
        tested: Column of numbers of tests.
        target: Column of real numbers.
        noise: Column of standard deviations of the target, or None if they are to be learned.
        count: Column of counts.
        weights: Column of how much each place counts, such as how many people live there.
        costs: Column of what a visit costs.
        identifier: Column that names a place; its row number if None.
        threshold: A prevalence, a value, or a rate.
        acquisition: One of `POOL_RULES`; None for what suits the columns.
        number: How many places to choose.
        output: Where the chosen places go; beside the source if None.
        map: Where a map goes, or None.
        predictions: Where predictions of all places go, or None.
        save: Where the learner goes, or None.
        imputation: `"median"` to fill missing covariates, or None.
        is_bad_skipped: Whether rows that cannot be used are left out.
        seed: Of everything random.
        is_quiet: Whether only errors are printed.
    """

    source: str
    coordinates: tuple[str, ...]
    covariates: tuple[str, ...] | None = None
    positives: str | None = None
    tested: str | None = None
    target: str | None = None
    noise: str | None = None
    count: str | None = None
    weights: str | None = None
    costs: str | None = None
    identifier: str | None = None
    threshold: float | None = None
    acquisition: str | None = None
    number: int = 10
    output: Path | None = None
    map: Path | None = None
    predictions: Path | None = None
    save: Path | None = None
    imputation: str | None = None
    is_bad_skipped: bool = False
    seed: int = 0
    is_quiet: bool = False

    def __post_init__(self) -> None:
        """Check the options that need no data."""
        keep_count(self, "number")
        keep_count(self, "seed", minimum=0)
        if self.imputation is not None:
            check_choice(self.imputation, ("median",), "impute")
        if len(self.coordinates) != 2:
            raise OptionError(
                f"--coordinates must name two columns, for example lng,lat, but names {len(self.coordinates)}: "
                f"{', '.join(map(repr, self.coordinates))}. Further columns go to --covariates."
            )
        self._check_outcome()
        self._check_acquisition()
        self._check_paths()

    @property
    def response(self) -> str:
        """Kind of what is predicted: a `"prevalence"`, a `"value"` or a `"rate"`."""
        if self.positives is not None:
            return "prevalence"
        return "value" if self.target is not None else "rate"

    @property
    def output_path(self) -> Path:
        """The file of chosen places."""
        if self.output is not None:
            return self.output
        if self.source == "-":
            raise OptionError("Standard input has no name to derive another from. Name a file with --output.")
        source = Path(self.source)
        stem = source.name.removesuffix(".gz").removesuffix(".csv").removesuffix(".jsonl")
        return source.with_name(f"{stem}.next.csv")

    def _check_outcome(self) -> None:
        if (self.positives is None) != (self.tested is None):
            raise OptionError("A prevalence needs both columns. Name them with --positives and --tested.")
        num_kinds = sum(column is not None for column in (self.positives, self.target, self.count))
        if num_kinds != 1:
            raise OptionError(
                "Say what was measured, in one way: --positives and --tested (out of how many), --target (real "
                f"numbers), or --count (counts). {num_kinds or 'None'} of them came."
            )
        if self.noise is not None and self.target is None:
            raise OptionError("--noise holds standard deviations of --target. Name that as well, or leave it out.")

    def _check_acquisition(self) -> None:
        if self.acquisition is None:
            return
        check_choice(self.acquisition, tuple(POOL_RULES), "acquisition")
        if self.acquisition == "random" and self.costs is not None:
            raise OptionError("--acquisition random does not weigh --costs. Leave one of them out.")
        if self.acquisition in _THRESHOLDED and self.threshold is None:
            raise OptionError(f"--acquisition {self.acquisition} needs a --threshold, for example 0.1.")
        if self.acquisition == "hotspot_entropy" and self.positives is None:
            raise OptionError(
                "--acquisition hotspot_entropy is about prevalences, with --positives and --tested. For other columns "
                "choose exceedance."
            )

    def _check_paths(self) -> None:
        issue = None if self.map is None else check_output(self.map)
        if issue is not None:
            raise OptionError(f"--map: {issue}")
        written = {
            "--output": self.output_path,
            "--map": self.map,
            "--predictions": self.predictions,
            "--save": self.save,
        }
        check_output_paths(written, self.source)
