"""The file of a study: parameters, outcomes and settings, as TOML."""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamgp.errors import FileFormatError, OptionError, StreamGPError
from streamgp.likelihoods import AbstractLikelihood, Gaussian, from_name, names
from streamgp.loops import (
    Categorical,
    Constraint,
    Integer,
    LinearConstraint,
    Objective,
    Ordinal,
    ParameterSpace,
    Real,
)
from streamgp.loops.abstract_parameter import AbstractParameter
from streamgp.optimizers import Optimizer

__all__ = ["EXAMPLE", "read_study"]

EXAMPLE = """\
# A study for `streamgp optimize`. Change names and numbers to yours, and take out what you do not need.

[parameters.temperature]  # in steps that can be set
type = "real"
low = 100
high = 180
step = 5

[parameters.loading]  # over orders of magnitude
type = "real"
low = 1e-4
high = 1.0
log = true

[parameters.stirrers]
type = "integer"
low = 1
high = 4

[parameters.flask]  # values with an order
type = "ordinal"
values = [50, 100, 250]

[parameters.solvent]  # values without one
type = "categorical"
values = ["water", "ethanol"]

# Sums that suggestions must keep, between real parameters without steps:
# [[linear_constraints]]
# weights = { a = 1.0, b = 1.0 }
# upper = 1.0

[objectives.yield]
maximize = true

# An outcome that must stay within bounds:
# [constraints.impurity]
# upper = 2.0

[settings]
seed = 0
"""

_TYPES: dict[str, tuple[Any, tuple[str, ...], tuple[str, ...]]] = {
    "real": (Real, ("low", "high"), ("log", "step")),
    "integer": (Integer, ("low", "high"), ("log", "step")),
    "ordinal": (Ordinal, ("values",), ("retired",)),
    "categorical": (Categorical, ("values",), ("retired",)),
}
_TABLES = ("parameters", "objectives", "constraints", "linear_constraints", "settings")
_OUTCOME_KEYS = ("likelihood", "noise", "trials")


def read_study(path: Path) -> Optimizer:
    """Make the optimizer of a study, without data.

    Raises:
        FileFormatError: If the file cannot be read or makes no sense; the sentence says which part.
    """
    content = _parse(path)
    with _about(str(path)):
        _check_keys(content, required=("parameters", "objectives"), optional=_TABLES)
        parameters = {
            name: _read_parameter(table, f"[parameters.{name}]") for name, table in _tables(content, "parameters")
        }
        objectives = [_read_objective(name, table) for name, table in _tables(content, "objectives")]
        constraints = [_read_constraint(name, table) for name, table in _tables(content, "constraints")]
        outcomes = [*(one.name for one in objectives), *(one.name for one in constraints)]
        repeated = [name for name in outcomes if name in parameters or outcomes.count(name) > 1]
        if repeated:
            raise OptionError(f"{repeated[0]!r} is the name of several parameters and outcomes. Rename all but one.")
        unnamed = [where for where in ("parameters", "objectives", "constraints") if "" in content.get(where, {})]
        if unnamed:
            raise OptionError(f"One of the {unnamed[0]} has no name, which tables need. Give it one.")
        sums = _read_sums(content.get("linear_constraints", []))
        with _about("[[linear_constraints]]"):
            space = ParameterSpace(parameters, tuple(sums))
        with _about("[settings]"):
            settings = content.get("settings", {})
            _check_keys(settings, optional=("acquisition", "num_initial", "seed"))
            return Optimizer(space, objectives=objectives, constraints=constraints, **settings)


