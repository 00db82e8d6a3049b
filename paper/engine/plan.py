"""Which units a request asks for, and which of them have run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from paper import registry
from paper.engine.running import UnitTask
from paper.engine.times import Forecast
from paper.schema.configuration import Configuration, read_configuration, read_own_configuration, suggest
from paper.schema.record import Records, Unit
from paper.schema.results import Issue, load_records
from paper.schema.study import Study
from streamgp.errors import OptionError

__all__ = ["Plan", "RunRequest", "make_plans"]

# The results of the repository, whose times tell how long a run into another directory takes.
_RECORDED = Path(registry.__file__).parent / "results"


@final
@dataclass(frozen=True)
class RunRequest:
    """What to run.

    Attributes:
        names: Figures, studies, or `"all"` for all figures.
        scale: `"quick"` or `"full"`.
        config: A file with settings to use instead; then all names must be of one study.
        num_trials: Number of seeds; if None, that of the configuration, and one for figures that are not statistical.
        first_seed: The first seed.
        problems: The problems to run; all of them if None.
        methods: The methods to run; all of them if None.
    """

    names: tuple[str, ...]
    scale: str = "quick"
    config: Path | None = None
    num_trials: int | None = None
    first_seed: int = 0
    problems: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None


@final
@dataclass(frozen=True)
class Plan:
    """The units of one study.

    Attributes:
        study: The study.
        configuration: How it is run.
        units: What is asked for, by seeds: all problems and methods have the same number of trials while it runs.
        records: What has run with this configuration, whether asked for or not.
        issues: What could not be used of the file of results.
    """

    study: Study[Any]
    configuration: Configuration
    units: tuple[Unit, ...]
    records: Records
    issues: tuple[Issue, ...]

    @property
    def tasks(self) -> tuple[UnitTask, ...]:
        """The units that are still to run."""
        finished = {record.unit for record in self.records.all}
        return tuple(
            UnitTask(unit, self.study, self.configuration.settings) for unit in self.units if unit not in finished
        )

    @property
    def forecast(self) -> Forecast:
        """Times of this study's units, here and of the recorded results."""
        name, scale, settings = self.study.name, self.configuration.scale, self.configuration.values
        recorded, _ = load_records(name, scale, _RECORDED, settings=settings)
        return Forecast(self.configuration.seconds_per_unit).learn((*recorded.all, *self.records.all))


def make_plans(request: RunRequest, directory: Path) -> tuple[Plan, ...]:
    """Find out which units are asked for, one plan for each study.

    Args:
        request: What to run.
        directory: Where files of results are.

    Raises:
        OptionError: If a name is unknown, or nothing is asked for.
    """
    names = registry.FIGURES if "all" in request.names else request.names
    parts = [_lines_of(name) for name in names]
    _check_names(request.problems, [problem for _, lines, _ in parts for problem, _ in lines], "problem")
    _check_names(request.methods, [method for _, lines, _ in parts for _, method in lines], "method")
    studies = {study.name: study for study, _, _ in parts}
    if request.config is not None and len(studies) > 1:
        raise OptionError(
            f"--config holds the settings of one study, but {', '.join(studies)} are asked for. Run them one by one."
        )
    plans = tuple(
        _plan(study, [part for part in parts if part[0] is study], request, directory) for study in studies.values()
    )
    if not any(plan.units for plan in plans):
        raise OptionError("No problem goes together with a method here. Name others with --problems and --methods.")
    return plans


# A study, the lines of it that a name asks for, as pairs of problem and method, and whether they are statistical.
_Part = tuple[Study[Any], list[tuple[str, str]], bool]


def _plan(study: Study[Any], parts: Iterable[_Part], request: RunRequest, directory: Path) -> Plan:
    if request.config is None:
        configuration = read_configuration(study, request.scale)
    else:
        configuration = read_own_configuration(study, request.config)
    units: dict[Unit, None] = {}  # a set that keeps its order
    for _, lines, is_statistical in parts:
        count = request.num_trials or (configuration.num_trials if is_statistical else 1)
        for seed in range(request.first_seed, request.first_seed + count):
            for problem, method in lines:
                if problem in (request.problems or (problem,)) and method in (request.methods or (method,)):
                    units[Unit(study.name, configuration.scale, problem, method, seed)] = None
    records, issues = load_records(study.name, configuration.scale, directory, settings=configuration.values)
    return Plan(study, configuration, tuple(sorted(units, key=lambda unit: unit.seed)), records, issues)


def _lines_of(name: str) -> _Part:
    """What a name asks for; a name that a figure and a study share is that of the figure."""
    if name in registry.FIGURES:
        figure = registry.find_figure(name)
        return registry.find_study(figure.study), figure.lines, figure.is_statistical
    if name in registry.STUDIES:
        study = registry.find_study(name)
        return study, [(problem, method) for problem in study.problems for method in study.methods], True
    choices = (*registry.FIGURES, *registry.STUDIES, "all")
    raise OptionError(
        f"There is no figure or study {name!r}.{suggest(name, choices)} Figures: {', '.join(registry.FIGURES)}. "
        f"Studies: {', '.join(registry.STUDIES)}. Or all."
    )


def _check_names(names: Sequence[str] | None, choices: Iterable[str], kind: str) -> None:
    known: Mapping[str, None] = dict.fromkeys(choices)
    for name in names or ():
        if name not in known:
            raise OptionError(f"There is no {kind} {name!r} here.{suggest(name, known)} There are: {', '.join(known)}.")
