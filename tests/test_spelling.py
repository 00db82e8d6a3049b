"""Names and prose have American spelling, as PyTorch and BoTorch do."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"src": "*.py", "docs": "*.md", "news": "*.md", "benchmarks": "*.py", "paper": "*.py"}
FILES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(path for folder, pattern in FOLDERS.items() for path in sorted((ROOT / folder).rglob(pattern))),
]
BRITISH = re.compile(
    r"(?:optim|normal|standard|factor|symmetr|summar|general|initial|minim|maxim|organ|recogn|parameter|regular|linear"
    r"|discret|vector|random|penal|marginal|fantas|synchron|regional)is(?:e|ing|ation)|behaviour|\bcolour|\bfavour|neighbour(?!s\":)"
    r"|\blicence|\bcentre|\bmodell(?:ed|ing)\b|\blabelled\b|\btowards\b|analys(?:e[ds]?|ing)\b",
    flags=re.IGNORECASE,
)


def test_no_file_has_british_spelling():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}"
        for path in FILES
        if "_build" not in path.parts and "generated" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for match in BRITISH.finditer(line)
    ]
    assert found == []


@pytest.mark.parametrize("word", ["optimise", "Standardised", "centres", "neighbouring", "towards", "licence"])
def test_british_words_are_recognized(word):
    assert BRITISH.search(word)


@pytest.mark.parametrize("word", ["optimize", "analysis", "precise", "ModelList", "noise", "neighborhood"])
def test_other_words_are_not(word):
    assert not BRITISH.search(word)
