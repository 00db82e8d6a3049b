"""The examples in docstrings run."""

import ast
import inspect
import re
from pathlib import Path

import pytest
import torch

import streamgp as sg

SOURCE = Path(sg.__file__).parent
PAPER = Path(__file__).parents[1] / "paper"


def _blocks_of(text: str | None) -> list[str]:
    return re.findall(r"```python\n(.*?)```", inspect.cleandoc(text or ""), flags=re.DOTALL)


def _examples():
    """Name and code of every example, wherever in the package it is."""
    for path in sorted([*SOURCE.rglob("*.py"), *PAPER.rglob("*.py")]):
        if "```python" not in (text := path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for block in _blocks_of(ast.get_docstring(node, clean=False)):
                    yield getattr(node, "name", path.stem), block


EXAMPLES = list(_examples())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_the_example_of_a_docstring_runs(name, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for extra in re.findall(
        r"^(?:from|import) (?:streamgp\.integrations\.)?(optuna|river)\b", code, flags=re.MULTILINE
    ):
        pytest.importorskip(extra, reason=f"the example needs an extra with the package {extra}")
    torch.manual_seed(0)
    exec(compile(code, name, "exec"), {"sg": sg})


def test_what_users_begin_with_has_an_example():
    begin = {"SparseGP", "MultiOutputGP", "OnlineGP", "Optimizer", "TurboOptimizer", "Learner", "fit", "merge"}
    begin |= {"StreamingGPRegressor", "StreamingGPClassifier", "from_gpytorch", "load"}
    begin |= {"Real", "Integer", "Ordinal", "Categorical", "Prediction", "ConditionedGP", "StreamGPSampler"}
    assert begin <= {name for name, _ in EXAMPLES}


def test_every_likelihood_that_has_a_name_has_an_example():
    with_example = {name for name, _ in EXAMPLES}
    classes = {type(sg.likelihoods.from_name(name)) for name in sg.likelihoods.names()}
    assert {each.__name__ for each in classes} <= with_example
