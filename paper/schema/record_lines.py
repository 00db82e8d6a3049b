"""One line of a file of results: a JSON object with a version and the fields of a record."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from paper.schema.record import UnitRecord
from streamgp.errors import FileFormatError, ValueRangeError

__all__ = ["VERSION", "as_json", "read_line", "write_line"]

# Counts up when a field changes its meaning.
VERSION = 1
_KINDS: Mapping[str, tuple[type, ...]] = {
    "study": (str,),
    "problem": (str,),
    "method": (str,),
    "seed": (int,),
    "scale": (str,),
    "settings": (dict,),
    "outcome": (dict,),
    "seconds": (int, float),
    "machine": (str,),
    "software": (dict,),
    "finished": (str,),
}
# Fields that came later: older lines lack them.
_LATER: Mapping[str, tuple[type, ...]] = {"processor_seconds": (int, float)}
_WORDS = {str: "text", int: "a whole number", float: "a number", dict: "an object"}


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """What a mapping looks like after it was written and read: tuples are lists, keys are texts.

    Raises:
        ValueRangeError: If it holds NaN, an infinity, or something that JSON does not know.
    """
    try:
        content: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueRangeError(
            f"Results must be finite numbers, texts, truths, lists and tables of them, as JSON has them, but {error}. "
            "Convert tensors and arrays with tolist(), and leave out what is not finite."
        ) from None
    return content


def write_line(record: UnitRecord) -> str:
    """A record as a line, with its end."""
    return f"{json.dumps({'version': VERSION, **as_json(asdict(record))}, ensure_ascii=False)}\n"


def read_line(content: bytes) -> UnitRecord:
    """A record from a line.

    Raises:
        FileFormatError: If it is none; the sentence does not name the file.
    """
    entry = _read_object(content)
    version = entry.get("version")
    if version != VERSION or isinstance(version, bool):
        raise FileFormatError(
            f"its version must be {VERSION}, but is {version!r}. Update streamgp, or run the unit again"
        )
    missing = [name for name in _KINDS if name not in entry]
    if missing:
        raise FileFormatError(f"it lacks the fields {', '.join(missing)}. Run the unit again")
    later = {name: kinds for name, kinds in _LATER.items() if entry.get(name) is not None}
    for name, kinds in (*_KINDS.items(), *later.items()):
        if not isinstance(entry[name], kinds) or isinstance(entry[name], bool):
            raise FileFormatError(
                f"its field {name} must be {_WORDS[kinds[-1]]}, but is {json.dumps(entry[name])[:40]}. "
                "Run the unit again"
            )
    if not all(isinstance(number, str) for number in entry["software"].values()):
        raise FileFormatError("its field software must hold versions as texts. Run the unit again")
    return UnitRecord(**{field.name: entry[field.name] for field in fields(UnitRecord) if field.name in entry})


def _read_object(content: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(content.decode(), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"it cannot be read as JSON ({error})") from error
    if not isinstance(entry, dict):
        raise FileFormatError(f"it holds a {type(entry).__name__} and not an object")
    return entry


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a finite number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)
