"""Modules that are loaded, and when: each case in a fresh interpreter, without the hooks of the tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import streamgp

HEAVY = ("torch", "gpytorch", "botorch", "matplotlib", "scipy")


def loaded_after(code: str) -> set[str]:
    """Run code in a new interpreter and return which of the heavy packages it has loaded."""
    report = f"\nimport sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import streamgp") == set()


def test_the_errors_load_nothing_heavy():
    assert loaded_after("import streamgp; streamgp.errors.ShapeError") == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["demo", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    code = f"""
import sys
from streamgp.cli.app import main
sys.argv = ["streamgp", *{arguments!r}]
try:
    main()
except SystemExit as stop:
    assert stop.code == 0, stop.code
"""
    assert loaded_after(code) == set()


@pytest.mark.slow
def test_likelihoods_do_not_load_gpytorch_and_the_core_does_not_load_botorch():
    likelihoods = "import sys, streamgp.likelihoods; assert 'gpytorch' not in sys.modules\n"
    loaded = loaded_after(likelihoods + "import streamgp; streamgp.SparseGP, streamgp.load, streamgp.likelihoods")
    assert "torch" in loaded
    assert "botorch" not in loaded


@pytest.mark.parametrize("name", streamgp.__all__)
def test_every_public_name_can_be_reached(name):
    assert getattr(streamgp, name) is not None
    assert name in dir(streamgp)


def test_type_checkers_see_every_public_name():
    tree = ast.parse(Path(streamgp.__file__).read_text(encoding="utf-8"))
    (branch,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.name for node in branch.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(streamgp.__all__) - {"__version__"}


def test_an_unknown_name_is_refused_with_the_names_that_exist():
    with pytest.raises(AttributeError, match="SparesGP"):
        _ = streamgp.SparesGP


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "streamgp", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"streamgp {streamgp.__version__}"
