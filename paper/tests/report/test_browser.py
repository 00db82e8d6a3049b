"""The page in a real browser, without a network."""

import io
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from paper.commands.app import app
from paper.registry import FIGURES
from paper.report.page import render_page, write_page

playwright = pytest.importorskip("playwright.sync_api", reason="needs the dependency group test")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, for example Debian's package"),
]

RESULTS = Path(__file__).parents[2] / "results" / "full"
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Visit:
    """A page that is open, and all that went wrong with it."""

    page: "playwright.Page"
    issues: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Some calls of Playwright wait for ever if the browser does not answer; here they end with an error."""

    def stop(signal_number: int, frame: object) -> None:
        raise TimeoutError(f"The browser did not answer within {seconds} s.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    with limit(60):
        yield


@pytest.fixture(scope="module")
def address(example) -> str:
    path = example.home / "a page.html"
    write_page(render_page(example.report), path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    with playwright.sync_playwright() as engine:
        # Playwright starts each browser with a new directory of user data.
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def open_page(browser: "playwright.Browser", address: str) -> Iterator[Visit]:
    with limit(60):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", offline=True)
        visit = Visit(context.new_page())
        visit.page.on("console", lambda message: visit.issues.append(message.text))
        visit.page.on("pageerror", lambda error: visit.issues.append(str(error)))
        visit.page.on("requestfailed", lambda request: visit.issues.append(request.url))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.goto(address)
    yield visit
    with limit(60):
        context.close()


@pytest.fixture(scope="module")
def visit(browser, address) -> Iterator[Visit]:
    with open_page(browser, address) as visit:
        yield visit


def check_quiet(visit):
    assert visit.issues == []
    assert {urlsplit(each).scheme for each in visit.requests} <= {"file", "data"}
    assert "streamgp" in visit.page.title()


def check_pictures(visit):
    images = visit.page.eval_on_selector_all("img", "all => all.map(each => [each.naturalWidth, each.alt.trim()])")
    assert images
    assert all(width > 0 and words for width, words in images)
    return len(images)


def check_links(visit):
    addresses = visit.page.eval_on_selector_all("a", "all => all.map(each => each.getAttribute('href'))")
    missing = "all => all.filter(each => each.startsWith('#') && !document.getElementById(each.slice(1)))"
    assert visit.page.evaluate(missing, addresses) == []
    files = visit.page.eval_on_selector_all("a:not([href^='#'])", "all => all.map(each => each.href)")
    assert files
    for each in set(files):
        parts = urlsplit(each)
        assert parts.scheme == "file"
        assert Path(unquote(parts.path)).is_file()


def check_width(visit, width):
    visit.page.set_viewport_size({"width": width, "height": 800})
    visit.page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.thorough  # every picture of the page is drawn twice: a minute
@pytest.mark.skipif(not RESULTS.is_dir(), reason="needs the results of the project")
def test_the_page_of_the_projects_own_results_is_whole(browser, tmp_path):
    path = tmp_path / "page.html"
    with limit(300):  # all pictures are drawn, twice
        done = CliRunner().invoke(app, ["report", "--results", str(RESULTS.parent), "--output", str(path)])
    assert done.exit_code == 0, done.output
    with open_page(browser, path.as_uri()) as visit, limit(60):
        check_quiet(visit)
        assert check_pictures(visit) == path.read_text(encoding="utf-8").count("<picture>") > len(FIGURES) // 2
        check_links(visit)
        check_width(visit, 360)


def test_the_page_opens_without_errors_and_asks_for_nothing(visit):
    check_quiet(visit)


def test_every_picture_is_there_with_words(visit):
    check_pictures(visit)


def test_every_link_inside_has_its_target_and_every_file_exists(visit):
    check_links(visit)


def test_a_link_opens_its_results(visit, address):
    visit.page.goto(visit.page.eval_on_selector("a:not([href^='#'])", "each => each.href"))
    assert '"version"' in visit.page.inner_text("body")
    visit.page.goto(address)


def test_tab_reaches_the_skip_link_then_the_navigation(visit):
    visit.page.reload()
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.className") == "skip"
    assert visit.page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.closest('nav') !== null")
    width = visit.page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
    assert width >= 2
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("location.hash.length > 1")


def test_the_skip_link_leads_past_the_navigation(visit):
    visit.page.reload()
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_hangs_over_the_edge_of_the_screen(visit, width):
    check_width(visit, width)


def test_a_dark_screen_changes_the_page_and_its_pictures(visit):
    look = "() => [getComputedStyle(document.body).backgroundColor, document.querySelector('img').currentSrc]"
    light = visit.page.evaluate(look)
    visit.page.emulate_media(color_scheme="dark")
    visit.page.wait_for_function("before => document.querySelector('img').currentSrc !== before", arg=light[1])
    dark = visit.page.evaluate(look)
    visit.page.emulate_media(color_scheme="light")
    assert dark[0] != light[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screenshot_is_not_blank(visit, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    pixels = np.asarray(Image.open(io.BytesIO(visit.page.screenshot())).convert("L"), dtype=float)
    visit.page.emulate_media(color_scheme="light")
    assert pixels.std() > 5.0
    assert (pixels.mean() > 128.0) == (scheme == "light")
