"""One name for one thing: no class name twice, and none of the names that were given up."""

import ast
from collections import Counter
from pathlib import Path

import streamgp

ROOT = Path(streamgp.__file__).parent
# River's estimators are those of scikit-learn, for rows of another kind.
SAME_THING = {"StreamingGPClassifier", "StreamingGPRegressor"}
# Modules, classes and functions; words such as these may still occur in sentences.
GIVEN_UP = {
    "drawers",
    "imagined",
    "lts",
    "sentences",
    "panels",
    "surveyors",
    "Complaint",
    "Outlook",
    "Told",
    "loyalty",
    "deficit",
    "improvement_function",
    "total_counts",
}


def definitions():
    """Names of all modules, classes and functions, with what they are."""
    for path in ROOT.rglob("*.py"):
        yield "module", path.stem
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield "class", node.name
            elif isinstance(node, ast.FunctionDef):
                yield "function", node.name


def test_no_class_name_stands_for_two_things():
    # A leading underscore does not make it another word to a reader.
    counts = Counter(
        node.name.lstrip("_")
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in counts.items() if count > 1} == SAME_THING


def test_names_that_were_given_up_do_not_come_back():
    assert not {name for _, name in definitions() if name.lstrip("_") in GIVEN_UP}


def test_no_argument_has_a_name_that_was_given_up():
    arguments = {
        argument.arg
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.arguments)
        for argument in (*node.posonlyargs, *node.args, *node.kwonlyargs)
    }
    assert not arguments & (GIVEN_UP - {"sentences"})  # of what is printed
