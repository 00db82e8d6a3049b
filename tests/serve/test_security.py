"""Who is let in, and what a request can do: nothing but what its form says."""

import json
import random
import re
import socket

import pytest
import torch
from gpytorch.kernels import RBFKernel

pytest.importorskip("fastapi", reason="needs the extra serve")

from starlette.testclient import TestClient
from tests.serve.conftest import Page, opened
from typer.testing import CliRunner

import streamgp as sg
from streamgp.cli.app import app
from streamgp.errors import OptionError
from streamgp.serve import serving
from streamgp.serve.serving import ServeOptions, make_app

TOKEN = "0123456789abcdef"


@pytest.fixture
def locked(study):
    with TestClient(make_app(ServeOptions(study), token=TOKEN), base_url="http://127.0.0.1") as client:
        yield client


def test_without_the_token_nothing_is_shown_or_changed(locked):
    for path in ("/", "/style.css", "/experiments.csv", "/?token=wrong", "/none"):
        assert locked.get(path).status_code == 401
    assert locked.post("/ask").status_code == 401
    assert locked.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert locked.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_address_with_the_token_is_exchanged_for_a_cookie(locked):
    entered = locked.get(f"/?token={TOKEN}", follow_redirects=False)
    assert entered.headers["location"] == "/"
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=strict" in entered.headers["set-cookie"]
    assert locked.get("/").status_code == 200


def test_other_machines_always_need_a_token(study):
    assert ServeOptions(study).needed_token is None
    assert len(ServeOptions(study, host="0.0.0.0").needed_token) >= 32
    assert ServeOptions(study, token=TOKEN).needed_token == TOKEN
    with pytest.raises(OptionError, match="at least 16 plain characters, but this one has 6"):
        ServeOptions(study, token="secret")


@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_forms_of_other_pages_are_refused(page, headers):
    answer = page.client.post("/ask", data={**page.hidden(), "number": "1"}, headers=headers)
    assert answer.status_code == 403
    assert page.suggested() == []


def test_forms_without_the_secret_of_the_page_are_refused(page):
    for secret in ("", "x" * 32, "ü"):
        assert page.client.post("/ask", data={**page.hidden(), "secret": secret, "number": "1"}).status_code == 409
    assert page.suggested() == []


def test_other_names_of_this_machine_are_refused(page):
    assert page.client.get("/", headers={"host": "evil.example"}).status_code == 400


def test_pages_are_framed_nowhere_and_load_nothing_from_elsewhere(page):
    answer = page.client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not re.findall(r"https?://(?!127)", answer.text)
    assert not re.findall(r"<script(?! src)|style=| on\w+=", answer.text)


def test_large_requests_are_refused_before_they_are_read(study):
    with opened(study, most_bytes=1000) as client:
        page = Page(client)
        for more in ({"number": "1" * 2000}, {f"x{i}": "1" for i in range(1000)}):
            assert client.post("/ask", data={**page.hidden(), **more}).status_code == 413

        def parts():
            for _ in range(20):
                yield b"x" * 100

        assert client.post("/ask", content=parts()).status_code == 413
        assert page.ask()


def test_what_cannot_be_served_is_said(tmp_path):
    def run(*arguments):
        found = CliRunner().invoke(app, ["serve", *map(str, arguments)])
        assert found.exit_code == 1
        return found.stderr

    assert "cannot be read" in run(tmp_path / "absent.toml")
    sg.SparseGP.from_prior(RBFKernel(), torch.zeros(1, 1)).save(tmp_path / "gp.sgp")
    assert "holds a SparseGP, which is not served" in run(tmp_path / "gp.sgp")


# Texts that have broken parsers, paths and pages.
NASTY = (
    *("", " ", "\x00", "../../etc/passwd", "/etc/passwd", "%2e%2e%2f", "<script>alert(1)</script>", "{{7*7}}"),
    *("' OR 1=1 --", "\ud800", "NaN", "inf", "-inf", "1e400", "-1e400", "1e-400", "1_000", "٣", "0x10", "1,5", "=1+1"),
    *("failed", "FAILED", "true", "null", "9" * 400, "ü" * 300, "a" * 5000, "\r\nset-cookie: a=b", "\u202e"),
    *("fine", "85", "1", "0", "-1"),
)


def nasty(draw: random.Random, depth: int = 0):
    kinds = [lambda: draw.choice(NASTY), lambda: draw.choice([0, 1, -1, 2**70, 1e308, 0.5, True, None])]
    if depth < 3:
        kinds += [
            lambda: [nasty(draw, depth + 1) for _ in range(draw.randrange(4))],
            lambda: {draw.choice(NASTY): nasty(draw, depth + 1) for _ in range(draw.randrange(3))},
        ]
    return draw.choice(kinds)()


