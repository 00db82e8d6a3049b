"""The wheel holds everything: it is built, installed elsewhere, and used from outside the tree."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXTRAS = ("ax", "dask", "optuna", "river")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A new environment with the wheel in it; what it depends on is read from the one that runs the tests."""
    pytest.importorskip("build", reason="building needs the extra streamgp[release]")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder / "environment"), "platbase": str(folder / "environment")})
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", paths["purelib"], str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # Directories named in a .pth file are searched, but .pth files in them, of the editable install, are not followed.
    (Path(paths["purelib"]) / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    return folder


def run(environment: Path, *arguments: str) -> str:
    python = environment / "environment" / "bin" / "python"
    done = subprocess.run(
        [str(python), "-I", *arguments], capture_output=True, text=True, cwd=environment, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_the_package_comes_from_the_wheel(environment):
    place = run(environment, "-c", "import streamgp; print(streamgp.__file__)")
    assert Path(place.strip()).is_relative_to(environment)


@pytest.mark.thorough
def test_the_report_is_made_outside_the_tree(environment):
    page = str(environment / "page.html")
    run(environment, "-m", "streamgp", "report", "--results", str(ROOT / "results"), "--output", page)
    assert (environment / "page.html").stat().st_size > 1000


@pytest.mark.thorough
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_integration_is_imported_outside_the_tree(environment, extra):
    package = {"dask": "distributed"}.get(extra, extra)
    pytest.importorskip(package, reason=f"needs the extra streamgp[{extra}]")
    run(environment, "-c", f"import streamgp.integrations.{extra}")


@pytest.mark.thorough
def test_the_demo_plays_outside_the_tree(environment):
    run(environment, "-m", "streamgp", "demo", "--output", str(environment / "demo.png"))
    assert (environment / "demo.png").stat().st_size > 1000
