import html
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import streamgp as sg

pytest.importorskip("fastapi", reason="needs the extra serve")
from starlette.testclient import TestClient

from streamgp.serve.serving import ServeOptions, make_app

STUDY = """
[parameters.temperature]
type = "real"
low = 80
high = 100

[parameters.grind]
type = "categorical"
values = ["fine", "<b>coarse</b>"]

[objectives.taste]
maximize = true

[settings]
num_initial = 4
acquisition = "thompson"
"""


class Page:
    """A browser without a screen: the forms of the page as it is shown now."""

    def __init__(self, client: TestClient, folder: Path | None = None) -> None:
        self.client, self.folder = client, folder

    def state(self) -> dict[str, bytes]:
        """All files beside the study, but what can be undone."""
        return {one.name: one.read_bytes() for one in self.folder.iterdir() if one.is_file()}

    def hidden(self) -> dict[str, str]:
        text = self.client.get("/").text
        return {name: re.search(f'name="{name}" value="([^"]+)"', text)[1] for name in ("version", "secret")}

    def suggested(self) -> list[str]:
        return list(dict.fromkeys(re.findall(r'name="([0-9a-f]{16})\.', self.client.get("/").text)))

    def cells(self, key: str) -> dict[str, str]:
        found = re.findall(rf'name="({key}\.p\d+)"[^>]*? value="([^"]*)"', self.client.get("/").text)
        return {name: html.unescape(value) for name, value in found}

    def post(self, action: str, **fields: str):
        return self.client.post(action, data={**self.hidden(), **fields})

    def ask(self, number: int = 1) -> list[str]:
        assert self.post("/ask", number=str(number)).status_code == 200
        return self.suggested()

    def tell(self, key: str, *outcomes: str, **more: str):
        texts = {f"{key}.y{k}": text for k, text in enumerate(outcomes)}
        return self.post("/tell", **self.cells(key), **texts, **more)

    def experiments(self) -> list[str]:
        return self.client.get("/experiments.csv").text.splitlines()[1:]


def issues(answer) -> list[str]:
    return re.findall(r'class="issue"[^>]*>([^<]*)<', answer.text)


@contextmanager
def opened(path: Path, **options) -> Iterator[TestClient]:
    with TestClient(make_app(ServeOptions(path, **options)), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
def visit() -> Callable:
    return opened


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "coffee.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def page(study: Path) -> Iterator[Page]:
    with opened(study) as client:
        yield Page(client, study.parent)


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.random((15, 2))
    path = tmp_path_factory.mktemp("stream") / "sensor.sgp"
    sg.StreamingGPRegressor(num_inducing=10).partial_fit(X, np.sin(6 * X[:, 0])).save(path)
    return path


@pytest.fixture
def sensor(learned: Path, tmp_path: Path) -> Path:
    path = tmp_path / "sensor.sgp"
    path.write_bytes(learned.read_bytes())
    return path
