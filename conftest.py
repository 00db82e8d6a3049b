"""Settings that all tests share: one thread, fixed seeds, hypothesis without a clock, enforcement of annotations."""

import json
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import scipy.linalg  # noqa: F401 # its BLAS is loaded, so that its threads can be set
import torch
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# The workers of pytest-xdist share the cores; more threads in each only make small operations slower.
_NUM_THREADS = int(os.environ.get("STREAMGP_TEST_THREADS", "1"))
torch.set_num_threads(_NUM_THREADS)
threadpool_limits(_NUM_THREADS, user_api="blas")  # NumPy's and SciPy's, for as long as the tests run

# `rng` is made once for a test and not for each example; examples draw their seeds themselves.
_UNCHECKED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

settings.register_profile("streamgp", deadline=None, derandomize=True, max_examples=6, suppress_health_check=_UNCHECKED)
# Other examples each time, or those of `--hypothesis-seed`: what the scheduled tests of other arithmetic use.
settings.register_profile(
    "thorough", deadline=None, derandomize=False, max_examples=200, suppress_health_check=_UNCHECKED, database=None
)
settings.load_profile("streamgp")

# Enforcing the annotations doubles the time of a test. The quick tests, which run all of the package, do it for the
# first of their parameters, and of these for the first calls and some of the many that repeat them; all tests do it for
# all calls where this variable is "all", as in `make test-slow`; none do where it is "none", as in the tests of other
# arithmetic, which repeat what has been checked.
_ANNOTATIONS = os.environ.get("STREAMGP_TEST_ANNOTATIONS", "quick")
_NUM_ENFORCED = 400  # calls; most tests make fewer
_STRIDE = 17  # of the calls that follow; a prime, so that loops over a few functions come to each of them
_IS_REPEATED = pytest.StashKey[bool]()


class _Enforcement(type(jaxtyping.config)):
    """Decides for each call whether its annotations are enforced."""

    @property
    def jaxtyping_disable(self) -> bool:
        if self.is_disabled or _ANNOTATIONS == "all":
            return self.is_disabled
        self.num_calls += 1
        return self.num_calls > _NUM_ENFORCED and self.num_calls % _STRIDE > 0

    @jaxtyping_disable.setter
    def jaxtyping_disable(self, is_disabled: bool) -> None:
        self.is_disabled = is_disabled
        self.num_calls = 0


jaxtyping.config.__class__ = _Enforcement
jaxtyping.config.update("jaxtyping_disable", False)
_jaxtyped = jaxtyping.jaxtyped


def _jaxtyped_unless_nested(*arguments: Any, **options: Any) -> Any:
    """The decorator that the import hook puts around every function.

    It takes milliseconds, each time that a function within a function is made.
    """
    if arguments:
        return _jaxtyped(*arguments, **options)

    def decorate(function: Any) -> Any:
        is_nested = "<locals>" in getattr(function, "__qualname__", "")
        return function if is_nested and jaxtyping.config.jaxtyping_disable else _jaxtyped(function, **options)

    return decorate


jaxtyping.jaxtyped = _jaxtyped_unless_nested

# pyproject.toml names the library; jaxtyping's option takes one package only where the type checker has arguments. The
# tests of the paper, which lie in it, are not hooked: a fixture that yields would be one no longer.
_PAPER = [f"paper.{each.stem}" for each in (Path(__file__).parent / "paper").iterdir() if each.name != "tests"]
jaxtyping.install_import_hook(_PAPER, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        item.stash[_IS_REPEATED] = name in seen
        seen.add(name)


def pytest_collection_finish() -> None:
    # BoTorch would compile a faster kernel on first use: a minute on a new machine, for the values that it has anyway.
    if logei := sys.modules.get("botorch.acquisition.multi_objective.logei"):
        logei._load_attempted = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    is_slow = any(item.get_closest_marker(name) for name in ("slow", "thorough"))
    is_enforced = _ANNOTATIONS == "all" or (_ANNOTATIONS == "quick" and not is_slow and not item.stash[_IS_REPEATED])
    jaxtyping.config.update("jaxtyping_disable", not is_enforced)


@pytest.fixture
def rng() -> torch.Generator:
    """A generator with a fixed seed."""
    return torch.Generator().manual_seed(20_230_517)


@pytest.fixture
def rewrite() -> Callable[[Path, Callable[[Any, Any], object]], None]:
    """Change the description and the parts of a saved file."""

    def change_file(path: Path, change: Callable[[Any, Any], object]) -> None:
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        description = json.loads(parts["description.json"])
        change(description, parts)
        parts["description.json"] = json.dumps(description).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content)

    return change_file


@pytest.fixture
def data_directory(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mirror of the data sets that `STREAMGP_DATA_DIR` names; nothing beside the project is looked for."""
    named = os.environ.get("STREAMGP_DATA_DIR")
    if not named or not Path(named).is_dir():
        pytest.skip("no data sets. Point STREAMGP_DATA_DIR at a mirror of them, an absolute path.")
    monkeypatch.setenv("STREAMGP_DATA_DIR", named)
    return Path(named)
