"""Names that the law suites of a folder of tests cover."""

import importlib.util
from pathlib import Path
from typing import Any

__all__ = ["covered_names"]


def covered_names(folder: Path, laws: tuple[type, ...]) -> set[str]:
    """The names that suites say they cover.

    Args:
        folder: Its files of tests are read.
        laws: Classes from which suites inherit; each suite names what it covers as `covers`.
    """
    names: set[str] = set()
    for path in folder.glob("test_*.py"):
        if path.name == "test_completeness.py":
            continue
        spec = importlib.util.spec_from_file_location(f"completeness_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        suites: list[Any] = [value for name, value in vars(module).items() if name.startswith("Test")]
        names |= {suite.covers for suite in suites if _inherits(suite, laws)}
    return names


def _inherits(value: object, laws: tuple[type, ...]) -> bool:
    return isinstance(value, type) and issubclass(value, laws)
