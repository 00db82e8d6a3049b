"""Classes that files may hold, by names that stay when code moves."""

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar, final, get_type_hints

import numpy as np
import torch
from jaxtyping import jaxtyped
from torch import Tensor

from streamgp.errors import FileFormatError, OptionError, UnsupportedError
from streamgp.storage.archive import is_finite
from streamgp.storage.hints import matches

__all__ = [
    "Fields",
    "StoredClass",
    "ask_when_unknown",
    "check_finite_fields",
    "find_class",
    "find_name",
    "import_home",
    "is_registered",
    "register",
    "registered",
]

Class = TypeVar("Class", bound=type)
Fields = dict[str, Any]

# Modules that register the classes whose names start so, imported when a file names one.
_HOMES = {
    "evidence": "streamgp.storage",
    "gp": "streamgp.storage",
    "likelihoods": "streamgp.storage",
    "tables": "streamgp.storage",
    "sites": "streamgp.conditioning",
    "conditioning": "streamgp.conditioning",
    "training": "streamgp.training",
    "models": "streamgp.models",
    "acquisition": "streamgp.acquisition",
    "loops": "streamgp.loops",
    "optimizers": "streamgp.optimizers",
    "pools": "streamgp.pools",
    "streams": "streamgp.streams",
    "keyed": "streamgp.streams.keyed",
    "stream": "streamgp.streams.saving",
    "estimators": "streamgp.streams.saving",
    "preprocessing": "streamgp.streams.preprocessing",
    "batch": "streamgp.estimators",
    "cli": "streamgp.cli.stream.checkpoints",
}


@final
@dataclass(frozen=True, eq=False)
class StoredClass:
    """Functions that turn objects of a class into fields, and fields into an object.

    Attributes:
        cls: The class.
        name: Its name in files.
        to_fields: Its fields by name.
        from_fields: Makes an object of them; its parameters and their annotations say what it expects.
        check: Says what is wrong with an object that was read, by raising an error of ours; None if anything goes.
    """

    cls: type
    name: str
    to_fields: Callable[[Any], Mapping[str, Any]]
    from_fields: Callable[..., Any]
    check: Callable[[Any], None] | None = None

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """Annotations of the fields."""
        source = self.cls if self.from_fields is self.cls and _has_fields(self.cls) else self.from_fields
        hints = get_type_hints(source if not inspect.isclass(source) or _has_fields(source) else source.__init__)
        return {name: hint for name, hint in hints.items() if name != "return"}

    @cached_property
    def required(self) -> frozenset[str]:
        """Names of the fields that must be there."""
        parameters = inspect.signature(self.from_fields).parameters.values()
        return frozenset(each.name for each in parameters if each.default is inspect.Parameter.empty)

    @cached_property
    def allowed(self) -> frozenset[str]:
        """Names of the fields that may be there."""
        return frozenset(inspect.signature(self.from_fields).parameters)

    def build(self, fields: Mapping[str, Any]) -> Any:
        """Make an object of fields that were read, after comparing them with those of the class and its annotations.

        Raises:
            StreamGPError: If a field is missing, unknown or of another type or shape, or if the class refuses it.
        """
        missing, unknown = sorted(self.required - fields.keys()), sorted(fields.keys() - self.allowed)
        if missing or unknown:
            what = f"lacks {missing}" if missing else f"has {unknown}, which are not known"
            raise FileFormatError(f"The file's {self.name} {what}. The file is damaged, or of a newer streamgp.")
        with jaxtyped("context"):  # within which axes of the same letter must have the same size
            for name, value in fields.items():
                if name in self.hints and not matches(value, self.hints[name]):
                    shape = f" of shape {tuple(value.shape)}" if isinstance(value, Tensor) else ""
                    raise FileFormatError(
                        f"The field {name} of the file's {self.name} is a {type(value).__name__}{shape}, which is not "
                        "what it should be, or does not fit the others. The file is damaged; use an earlier copy."
                    )
        value = self.from_fields(**fields)
        if self.check is not None:
            self.check(value)
        return value


_BY_NAME: dict[str, StoredClass] = {}
_BY_CLASS: dict[type, StoredClass] = {}
_OTHERS: list[Callable[[], None]] = []


