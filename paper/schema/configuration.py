"""How a study is run at a scale, from TOML."""

import difflib
import math
import tomllib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, final, get_args, get_origin, get_type_hints

from paper.schema.results import as_json
from paper.schema.study import Study
from streamgp.errors import OptionError

__all__ = ["SCALES", "Configuration", "read_configuration", "read_own_configuration", "suggest"]

SCALES = ("quick", "full")
_KEYS = ("num_trials", "seconds_per_unit", "settings")
_WORDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text"}


@final
@dataclass(frozen=True)
class Configuration:
    """Settings of a study at a scale.

    Attributes:
        scale: `"quick"`, `"full"`, or the name of the user's own settings.
        num_trials: Number of seeds of a figure that is statistical.
        seconds_per_unit: Rough time of one unit on one core, where none of its method has run.
        settings: What each unit is given.
    """

    scale: str
    num_trials: int
    seconds_per_unit: float
    settings: Any

    @property
    def values(self) -> dict[str, Any]:
        """The settings as records hold them."""
        return as_json(asdict(self.settings))


def read_configuration(study: Study[Any], scale: str) -> Configuration:
    """The configuration of a study that the repository has.

    Args:
        study: The study.
        scale: `"quick"` or `"full"`.

    Raises:
        OptionError: If the file lacks a key, has one too many, or one of the wrong type.
    """
    name = f"{study.name}.toml"
    tables = _parse(files("paper").joinpath("settings", name).read_bytes(), name)
    _check_keys(tables, SCALES, name)
    return _read(study, scale, tables[scale], file=name)


def read_own_configuration(study: Study[Any], path: Path) -> Configuration:
    """A user's own configuration: a file with one table, whose name is the name of the scale.

    Raises:
        OptionError: If it is not such a file, or the name is one of the repository's own scales.
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
    if scale in SCALES or not scale.replace("-", "").replace("_", "").isalnum():
        raise OptionError(
            f"{path} must name its table with letters, digits, - and _, as a directory of results is named after it, "
            f"and not {' or '.join(SCALES)}, but names it {scale!r}."
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
    _check_keys(table, _KEYS, where)
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
    return Configuration(scale, num_trials, seconds, study.settings(**values))


def _check_keys(table: Any, keys: tuple[str, ...], where: str) -> None:
    if not isinstance(table, dict):
        raise OptionError(f"{where} must be a table with the keys {', '.join(keys)}, but is {table!r}.")
    for key in table:
        if key not in keys:
            raise OptionError(
                f"{where}: the key {key!r} is unknown.{suggest(key, keys)} Allowed are {', '.join(keys)}."
            )
    missing = [key for key in keys if key not in table]
    if missing:
        raise OptionError(f"{where}: the keys {', '.join(missing)} are missing. Set all of {', '.join(keys)}.")


def _convert(value: Any, kind: Any, *, where: str) -> Any:
    """A value of TOML as the type of a field."""
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        if not isinstance(value, list) or (kinds[-1] is not Ellipsis and len(value) != len(kinds)):
            size = "" if kinds[-1] is Ellipsis else f" with {len(kinds)} entries"
            raise OptionError(f"{where} must be a list{size}, but is {value!r}.")
        kinds = kinds[:1] * len(value) if kinds[-1] is Ellipsis else kinds
        pairs = enumerate(zip(value, kinds, strict=True))
        return tuple(_convert(each, one, where=f"{where}[{index}]") for index, (each, one) in pairs)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    is_right = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if not is_right or (isinstance(value, float) and not math.isfinite(value)):
        raise OptionError(f"{where} must be {_WORDS[kind]}, but is {value!r}.")
    return value
