"""Every figure of the report obeys the laws of figures."""

import ast
from pathlib import Path

import pytest

from paper import figures

NAMES = sorted(path.stem for path in Path(figures.__file__).parent.glob("[!_]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_suite_of_its_laws(name):
    path = Path(__file__).with_name(f"test_{name}.py")
    assert path.exists(), f"add {path.name} with a class that inherits FigureLaws"
    classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    bases = {base.id for each in classes for base in each.bases if isinstance(base, ast.Name)}
    assert "FigureLaws" in bases
