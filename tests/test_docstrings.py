"""The examples in the docstrings of public names run."""

import inspect
import re

import pytest
import torch

import streamgp as sg


def _blocks_of(value: object) -> list[str]:
    return re.findall(r"```python\n(.*?)```", inspect.getdoc(value) or "", flags=re.DOTALL)


NAMES = [name for name in sg.__all__ if _blocks_of(getattr(sg, name))]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_docstring_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    for block in _blocks_of(getattr(sg, name)):
        exec(compile(block, name, "exec"), {"sg": sg})


def test_what_users_begin_with_has_an_example():
    begin = {"SparseGP", "MultiOutputGP", "OnlineGP", "Optimizer", "TurboOptimizer", "PoolLearner", "fit", "merge"}
    begin |= {"StreamingGPRegressor", "StreamingGPClassifier", "from_gpytorch", "load"}
    assert begin <= set(NAMES)