def register(
    cls: Class | None = None,
    /,
    *,
    name: str | None = None,
    to_fields: Callable[[Any], Mapping[str, Any]] | None = None,
    from_fields: Callable[..., Any] | None = None,
    check: Callable[[Any], None] | None = None,
) -> Any:
    """Let objects of a class be saved; a decorator, with or without arguments.

    A dataclass or named tuple needs nothing else: its fields are read from it, so that none can be forgotten. Its
    annotations are checked when a file is read. Any other class says how to take it apart and put it together:

    ```python
    from dataclasses import dataclass

    from streamgp.storage import register

    @register
    @dataclass(frozen=True)
    class Counters:
        num_asked: int = 0

    class Tally:
        def __init__(self, counts: tuple[int, ...]) -> None:
            self.total = sum(counts)

    register(Tally, to_fields=lambda tally: {"counts": (tally.total,)})
    ```

    Args:
        cls: The class.
        name: Its name in files, which stays when the class is renamed or moved. Within the package the default is
            `"package.Class"`, elsewhere the full name.
        to_fields: Takes an object apart.
        from_fields: Puts an object together; the constructor by default. The names of its parameters are those of the
            fields, and their annotations are checked.
        check: Called with every object that was read; raises an error of ours if its values make no sense.
    """
    if cls is None:
        return lambda decorated: register(
            decorated,
            name=name,
            to_fields=to_fields,
            from_fields=from_fields,
            check=check,
        )
    if to_fields is None and not _has_fields(cls):
        raise OptionError(f"{cls.__name__} is neither a dataclass nor a named tuple. Pass to_fields and from_fields.")
    stored = StoredClass(
        cls=cls,
        name=name or _default_name(cls),
        to_fields=to_fields or _fields_of,
        from_fields=from_fields or cls,
        check=check,
    )
    other = _BY_NAME.get(stored.name)
    if other is not None and other.cls.__qualname__ != cls.__qualname__:
        raise OptionError(f"The name {stored.name!r} is taken by {other.cls}. Pass another name=...")
    _BY_NAME[stored.name] = _BY_CLASS[cls] = stored
    return cls


def ask_when_unknown(register_more: Callable[[], None]) -> None:
    """Name a function that registers what has become known elsewhere, such as likelihoods of a user's own."""
    _OTHERS.append(register_more)


def _ask_others() -> None:
    for register_more in _OTHERS:
        register_more()


def registered() -> tuple[StoredClass, ...]:
    """All classes that were registered so far."""
    return tuple(_BY_CLASS.values())


def is_registered(cls: type) -> bool:
    """Say whether a class was registered."""
    return cls in _BY_CLASS


def find_class(cls: type, where: str) -> StoredClass:
    """Find the registration of a class.

    Args:
        cls: The class.
        where: Name in errors of the object's place.
    """
    if cls not in _BY_CLASS:
        _ask_others()
    if cls not in _BY_CLASS:
        raise UnsupportedError(
            f"{where} is a {cls.__name__}, and it is not known how to save one. Register its class with "
            "streamgp.storage.register, or leave it out."
        )
    return _BY_CLASS[cls]


def find_name(name: object) -> StoredClass:
    """Find the class with a name, imported if it belongs to the package."""
    if not isinstance(name, str):
        raise FileFormatError(f"The file names a class by {name!r}.")
    if name not in _BY_NAME:
        import_home(name)
        _ask_others()
    if name not in _BY_NAME:
        raise FileFormatError(
            f"The file holds an object of class {name!r}, which is not known. If it is yours, import the module that "
            "registers it, and load again; if not, upgrade streamgp."
        )
    return _BY_NAME[name]


def import_home(name: str) -> None:
    """Import the part of the package that knows a name."""
    home = _HOMES.get(name.split(".")[0])
    if home is not None:
        try:
            import_module(home)
        except ModuleNotFoundError:  # a part that is not installed
            return


def _has_fields(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) or (issubclass(cls, tuple) and cls is not tuple)


def _fields_of(value: Any) -> Fields:
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return dict(value._asdict())


def _default_name(cls: type) -> str:
    parts = cls.__module__.split(".")
    return f"{parts[1]}.{cls.__qualname__}" if parts[0] == "streamgp" and len(parts) > 1 else _full_name(cls)


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def check_finite_fields(value: Any) -> None:
    """Refuse a dataclass with numbers that are not finite, or with arrays of several precisions."""
    precisions = set()
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        held = torch.from_numpy(held) if isinstance(held, np.ndarray) and held.dtype.kind in "fiub" else held
        if (isinstance(held, Tensor) and not is_finite(held)) or (isinstance(held, float) and not math.isfinite(held)):
            raise FileFormatError(f"The {field.name} of a {type(value).__name__} is NaN or infinite.")
        if isinstance(held, Tensor) and held.is_floating_point():
            precisions.add(held.dtype)
    if len(precisions) > 1:
        raise FileFormatError(f"The numbers of a {type(value).__name__} are of several precisions.")
