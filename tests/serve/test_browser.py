"""The page of a study in a real browser, against a service in a thread of its own."""

import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamgp.cli.optimize.notebook import open_notebook

pytest.importorskip("fastapi", reason="needs the extra serve")

import uvicorn

from streamgp.serve.serving import ServeOptions, make_app

playwright = pytest.importorskip("playwright.sync_api", reason="needs the dependency group test")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, for example Debian's package"),
]
SCREENSHOTS = os.environ.get("STREAMGP_SCREENSHOTS")  # a directory to look at them
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


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
    with limit(240):
        yield


@pytest.fixture
def address(study) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service = uvicorn.Server(uvicorn.Config(make_app(ServeOptions(study)), log_level="warning"))
        thread = threading.Thread(target=service.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        service.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def visiting(browser, address, *, width=1280, scheme="light") -> Iterator["playwright.Page"]:
    """A page of a person with a browser of their own; at its end nothing has gone wrong in it."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, issues = context.new_page(), []
    page.on("console", lambda message: issues.append(message.text))
    page.on("pageerror", lambda error: issues.append(str(error)))
    page.on(
        "request", lambda request: issues.extend([] if request.url.startswith((address, "data:")) else [request.url])
    )
    page.set_default_timeout(40_000)
    page.goto(address)
    yield page
    context.close()
    assert [one for one in issues if "422" not in one and "409" not in one] == []


def suggest(page, number=1):
    page.get_by_label("How many").fill(str(number))
    page.get_by_role("button", name="Suggest").click()
    page.get_by_text("New suggestions are below.").wait_for()


def see_picture(page):
    picture = page.get_by_alt_text("Outcomes so far")
    picture.scroll_into_view_if_needed()
    loaded = "one => one.complete || new Promise((resolve) => { one.onload = resolve; })"
    picture.evaluate(loaded)
    assert picture.evaluate("one => one.naturalWidth") > 100


def save(page):
    page.get_by_role("button", name="Save what came of it").click()


@pytest.mark.parametrize("num_rounds", [4, pytest.param(10, marks=pytest.mark.thorough)])
def test_a_campaign_by_mouse_and_keyboard(browser, address, study, num_rounds):
    with visiting(browser, address) as page:
        for number in range(num_rounds):
            suggest(page)
            field = page.get_by_label("taste of suggestion 1")
            if number == 3:
                page.get_by_label("suggestion 1 failed").check()
                save(page)
            elif number % 2:
                field.fill(str(number))
                save(page)
            else:
                field.focus()
                page.keyboard.type(str(number))
                page.keyboard.press("Enter")
            page.get_by_text("Saved. What came of it is known now.").wait_for()
            if number == 4:
                page.reload()
        page.get_by_role("heading", name="Best experiment so far").wait_for()
        see_picture(page)
        page.get_by_text(f"All {num_rounds} experiments").click()
        assert page.locator("details table tbody tr").count() == num_rounds
    with open_notebook(study, None) as notebook:
        told = notebook.optimizer.y.flatten().tolist()
    assert [None if y != y else y for y in told] == [None if number == 3 else number for number in range(num_rounds)]


def test_wrong_input_is_answered_beside_the_field_which_has_the_focus(browser, address):
    with visiting(browser, address) as page:
        suggest(page)
        page.get_by_label("taste of suggestion 1").fill("good")
        save(page)
        field = page.get_by_label("taste of suggestion 1")
        assert field.get_attribute("aria-invalid") == "true"
        assert field.input_value() == "good"
        assert "is 'good' and not a number" in page.locator(f"#{field.get_attribute('aria-describedby')}").inner_text()
        assert field.evaluate("one => one === document.activeElement")
        field.fill("7")
        save(page)
        page.get_by_text("Saved. What came of it is known now.").wait_for()


def test_two_browsers_at_once_lose_nothing(browser, address):
    with visiting(browser, address) as first, visiting(browser, address) as second:
        suggest(first, 2)
        second.reload()
        second.get_by_label("taste of suggestion 2").fill("2")
        first.get_by_label("taste of suggestion 1").fill("1")
        save(first)
        first.get_by_text("Saved.").wait_for()
        save(second)
        second.get_by_text("Saved.").wait_for()
        second.get_by_text("All 2 experiments").wait_for()
        first.get_by_role("button", name="Undo the last change").click()  # of an older page
        first.get_by_text("Somebody has changed the experiments meanwhile").wait_for()
        first.get_by_role("button", name="Undo the last change").click()
        first.get_by_text("The last change was undone.").wait_for()
        first.get_by_text("One experiment", exact=True).wait_for()


def test_the_page_fits_all_screens_and_can_be_read(browser, address):
    with visiting(browser, address) as page:
        suggest(page, 3)
        page.get_by_label("taste of suggestion 1").fill("7")
        save(page)
        page.get_by_label("taste of suggestion 1").fill("good")
        save(page)
        page.get_by_role("heading", name="Best experiment so far").wait_for()
        see_picture(page)
        page.eval_on_selector_all("details", "all => all.forEach(each => { each.open = true })")
        for width, scheme in ((390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert min(page.evaluate(CONTRASTS)) >= 4.5
            heights = page.locator("button, summary").evaluate_all("all => all.map(one => one.offsetHeight)")
            assert min(heights) >= 24
            if SCREENSHOTS is not None:
                page.screenshot(path=f"{SCREENSHOTS}/{width}-{scheme}.png", full_page=True)


# Contrast of each text with what is behind it, by the formula of the web's guidelines for accessibility.
CONTRASTS = """() => {
  const light = (color) => color.map((x) => x / 255).map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const color = numbers(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("main *")]
    .filter((one) => !one.disabled && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((one) => [light(numbers(getComputedStyle(one).color).slice(0, 3)), light(behind(one))])
    .map(([a, b]) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
}"""
