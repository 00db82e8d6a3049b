"""The documentation site in a real browser, without a network; `make docs` builds it first."""

import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs the dependency group test")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = sorted(path for path in SITE.rglob("*.html") if not path.is_relative_to(SITE / "reference" / "generated"))
# Pages of the reference are alike: a long signature, a long table of members, one with formulas.
PAGES += [SITE / "reference" / "generated" / f"{name}.html" for name in ("fit", "SparseGP", "likelihoods.Poisson")]
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, for example Debian's package"),
    pytest.mark.skipif(not SITE.is_dir(), reason="needs the site: make docs"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize("width", [390, 1280], ids=["phone", "desk"])
def test_pages_open_without_errors_and_do_not_scroll_sideways(browser, width):
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page, issues = context.new_page(), []
    page.on("console", lambda message: issues.append((page.url, message.text)))
    page.on("pageerror", lambda error: issues.append((page.url, str(error))))
    page.on("requestfailed", lambda request: issues.append((page.url, request.url)))
    for path in PAGES:
        page.goto(path.as_uri())
        if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
            issues.append((page.url, "scrolls sideways"))
        pictures = page.eval_on_selector_all("article img", "all => all.map(each => [each.naturalWidth, each.alt])")
        issues += [
            (page.url, "a picture is missing or has no words") for size, words in pictures if not size or not words
        ]
        if page.query_selector("merror") is not None:
            issues.append((page.url, "a formula cannot be drawn"))
    context.close()
    assert issues == []


class Anchors(HTMLParser):
    """Return the anchors of a page, and the targets of its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.targets |= {value for key in ("id", "name") if (value := named.get(key))}
        self.links |= {named["href"] or ""} if tag == "a" and "href" in named else set()


def test_every_link_inside_the_site_has_its_target():
    pages = {path: Anchors(path.read_text(encoding="utf-8")) for path in sorted(SITE.rglob("*.html"))}
    missing = []
    for path, page in pages.items():
        for parts in map(urlsplit, page.links):
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            is_known = not parts.fragment or to not in pages or unquote(parts.fragment) in pages[to].targets
            if not parts.scheme and not (to.is_file() and is_known):
                missing.append((str(path.relative_to(SITE)), parts.geturl()))
    assert missing == []
