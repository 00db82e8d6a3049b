"""The examples of the README and of the guides run."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


# Pages of text alone have nothing to run; tutorials and cells of other pages are run when the site is built.
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if blocks_of(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # of files that the page writes and imports
    torch.manual_seed(0)
    blocks = blocks_of(page)
    assert blocks
    for extra in re.findall(r"^(?:from|import) (ax|distributed|optuna|river)\b", "\n".join(blocks), flags=re.MULTILINE):
        pytest.importorskip(extra, reason=f"the page needs an extra with the package {extra}")
    if any("paper.datasets" in block for block in blocks):
        request.getfixturevalue("data_directory")
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


def test_python_is_never_shown_without_being_run():
    """Indented code is for commands; Python has a fence with its name, or is a cell."""
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"^    (?:import |from |\w+ = |print\()", text, flags=re.MULTILINE), page
        kinds = set(re.findall(r"^```(\S+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert kinds <= {
            "python",
            "c",
            "console",
            "sh",
            "toml",
            "{code-cell}",
            "{include}",
            "{literalinclude}",
            "{toctree}",
            "text",
        }, page
        if "python" in kinds and "_build" not in page.parts:
            assert page in PAGES
