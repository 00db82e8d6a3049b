"""The wheel holds everything: it is built, installed elsewhere, and used from outside the tree."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = {"ax": "ax", "dask": "distributed", "optuna": "optuna", "river": "river"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    pytest.importorskip("build", reason="building needs the dependency group release")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def install(wheel: Path, folder: Path) -> Path:
    """Make an environment that holds the wheel and nothing else; return where its packages are."""
    venv.create(folder / "environment", with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder / "environment"), "platbase": str(folder / "environment")})
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", paths["purelib"], str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    return Path(paths["purelib"])


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel in it, and with all that the environment of the tests has."""
    folder = tmp_path_factory.mktemp("full")
    packages = install(wheel, folder)
    # Directories named in a .pth file are searched, but .pth files in them, of the editable install, are not followed.
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    return folder


def needed_by(found: Distribution, known: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return what a distribution needs without extras, and what that needs in turn."""
    for text in found.requires or ():
        requirement = Requirement(text)
        name = requirement.name.lower().replace("_", "-")
        is_needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_needed and name not in known:
            known[name] = distribution(requirement.name)
            needed_by(known[name], known)
    return known


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel, what the wheel says that it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    packages = install(wheel, folder)
    (metadata,) = packages.glob("streamgp-*.dist-info")
    for found in needed_by(Distribution.at(metadata), {}).values():
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))))
    return folder


def run(environment: Path, *arguments: str) -> str:
    python = environment / "environment" / "bin" / "python"
    done = subprocess.run(
        [str(python), "-I", *arguments], capture_output=True, text=True, cwd=environment, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.thorough
def test_the_package_comes_from_the_wheel(bare):
    place = run(bare, "-c", "import streamgp; print(streamgp.__file__)")
    assert Path(place.strip()).is_relative_to(bare)


@pytest.mark.thorough
def test_all_public_names_need_no_extra(bare):
    run(bare, "-c", "import streamgp; [getattr(streamgp, name) for name in streamgp.__all__]")
    for absent in ("ax", "dask", "IPython", "ipykernel", "jupyter_client", "optuna", "pytest", "river"):
        assert run(bare, "-c", f"from importlib.util import find_spec; print(find_spec('{absent}'))").strip() == "None"


@pytest.mark.thorough
def test_the_wheel_holds_the_library_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert {name.partition("/")[0].partition("-")[0] for name in archive.namelist()} == {"streamgp"}


@pytest.mark.thorough
def test_the_demo_plays_outside_the_tree(bare):
    run(bare, "-m", "streamgp", "demo", "--output", str(bare / "demo.png"))
    assert (bare / "demo.png").stat().st_size > 1000


@pytest.mark.thorough
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_integration_without_its_package_says_how_to_install_it(bare, extra):
    code = f"""
try:
    import streamgp.integrations.{extra}
except ImportError as error:
    print(error)
"""
    assert f"Install it with: pip install 'streamgp[{extra}]'" in run(bare, "-c", code)


@pytest.mark.thorough
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_integration_is_imported_outside_the_tree(environment, extra):
    pytest.importorskip(EXTRAS[extra], reason=f"needs the extra streamgp[{extra}]")
    run(environment, "-c", f"import streamgp.integrations.{extra}")
