"""The page of the paper's claims says of each figure what its report says, and leads to it."""

import importlib.util
import re
from pathlib import Path

import pytest
from PIL import Image

from paper.report.page import render_page

ROOT = Path(__file__).parents[2]
NAMES = ("fig8", "fig7")


@pytest.fixture(scope="module")
def extension():
    path = ROOT / "docs" / "_extensions" / "paper_verdicts.py"
    spec = importlib.util.spec_from_file_location("paper_verdicts", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def report(extension, tmp_path_factory):
    return extension.read_report(ROOT / "paper" / "results", tmp_path_factory.mktemp("site"), NAMES)


def test_each_claim_has_a_row_that_leads_to_its_part_of_the_report(extension, report):
    rows = [line for line in extension.verdict_table(report).splitlines() if line.startswith("| <a")]
    page = render_page(report)
    for row, name, section in zip(rows, NAMES, report.sections, strict=True):
        assert f'href="paper-report.html#{name}"' in row
        assert f'id="{name}"' in page
        assert section.verdict_words in row
        assert section.figure.claim in row
    assert "jsonl" not in page


def test_the_tally_counts_all_sections(extension, report):
    first = extension.verdict_table(report).splitlines()[0]
    counts = [int(number) for number in re.findall(r"(\d+) [a-z]", first.split("**")[1])]
    assert sum(counts) == len(NAMES)
    assert "2 of 2 claims were judged" in first


def test_each_row_shows_a_small_picture_that_is_written_for_both_themes(extension, report, tmp_path):
    extension.write_thumbnails(report, tmp_path / "thumbnails")
    addresses = re.findall(r'src="(thumbnails/[^"]+)"', extension.verdict_table(report))
    assert len(addresses) == 2 * len(NAMES)
    for address in addresses:
        with Image.open(tmp_path / address) as picture:
            assert picture.width == 380
            assert picture.convert("L").getextrema()[0] < picture.convert("L").getextrema()[1]