def fuzz_page(page: Page, number: int) -> None:
    draw, keys = random.Random(number), page.ask(2)
    names = ["number", "fix0", "leave", "new.p0", "new.p1", "new.y0", "new.failed", "x", "secret", "version", "key"]
    names += [f"{key}.{part}" for key in keys for part in ("p0", "p1", "y0", "y7", "p9999", "failed")]
    state, hidden = page.state(), page.hidden()
    for _ in range(number):
        path = draw.choice(
            ["/ask", "/tell", "/undo", "/leave", "/table", "/", "/summary", "/style.css", "/../x", "/ask/"]
        )
        data = {name: draw.choice(NASTY) for name in draw.sample(names, draw.randrange(6))}
        if draw.random() < 0.7:
            data = {**data, **hidden}
        fields = {name: text.encode("utf-8", "surrogatepass") for name, text in data.items()}
        kind = draw.randrange(4)
        if kind == 0:
            answer = page.client.request(draw.choice(["GET", "PUT", "DELETE", "OPTIONS"]), path, params={"v": "x"})
        elif kind == 1:
            answer = page.client.post(
                path,
                content=draw.randbytes(draw.randrange(200)),
                headers={
                    "content-type": draw.choice(
                        [
                            "multipart/form-data; boundary=x",
                            "multipart/form-data",
                            "application/x-www-form-urlencoded",
                            "text/plain",
                            "\x7f",
                        ]
                    )
                },
            )
        elif kind == 2:
            table = draw.choice(NASTY).encode("utf-8", "surrogatepass") + draw.choice(
                [b"", b"\n85,fine,1", b"temperature,grind,taste\n85"]
            )
            answer = page.client.post(path, data=fields, files={draw.choice(["table", "x"]): ("../x.csv", table)})
        else:
            answer = page.client.post(path, data=fields)
        assert answer.status_code < 500, (path, data, answer.text)
        changed = page.state() != state
        assert not (changed and answer.status_code >= 400), (path, data)
        if changed:
            state, hidden = page.state(), page.hidden()


def fuzz_stream(client: TestClient, number: int) -> None:
    draw = random.Random(number)

    def known():
        return client.get("/report").json()["known_rows"]

    before = known()
    for _ in range(number):
        path = draw.choice(["/predict", "/learn", "/explain", "/report", "/metrics", "/", "/learn/../x"])
        body = {
            name: nasty(draw)
            for name in draw.sample(["rows", "targets", "ticket", "quantiles", "x"], draw.randrange(1, 4))
        }
        if draw.random() < 0.5:
            body["rows"] = [
                [draw.choice([0.5, 1e308, -1e49, 1e-320, 0, "1", None, True])] * draw.choice([2, 2, 1])
                for _ in range(2)
            ]
        if draw.random() < 0.3:
            body["targets"] = [draw.choice([0.5, 1e308, -1e49, None, "x"]) for _ in range(2)]
            body.pop("ticket", None)
        if draw.random() < 0.9:
            for name in set(body) - {
                "/predict": {"rows", "quantiles", "ticket"},
                "/learn": {"rows", "targets", "ticket"},
            }.get(path, {"rows"}):
                body.pop(name)
        content = json.dumps(body).encode() if draw.random() < 0.9 else draw.randbytes(50)
        answer = client.post(path, content=content, headers={"content-type": "application/json"})
        assert answer.status_code < 500, (path, body, answer.text)
        if answer.status_code >= 400 or path != "/learn":
            assert known() == before, (path, body)
        before = known()


def test_no_form_breaks_the_page_or_changes_anything_by_being_refused(page):
    fuzz_page(page, 150)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*outside the range of all rows")  # as rows of -1e49 are
def test_no_request_breaks_a_stream_or_is_learned_by_being_refused(sensor):
    with opened(sensor) as client:
        fuzz_stream(client, 200)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*outside the range of all rows")  # as rows of -1e49 are
def test_ten_thousand_requests_break_nothing(page, sensor):
    fuzz_page(page, 5000)
    with opened(sensor) as client:
        fuzz_stream(client, 5000)


def test_the_address_can_be_followed_as_soon_as_it_is_said(study, monkeypatch):
    def follow(text):
        socket.create_connection(("127.0.0.1", int(re.search(r":(\d+)/", text)[1])), timeout=5).close()
        said.append(text)

    said = []
    monkeypatch.setattr(serving, "say", follow)
    monkeypatch.setattr(serving.uvicorn.Server, "run", lambda server, sockets: [each.close() for each in sockets])
    serving.run_serve(ServeOptions(study, port=0))
    assert len(said) == 1
