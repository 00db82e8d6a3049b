"""An integration whose package is missing says which one, and how to install it."""

import importlib
import sys
import tomllib
from pathlib import Path

import pytest

from streamgp.errors import MissingPackageError
from streamgp.integrations.extras import missing_package

PACKAGES = {"ax": "ax", "dask": "dask", "optuna": "optuna", "river": "river"}


@pytest.fixture(params=PACKAGES)
def without_package(request, monkeypatch):
    """An extra whose package cannot be found, as if neither it nor the integration had been imported before."""
    extra = request.param
    for name in list(sys.modules):
        if f"{name}.".startswith((f"streamgp.integrations.{extra}.", f"{PACKAGES[extra]}.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, PACKAGES[extra], None)
    return extra


@pytest.mark.slow  # imports torch and BoTorch
def test_an_import_without_the_package_says_how_to_install_it(without_package):
    extra = without_package
    with pytest.raises(
        MissingPackageError, match=rf"{extra} needs the package .*not installed.*'streamgp\[{extra}\]'"
    ) as caught:
        importlib.import_module(f"streamgp.integrations.{extra}")
    assert caught.value.name.split(".")[0] == PACKAGES[extra]


def test_it_is_an_import_error_with_the_name_of_the_package():
    error = missing_package(ModuleNotFoundError("No module named 'river'", name="river"), "river")
    assert isinstance(error, ImportError)
    assert error.name == "river"


def test_the_extras_exist():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert set(PACKAGES) <= set(tomllib.loads(text)["project"]["optional-dependencies"])
