"""The page is read with a parser of HTML, as a browser would."""

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from paper.report.page import render_page, write_page

VOID = {"meta", "link", "img", "source", "br"}


class Document(HTMLParser):
    """Elements in their order, with their attributes; and the text. Tags that do not match are refused."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def content(example) -> str:
    return render_page(example.report)


@pytest.fixture(scope="module")
def document(content) -> Document:
    return Document(content)


def test_the_parts_of_the_page_are_named_as_what_they_are(document):
    (page,) = document.all("html")
    assert page["lang"] == "en"
    count = Counter(tag for tag, _ in document.elements)
    assert (count["header"], count["nav"], count["main"], count["footer"], count["h1"]) == (1, 1, 1, 1, 1)
    assert count["figure"] == count["figcaption"] == count["img"] == 3
    assert count["table"] == count["caption"]
    assert count["details"] == 4


def test_headings_are_in_order(document):
    levels = [int(tag[1]) for tag, _ in document.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_cells_that_name_rows_and_columns_have_a_scope(document):
    assert all(cell.get("scope") in ("row", "col") for cell in document.all("th"))


def test_every_picture_has_words_a_size_and_a_dark_twin(document):
    assert len(document.all("source")) == len(document.all("img"))
    for image in document.all("img"):
        assert image["alt"] == 'Two panels, "warm" & "cold": both lines fall, over 12 runs.'
        assert image["width"] == "768"
        assert image["height"] in ("96", "307")
    assert all(source["media"] == "(prefers-color-scheme: dark)" for source in document.all("source"))


def test_every_identifier_is_there_once_and_every_link_inside_has_its_target(document):
    identifiers = [attributes["id"] for _, attributes in document.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    inside = [link["href"] for link in document.all("a") if link["href"].startswith("#")]
    assert len(inside) > 10
    assert {address[1:] for address in inside} <= set(identifiers)


def test_nothing_is_loaded_from_elsewhere(document, content):
    addresses = [
        attributes[name] for _, attributes in document.elements for name in ("src", "srcset") if name in attributes
    ]
    assert all(address.startswith("data:") for address in addresses)
    assert document.all("script") == []
    assert "http://" not in content
    assert "https://" not in content
    assert "@import" not in content


def test_texts_from_results_are_escaped(document, content):
    assert "<script" not in content
    assert document.text.count("<script>alert('no')</script>") >= 4


def test_an_error_in_a_figure_is_shown_and_the_rest_is_there(document):
    assert "Drawing failed with KeyError" in document.text
    assert "Judging failed with KeyError" in document.text
    assert "Fig. 4: absent" in document.text


def test_damaged_lines_are_shown_at_their_figures_and_at_the_end(document):
    assert document.text.count("tea & biscuits #1.jsonl, line 13: ") == 5
    assert "issues" in {section.get("id") for section in document.all("section")}


def test_what_has_not_run_is_said_with_the_command(document):
    assert "Not run yet (problem, method): warm, pot; warm, bag; cold, pot; cold, bag." in document.text
    assert "python -m paper run absent --quick" in document.text
    assert "full settings: 200 runs, about 40 h on one core" in document.text


def test_a_page_replaces_the_one_before_it_at_once(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("before")
    write_page("äfter", path)
    assert path.read_text(encoding="utf-8") == "äfter"
    assert list(tmp_path.iterdir()) == [path]
