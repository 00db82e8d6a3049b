"""The examples of the README and of the guides run."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


# Pages of text alone have nothing to run; tutorials are run when the site is built.
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if blocks_of(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    blocks = blocks_of(page)
    assert blocks
    for extra in re.findall(r"^(?:from|import) (ax|optuna|river)\b", "\n".join(blocks), flags=re.MULTILINE):
        pytest.importorskip(extra, reason=f"the page needs the extra streamgp[{extra}]")
    if any("streamgp.datasets" in block for block in blocks):
        request.getfixturevalue("data_directory")
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
