"""How a study is run at a scale, from TOML."""

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from types import GenericAlias
from typing import Any, final, get_args, get_origin, get_type_hints

from paper.schema.record_lines import as_json
from paper.schema.study import Study
from streamgp.errors import OptionError

__all__ = ["SCALES", "Configuration", "read_configuration", "read_own_configuration", "suggest"]

SCALES = ("quick", "full")
_KEYS = ("num_trials", "seconds_per_unit", "settings")
_OPTIONAL = ("seconds_by_method",)
_WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text"}


@final
@dataclass(frozen=True)
class Configuration:
    """Settings of a study at a scale.

    Attributes:
        scale: `"quick"`, `"full"`, or the name of the user's own settings.
        num_trials: Number of seeds of a figure that is statistical.
        seconds_per_unit: Rough time of one unit on one core.
        settings: What each unit is given.
        seconds_by_method: The same for methods whose time is known to differ.
    """

    scale: str
    num_trials: int
    seconds_per_unit: float
    settings: Any
    seconds_by_method: Mapping[str, float] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Any]:
        """The settings as records hold them."""
        return as_json(asdict(self.settings))


def read_configuration(study: Study[Any], scale: str) -> Configuration:
    """The configuration of a study that comes with the library.

    Args:
        study: The study.
        scale: `"quick"` or `"full"`.

    Raises:
        OptionError: If the file lacks a key, has one too many, or one of the wrong type.
    """
    name = f"{study.name}.toml"
    source = files("paper").joinpath("settings", name)
    tables = _parse(source.read_bytes(), name)
    _check_keys(tables, SCALES, name)
    return _read(study, scale, tables[scale], file=name)


def read_own_configuration(study: Study[Any], path: Path) -> Configuration:
    """A user's own configuration: a file with one table, whose name is the name of the scale.

    Raises:
        OptionError: If it is not such a file, or the name is one of the library's own scales.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionError(f"{path} cannot be read ({error.strerror}). Name a file with --config.") from error
    tables = _parse(content, str(path))
    if len(tables) != 1 or not isinstance(next(iter(tables.values())), dict):
        raise OptionError(
            f"{path} must hold one table, for example [mine], but holds {', '.join(tables) or 'nothing'}. "
            "Put each set of settings into a file of its own."
        )
    ((scale, table),) = tables.items()
    if scale in SCALES:
        raise OptionError(f"{path} must not name its table [{scale}], which the library has. Choose another name.")
    if not scale.replace("-", "").replace("_", "").isalnum():
        raise OptionError(
            f"{path} must name its table with letters, digits, - and _, as a directory of results is named after it, "
            f"but names it {scale!r}."
        )
    return _read(study, scale, table, file=str(path))


def suggest(name: str, choices: Iterable[str]) -> str:
    """A question that names the choice which is nearest to a name, or nothing."""
    near = difflib.get_close_matches(name, list(choices), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _parse(content: bytes, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except ValueError as error:
        raise OptionError(f"{file} cannot be read as TOML: {error}. Mend it.") from error


def _read(study: Study[Any], scale: str, table: Any, *, file: str) -> Configuration:
    where = f"{file}, [{scale}]"
    _check_keys(table, _KEYS, where, optional=_OPTIONAL)
    kinds = get_type_hints(study.settings)
    names = tuple(field.name for field in fields(study.settings))
    inside = f"{file}, [{scale}.settings]"
    _check_keys(table["settings"], names, inside)
    values = {name: _convert(table["settings"][name], kinds[name], where=f"{inside}: {name}") for name in names}
    num_trials = _convert(table["num_trials"], int, where=f"{where}: num_trials")
    seconds = _convert(table["seconds_per_unit"], float, where=f"{where}: seconds_per_unit")
    if num_trials < 1 or seconds <= 0:
        raise OptionError(
            f"{where}: num_trials and seconds_per_unit must be positive, but are {num_trials}, {seconds}."
        )
    by_method = table.get("seconds_by_method", {})
    inside = f"{file}, [{scale}.seconds_by_method]"
    _check_keys(by_method, (), inside, optional=tuple(study.methods))
    times = {method: _convert(time, float, where=f"{inside}: {method}") for method, time in by_method.items()}
    return Configuration(scale, num_trials, seconds, study.settings(**values), times)


def _check_keys(table: Any, keys: tuple[str, ...], where: str, *, optional: tuple[str, ...] = ()) -> None:
    if not isinstance(table, dict):
        raise OptionError(f"{where} must be a table with the keys {', '.join(keys)}, but is {table!r}.")
    allowed = (*keys, *optional)
    for key in table:
        if key not in allowed:
            raise OptionError(
                f"{where}: the key {key!r} is unknown.{suggest(key, allowed)} Allowed are {', '.join(allowed)}."
            )
    missing = [key for key in keys if key not in table]
    if missing:
        raise OptionError(f"{where}: the keys {', '.join(missing)} are missing. Set all of {', '.join(keys)}.")


def _convert(value: Any, kind: type | GenericAlias, *, where: str) -> Any:
    """A value of TOML as the type of a field."""
    if get_origin(kind) is tuple:
        return _convert_list(value, get_args(kind), where=where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    is_right = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)  # type: ignore[arg-type]
    if not is_right or (isinstance(value, float) and not math.isfinite(value)):
        raise OptionError(f"{where} must be {_WORDS[kind]}, but is {value!r}.")  # type: ignore[index]
    return value


def _convert_list(value: Any, kinds: tuple[Any, ...], *, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise OptionError(f"{where} must be a list, but is {value!r}.")
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(value) != len(kinds):
        raise OptionError(f"{where} must have {len(kinds)} entries, but has {len(value)}.")
    return tuple(
        _convert(each, kind, where=f"{where}[{index}]")
        for index, (each, kind) in enumerate(zip(value, kinds, strict=True))
    )
