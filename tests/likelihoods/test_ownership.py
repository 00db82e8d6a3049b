"""What is known of a likelihood, it says itself: code outside does not ask which one it is, by class or by name."""

import ast
import functools
from pathlib import Path

import pytest

import streamgp
from streamgp import likelihoods

ROOT = Path(streamgp.__file__).parent
CLASSES = {name for name in likelihoods.__all__ if name[0].isupper() and not name.startswith("Abstract")}
CLASSES.add("WrappedLikelihood")
CLASSES.remove("Ordinal")  # a parameter of a space has that name, too
NAMES = set(likelihoods.names()) | {"softmax", "heteroskedastic"} | CLASSES
# Beside streams, which know a few likelihoods by name and compute their rows by compiled functions, one for each kind.
AT_HOME = ("likelihoods", "streams", "testing")
ASKING_FOR_NAMES = {
    "cli/stream/options.py",
    "cli/stream/rows.py",
    "integrations/dask/estimators.py",
    "integrations/optuna/sampler.py",
}
ASKING_FOR_CLASSES = {"pools/learner.py"}  # comparisons stand beside a probit alone


def questions(tree):
    """Nodes of a module that tell likelihoods from each other, as pairs of a kind and what is asked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in ("isinstance", "issubclass"):
            yield "class", node.args[1]
        elif isinstance(node, ast.Compare):
            for each in (node.left, *node.comparators):
                yield "class", each
                yield "name", each
        elif isinstance(node, ast.MatchClass):
            yield "class", node.cls
        elif isinstance(node, ast.MatchValue):
            yield "name", node.value
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):  # {...}[likelihood]
            for key in node.value.keys:
                yield "class", key
                yield "name", key
        elif isinstance(node, ast.Call) and _name(node.func) in ("hasattr", "getattr") and len(node.args) > 1:
            yield "name", node.args[1]


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


@functools.cache
def kinds_of_questions(text):
    """Which questions a module asks: `"class"`, `"name"`, both or none."""
    found = set()
    tree = ast.parse(text)
    # Names for several likelihoods, such as _COUNTS = ("poisson", "binomial"), count where they are compared.
    groups = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Tuple | ast.List | ast.Set | ast.Dict)
    }
    for kind, asked in questions(tree):
        for part in ast.walk(groups.get(_name(asked), asked)):
            if kind == "class" and _name(part) in CLASSES:
                found.add(kind)
            if kind == "name" and isinstance(part, ast.Constant) and part.value in NAMES:
                found.add(kind)
    return found


def asking_files(kind):
    paths = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in AT_HOME]
    return {path.relative_to(ROOT).as_posix() for path in paths if kind in kinds_of_questions(path.read_text())}


def test_no_further_file_asks_which_class_a_likelihood_is():
    assert asking_files("class") <= ASKING_FOR_CLASSES


def test_no_further_file_compares_names_of_likelihoods():
    assert asking_files("name") <= ASKING_FOR_NAMES


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(one, Poisson)",
        "isinstance(one, likelihoods.Poisson | Binomial)",
        "isinstance(\n    one,\n    (Gaussian, StudentT),\n)",
        "issubclass(type(one), Beta)",
        "type(one) is Poisson",
        "one.__class__ in (Poisson, Gamma)",
        "type(one).__name__ == 'Poisson'",
        "one.name == 'poisson'",
        "'binomial' != name",
        "name in {'poisson', 'negative_binomial'}",
        "_COUNTS = ('poisson', 'binomial')\nname in _COUNTS",
        "match name:\n    case 'poisson':\n        pass",
        "match one:\n    case Poisson():\n        pass",
        "{'poisson': 1, 'binomial': 2}[name]",
    ],
)
def test_every_way_of_asking_is_seen(text):
    assert kinds_of_questions(text)


@pytest.mark.parametrize(
    "text", ["Poisson(2.0)", "likelihood = 'poisson'", "f(likelihood='gaussian')", "one.is_gaussian"]
)
def test_making_a_likelihood_is_not_asking(text):
    assert not kinds_of_questions(text)