def _parse(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise FileFormatError(
            f"{path} cannot be read ({error.strerror}). `streamgp optimize init {path}` writes an example."
        ) from None
    except RecursionError:
        raise FileFormatError(f"{path} is not a study: its lists or tables are nested too deeply.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"{path} is not TOML: {error}. Texts are in quotes, and `streamgp optimize init` writes an example."
        ) from None


def _tables(content: Mapping[str, Any], key: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = content.get(key, {})
    if not isinstance(tables, Mapping) or not all(isinstance(one, Mapping) for one in tables.values()):
        raise OptionError(f"{key} must be tables with names, each with a line [{key}.NAME] of its own.")
    return list(tables.items())


def _read_parameter(table: Mapping[str, Any], where: str) -> AbstractParameter:
    with _about(where):
        kind = table.get("type")
        if kind not in _TYPES:
            raise OptionError(f"type must be one of {', '.join(map(repr, _TYPES))}, but is {kind!r}.")
        make, required, optional = _TYPES[kind]
        _check_keys(table, required=("type", *required), optional=optional)
        made: AbstractParameter
        if "values" in required:
            if not isinstance(table["values"], list):
                raise OptionError(f"values must be a list, such as ['small', 'large'], but is {table['values']!r}.")
            _check_values(table["values"])
            made = make(table["values"], table.get("retired", ()))
        else:
            made = make(**{key: _read_option(table, key, kind) for key in table if key != "type"})
        return made


def _check_values(values: Sequence[Any]) -> None:
    """Refuse values that a table cannot hold, or in which they could not be told apart."""
    for value in values:
        if not isinstance(value, str | int | float) or not str(value).strip() or str(value) != str(value).strip():
            raise OptionError(
                f"values must be numbers, or texts that neither are empty nor begin or end with a space, but one is "
                f"{value!r}."
            )
    texts = [str(value) for value in values]
    for text in texts:
        if texts.count(text) > 1:
            raise OptionError(f"values must look different in a table, but {text} comes more than once.")


def _read_option(table: Mapping[str, Any], key: str, kind: str) -> Any:
    """A number, whole for integers, or whether a parameter is on a logarithmic scale."""
    if key == "log":
        return _flag(table, key, default=False)
    value = _number(table, key)
    if kind == "real" or value is None:
        return value
    if not value.is_integer():
        raise OptionError(f"{key} of an integer must be a whole number, but is {value:g}.")
    return int(value)


def _read_objective(name: str, table: Mapping[str, Any]) -> Objective:
    with _about(f"[objectives.{name}]"):
        _check_keys(table, optional=("maximize", *_OUTCOME_KEYS))
        return Objective(name, maximize=_flag(table, "maximize", default=True), likelihood=_read_likelihood(table))


def _read_constraint(name: str, table: Mapping[str, Any]) -> Constraint:
    with _about(f"[constraints.{name}]"):
        _check_keys(table, optional=("lower", "upper", *_OUTCOME_KEYS))
        return Constraint(
            upper=_number(table, "upper"),
            lower=_number(table, "lower"),
            likelihood=_read_likelihood(table),
            name=name,
        )


def _read_likelihood(table: Mapping[str, Any]) -> str | AbstractLikelihood:
    """A likelihood by name, with its known noise or its number of trials."""
    name, noise, trials = table.get("likelihood", "gaussian"), _number(table, "noise"), _number(table, "trials")
    if not isinstance(name, str) or name in names(num_inputs=2):
        raise OptionError(f"likelihood must be the name of one with outcomes, such as 'poisson', but is {name!r}.")
    likelihood = from_name(name)
    if noise is not None and not likelihood.is_gaussian:
        raise OptionError(f"noise is the standard deviation of gaussian outcomes, but the likelihood is {name!r}.")
    if (trials is not None) != likelihood.needs_row_data:
        raise OptionError("A binomial outcome needs its number of trials, and no other has one: trials = 30.")
    if trials is not None:
        return likelihood.with_row_data(trials)
    if noise is not None:
        if noise <= 0:
            raise OptionError(f"noise must be a positive standard deviation, but is {noise:g}.")
        return Gaussian(noise**2, is_learned=False)
    return name


def _read_sums(tables: Any) -> list[LinearConstraint]:
    if not isinstance(tables, list):
        raise OptionError("linear_constraints are a list. Begin each with a line [[linear_constraints]].")
    sums = []
    for table in tables:
        with _about("[[linear_constraints]]"):
            _check_keys(table, required=("weights",), optional=("lower", "upper"))
            sums.append(
                LinearConstraint(table["weights"], upper=_number(table, "upper"), lower=_number(table, "lower"))
            )
    return sums


def _number(table: Mapping[str, Any], key: str) -> float | None:
    value = table.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise OptionError(f"{key} must be a number, but is {value!r}.")
    return None if value is None else float(value)


def _flag(table: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = table.get(key, default)
    if not isinstance(value, bool):
        raise OptionError(f"{key} must be true or false, but is {value!r}.")
    return value


def _check_keys(table: Mapping[str, Any], *, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> None:
    known = tuple(dict.fromkeys((*required, *optional)))
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise OptionError(f"{key!r} is not known.{hint} What can be set is {', '.join(known)}.")
    for key in required:
        if key not in table:
            raise OptionError(f"{key!r} is missing.")


@contextmanager
def _about(where: str) -> Iterator[None]:
    """Say in errors which part of the file they are about."""
    try:
        yield
    except StreamGPError as error:
        separator = " " if isinstance(error, FileFormatError) else ": "
        raise FileFormatError(f"{where}{separator}{error}") from None
