"""Options of `streamgp stream`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from streamgp.checks import check_choice, check_count, keep_count
from streamgp.cli.outputs import check_output_paths
from streamgp.errors import OptionError
from streamgp.streams.drift import DETECTORS
from streamgp.streams.stream import Stream

__all__ = ["StreamOptions"]


@final
@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream: what to read, how to learn it, and what to write.

    Attributes:
        source: A file, or `-` for standard input.
        target: Column that is predicted.
        features: Columns to predict from; all others if None.
        exclude: Columns that are left out.
        kinds: As for `Stream`, and so are the options of the model.
        first_rows: Number of rows that tell what columns and target are, before the first is predicted.
        format: `"csv"`, `"jsonl"` or `"auto"`.
        output: File of predictions, `-` for standard output; beside the source if None.
        block: Number of rows that are predicted and then learned together.
        checkpoint: Where checkpoints go, or None.
        checkpoint_every: Number of rows between them.
        is_resumed: Whether to go on from a checkpoint (True), or to replace it (False); None if there should be none.
        picture: Where a picture of the stream goes, or None.
        is_bad_skipped: Whether bad rows are left out.
        limit: Number of rows after which to stop, or None.
        is_followed: Whether to wait for further rows at the end of the file.
        is_quiet: Whether only errors are printed.
    """

    source: str
    target: str
    features: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    first_rows: int = 100
    total_count: str | None = None
    format: str = "auto"
    likelihood: str = "auto"
    output: str | None = None
    block: int = 1
    num_inducing: int | str = "auto"
    warmup: int = 200
    refit: int | str = "auto"
    half_life: float | str | None = "auto"
    drift_detector: str | None = None
    on_drift: str = "rewarm"
    checkpoint: Path | None = None
    checkpoint_every: int = 1000
    is_resumed: bool | None = None
    picture: Path | None = None
    is_bad_skipped: bool = False
    limit: int | None = None
    is_followed: bool = False
    is_quiet: bool = False

    def __post_init__(self) -> None:
        """Check the options that need no data."""
        keep_count(self, "block")
        check_count(self.first_rows, "first-rows")
        if self.drift_detector is not None:
            check_choice(self.drift_detector, tuple(DETECTORS), "drift-detector")
        check_count(self.checkpoint_every, "checkpoint-every")
        if self.limit is not None:
            keep_count(self, "limit")
        if self.likelihood == "binomial" and self.total_count is None:
            raise OptionError("Binomial targets need their numbers of trials. Name their column with --total-count.")
        if self.total_count is not None and self.likelihood not in ("auto", "binomial"):
            raise OptionError(
                f"--total-count names numbers of trials, but the likelihood is {self.likelihood!r}. Leave it out, or "
                "pass --likelihood binomial."
            )
        if self.source == "-" and self.is_followed:
            raise OptionError("--follow is for files: standard input is read until it is closed. Leave it out.")
        if self.source != "-" and Path(self.source).is_dir():
            raise OptionError(f"{self.source} is a directory. Name a file in it, or pass - for standard input.")
        written = {"--output": self.output_path, "--checkpoint": self.checkpoint, "--picture": self.picture}
        check_output_paths(written, self.source)
        self.stream(self.features)

    @property
    def output_path(self) -> Path | None:
        """The file of predictions; None for standard output."""
        if self.output == "-" or (self.output is None and self.source == "-"):
            return None
        if self.output is not None:
            return Path(self.output)
        source = Path(self.source)
        stem = source.name.removesuffix(".gz").removesuffix(".csv").removesuffix(".jsonl")
        return source.with_name(f"{stem}.predictions.jsonl")

    def stream(self, features: tuple[str, ...] | None) -> Stream:
        """Return a stream that has seen nothing."""
        return Stream(
            self.target,
            likelihood=self.likelihood,
            total_count=self.total_count,
            features=features,
            exclude=self.exclude,
            kinds=self.kinds,
            first_rows=self.first_rows,
            num_inducing=self.num_inducing,
            warmup=self.warmup,
            refit=self.refit,
            half_life=self.half_life,
            drift_detector=self.drift_detector,
            on_drift=self.on_drift,
        )

    def identity(self, likelihood: str, features: tuple[str, ...]) -> dict[str, Any]:
        """Return what must be the same when a run goes on from a checkpoint."""
        return {
            "target": self.target,
            "features": list(features),
            "kinds": dict(self.kinds),
            "first-rows": self.first_rows,
            "total-count": self.total_count,
            "likelihood": likelihood,
            "block": self.block,
            "num-inducing": self.num_inducing,
            "warmup": self.warmup,
            "refit": self.refit,
            "half-life": self.half_life,
            "drift-detector": self.drift_detector,
            "on-drift": self.on_drift,
            "output": "standard output" if self.output_path is None else "a file",
        }

    def choose_features(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Check the columns that were named against those that there are, and return the features."""
        known = ", ".join(map(repr, names))
        roles = [("target", self.target), ("total count", self.total_count)]
        roles += [("feature", each) for each in self.features or ()] + [("exclusion", each) for each in self.exclude]
        roles += [(kind, name) for name, kind in self.kinds.items()]
        for role, name in roles:
            if name is not None and name not in names:
                only = " If these are several, separate them by commas, semicolons or tabs." if len(names) == 1 else ""
                raise OptionError(f"There is no column {name!r} for the {role}. The columns are {known}.{only}")
        taken = (self.target, self.total_count)
        others = self.features or tuple(name for name in names if name not in taken)
        chosen = tuple(name for name in others if name not in self.exclude)
        if not chosen:
            raise OptionError(f"There are no features: the columns are {known}, and the target is {self.target!r}.")
        for name, kind in self.kinds.items():
            if name not in chosen:
                raise OptionError(
                    f"The column {name!r} is said to be a {kind}, but is no feature. Leave that out, or name it among "
                    "the features; --likelihood says what a target is."
                )
        used = [*chosen, *(name for name in taken if name is not None)]
        repeated = sorted({name for name in used if used.count(name) > 1})
        if repeated:
            raise OptionError(
                f"The columns {repeated} are used twice. Name each column once, and the target not among them."
            )
        return chosen
