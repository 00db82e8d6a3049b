"""What was measured at a place: positives out of tests, a value with its noise, or a count."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamgp.cli.survey.options import SurveyOptions
from streamgp.tables.values import is_missing, read_number

__all__ = ["NOTHING", "Measurement", "read_outcome"]


class Measurement(NamedTuple):
    """What was measured.

    Attributes:
        y: Positives, a value or a count; None for a place that has not been surveyed.
        constant: Number of tests, or variance of the noise; a place yet to be surveyed may have noise.
        is_empty_survey: Whether nobody was tested.
    """

    y: float | None = None
    constant: float | None = None
    is_empty_survey: bool = False


NOTHING = Measurement()


def read_outcome(fields: Mapping[str, Any], options: SurveyOptions) -> Measurement | str:
    """Read an outcome from the cells of a row, or say what is wrong with it."""
    if options.positives is not None and options.tested is not None:
        return _read_tests(fields, options.positives, options.tested)
    if options.count is not None:
        count = _read_count(fields, options.count)
        return count if isinstance(count, str) else Measurement(count)
    assert options.target is not None
    return _read_value(fields, options.target, options.noise)


def _read_tests(fields: Mapping[str, Any], positives: str, tested: str) -> Measurement | str:
    y, total = _read_count(fields, positives), _read_count(fields, tested)
    if isinstance(y, str):
        return y
    if isinstance(total, str):
        return total
    if total == 0 and not y:
        return Measurement(is_empty_survey=True)
    if y is None or total is None:
        if y is None and total is None:
            return NOTHING
        present, absent = (tested, positives) if y is None else (positives, tested)
        return f"{absent!r} is missing where {present!r} is not"
    if y > total:
        return f"{positives!r} is {y:g}, more than {tested!r}, which is {total:g}"
    return Measurement(y, total)


def _read_value(fields: Mapping[str, Any], target: str, noise: str | None) -> Measurement | str:
    y = None if is_missing(fields.get(target)) else read_number(fields, target, "target")
    if isinstance(y, str):
        return y
    if noise is None:
        return Measurement(y)
    if is_missing(fields.get(noise)):
        return NOTHING if y is None else f"the noise {noise!r} is missing where {target!r} is not"
    deviation = read_number(fields, noise, "noise")
    if isinstance(deviation, str):
        return deviation
    if deviation <= 0:
        return f"the noise {noise!r} is {deviation:g}, but a standard deviation must be positive"
    return Measurement(y, deviation**2)


def _read_count(fields: Mapping[str, Any], name: str) -> float | str | None:
    if is_missing(fields.get(name)):
        return None
    value = read_number(fields, name, "count")
    if isinstance(value, float) and not (value >= 0 and value.is_integer()):
        return f"the count {name!r} is {value:g}, but must be a whole number that is not negative"
    return value
