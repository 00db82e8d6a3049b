"""Metadata, citation, news and front page agree with the package."""

import re
import tomllib
from pathlib import Path

import streamgp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = PROJECT["dependency-groups"]


def name_of(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_what_only_an_extra_or_a_developer_needs_is_not_installed_without_it():
    needed = {name_of(each) for each in PROJECT["project"]["dependencies"]}
    tools = {name_of(each) for name in set(GROUPS) - {"dev"} for each in GROUPS[name]}
    assert not needed & ({name_of(each) for extra in EXTRAS.values() for each in extra} | tools)
    assert not any(re.search(r"jupyter|ipykernel|nbconvert", each) for each in needed)


def test_developers_have_all_groups_and_extras_and_each_of_their_versions_is_pinned():
    assert {each["include-group"] for each in GROUPS["dev"]} == set(GROUPS) - {"dev"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f'".[{",".join(sorted(EXTRAS))}]" --group dev' in makefile
    pinned = {
        name_of(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line
    }
    asked = {name_of(each) for each in PROJECT["project"]["dependencies"]}
    asked |= {name_of(each) for extra in EXTRAS.values() for each in extra}
    asked |= {name_of(each) for name in set(GROUPS) - {"dev"} for each in GROUPS[name]}
    assert not asked - pinned


def test_the_classifiers_name_the_supported_versions():
    versions = [f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)]
    assert set(versions) <= set(PROJECT["project"]["classifiers"])
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, flags=re.MULTILINE)[1] == streamgp.__version__
    for key in ("cff-version", "message", "title", "authors"):  # the keys that the format asks for
        assert re.search(rf"^{key}:", citation, flags=re.MULTILINE)


def test_a_piece_of_news_is_of_a_known_kind():
    kinds = "|".join(kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"])
    for path in (ROOT / "news").glob("+*"):
        assert re.fullmatch(rf"\+[a-z0-9-]+\.({kinds})\.md", path.name)


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, flags=re.MULTILINE)[1] == streamgp.__version__


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert links
    assert [link for link in links if not link.startswith("https:") and not (ROOT / link).is_file()] == []
