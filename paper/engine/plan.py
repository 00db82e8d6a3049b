"""Which units a request asks for, and which of them have run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from paper import registry
from paper.engine.execution import UnitTask
from paper.engine.results import Issue, load_records
from paper.schema.configuration import (
    SCALES,
    Configuration,
    read_configuration,
    read_own_configuration,
    suggest,
)
from paper.schema.record import Records
from paper.schema.study import Study
from paper.schema.unit import Unit
from streamgp.errors import OptionError

__all__ = ["Plan", "RunRequest", "make_plans"]


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
        others: Configurations of the study at other scales with what has run there, which tells how good guesses are.
    """

    study: Study[Any]
    configuration: Configuration
    units: tuple[Unit, ...]
    records: Records
    issues: tuple[Issue, ...]
    others: tuple[tuple[Configuration, Records], ...] = ()

    @property
    def tasks(self) -> tuple[UnitTask, ...]:
        """The units that are still to run."""
        finished = {Unit.of(record) for record in self.records.all}
        return tuple(
            UnitTask(unit, self.study, self.configuration.settings) for unit in self.units if unit not in finished
        )


@final
@dataclass(frozen=True)
class _Share:
    """What one name asks of a study."""

    study: Study[Any]
    problems: Sequence[str]
    methods: Sequence[str]
    is_statistical: bool


def make_plans(request: RunRequest, directory: Path) -> tuple[Plan, ...]:
    """Find out which units are asked for, one plan for each study.

    Args:
        request: What to run.
        directory: Where files of results are.

    Raises:
        OptionError: If a name is unknown.
    """
    shares = [_find_share(name) for name in _expand(request.names)]
    _check_names(request.problems, [share.problems for share in shares], "problem")
    _check_names(request.methods, [share.methods for share in shares], "method")
    studies = {share.study.name: share.study for share in shares}
    if request.config is not None and len(studies) > 1:
        raise OptionError(
            f"--config holds the settings of one study, but {', '.join(studies)} are asked for. Run them one by one."
        )
    return tuple(
        _plan(study, [share for share in shares if share.study is study], request, directory=directory)
        for study in studies.values()
    )


def _plan(study: Study[Any], shares: Iterable[_Share], request: RunRequest, *, directory: Path) -> Plan:
    configuration = (
        read_configuration(study, request.scale)
        if request.config is None
        else read_own_configuration(study, request.config)
    )
    units = {
        Unit(study.name, configuration.scale, problem, method, seed): None  # a set that keeps its order
        for share in shares
        for seed in _seeds(share, request, configuration.num_trials)
        for problem in share.problems
        for method in share.methods
        if _is_wanted(problem, request.problems) and _is_wanted(method, request.methods)
    }
    by_seed = tuple(sorted(units, key=lambda unit: unit.seed))
    records, issues = load_records(study.name, configuration.scale, directory, settings=configuration.values)
    scales = SCALES if request.config is None else ()
    others = [read_configuration(study, scale) for scale in scales if scale != configuration.scale]
    known = ((other, load_records(study.name, other.scale, directory, settings=other.values)[0]) for other in others)
    return Plan(study, configuration, by_seed, records, issues, tuple(known))


def _seeds(share: _Share, request: RunRequest, num_trials: int) -> range:
    default = num_trials if share.is_statistical else 1
    count = default if request.num_trials is None else request.num_trials
    return range(request.first_seed, request.first_seed + count)


def _expand(names: Sequence[str]) -> Sequence[str]:
    return registry.FIGURES if "all" in names else names


def _find_share(name: str) -> _Share:
    """What a name asks for; a name that a figure and a study share is that of the figure."""
    if name in registry.FIGURES:
        figure = registry.find_figure(name)
        study = registry.find_study(figure.study)
        return _Share(study, figure.problems, figure.methods, figure.is_statistical)
    if name in registry.STUDIES:
        study = registry.find_study(name)
        return _Share(study, tuple(study.problems), tuple(study.methods), is_statistical=True)
    choices = (*registry.FIGURES, *registry.STUDIES, "all")
    raise OptionError(
        f"There is no figure or study {name!r}.{suggest(name, choices)} Figures: {', '.join(registry.FIGURES)}. "
        f"Studies: {', '.join(registry.STUDIES)}. Or all."
    )


def _check_names(names: Sequence[str] | None, choices: Iterable[Sequence[str]], kind: str) -> None:
    known: Mapping[str, None] = dict.fromkeys(name for each in choices for name in each)
    for name in names or ():
        if name not in known:
            raise OptionError(f"There is no {kind} {name!r} here.{suggest(name, known)} There are: {', '.join(known)}.")


def _is_wanted(name: str, names: Sequence[str] | None) -> bool:
    return names is None or name in names
