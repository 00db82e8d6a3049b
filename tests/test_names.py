"""One name for one thing: no class name twice, and none of the names that were given up."""

import ast
import functools
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


@functools.cache
def names():
    """Names of modules and of what they define, of all classes, and of all arguments.

    The syntax trees are not kept: a million objects would make each collection of garbage slow.
    """
    defined, classes, arguments = [], [], set()
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        defined += [path.stem, *(node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.append(node.name)
            elif isinstance(node, ast.arguments):
                arguments |= {each.arg for each in (*node.posonlyargs, *node.args, *node.kwonlyargs)}
    return defined, classes, arguments


def test_no_class_name_stands_for_two_things():
    # A leading underscore does not make it another word to a reader.
    counts = Counter(name.lstrip("_") for name in names()[1])
    assert {name for name, count in counts.items() if count > 1} == SAME_THING


def test_names_that_were_given_up_do_not_come_back():
    assert not {name for name in names()[0] if name.lstrip("_") in GIVEN_UP}


def test_no_argument_has_a_name_that_was_given_up():
    assert not names()[2] & (GIVEN_UP - {"sentences"})  # of what is printed
