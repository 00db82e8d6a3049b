"""What is known of a likelihood, it says itself: code outside does not ask which class it is."""

import re
from pathlib import Path

import streamgp
from streamgp import likelihoods

ROOT = Path(streamgp.__file__).parent
# A study of a single likelihood, whose scale function no other has.
STILL_ASKING = {"experiments/studies/conditioning.py"}


def asking_files():
    names = [name for name in likelihoods.__all__ if name[0].isupper() and not name.startswith("Abstract")]
    pattern = re.compile(rf"(isinstance\(|type\(\w+\) is )[^\n]*\b({'|'.join(names)}|WrappedLikelihood)\b")
    return {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "likelihoods" not in path.parts[-2:] and pattern.search(path.read_text())
    }


def test_no_further_file_asks_which_class_a_likelihood_is():
    assert asking_files() <= STILL_ASKING
