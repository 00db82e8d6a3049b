import importlib
from pathlib import Path

import pytest

from paper.datasets import find_file, locate
from paper.datasets.registry import registered_file
from paper.tests.tiny_datasets import CONTENT, DERIVED, PACKED, serve, tiny_datasets
from streamgp.errors import DatasetError, OptionError, StreamGPError

pooch = pytest.importorskip("pooch", reason="needs the dependency group paper")
DATASETS = "paper.datasets.registry.DATASETS"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The cache, which does not exist yet; there is no mirror, and no proxy."""
    for variable in ("STREAMGP_DATA_DIR", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    return tmp_path / "cache" / "streamgp"


@pytest.fixture
def served(tmp_path, monkeypatch, cache):
    """The folder behind the addresses of the tiny data sets."""
    folder = tmp_path / "served"
    folder.mkdir()
    for name in ("plain.csv", "packed.csv"):
        (folder / name).write_bytes(CONTENT)
    with serve(folder) as address:
        monkeypatch.setattr(DATASETS, tiny_datasets(address))
        yield folder


@pytest.fixture
def mirror(tmp_path, monkeypatch, cache) -> Path:
    """A directory for a mirror; the addresses of the tiny data sets lead nowhere."""
    monkeypatch.setattr(DATASETS, tiny_datasets("http://127.0.0.1:9"))
    monkeypatch.setenv("STREAMGP_DATA_DIR", str(tmp_path / "mirror"))
    (tmp_path / "mirror" / "tiny").mkdir(parents=True)
    return tmp_path / "mirror"


def test_a_file_of_the_mirror_is_used_where_it_is(mirror, cache):
    (mirror / "tiny/plain.csv").write_bytes(CONTENT)
    assert find_file("tiny/plain.csv") == mirror / "tiny/plain.csv"
    assert not cache.exists()


@pytest.mark.parametrize(("name", "content"), [("packed.csv.gz", PACKED), ("packed.csv", CONTENT)])
def test_a_mirror_may_hold_a_file_compressed_or_not(mirror, name, content):
    (mirror / "tiny" / name).write_bytes(content)
    assert find_file("tiny/packed.csv.gz") == mirror / "tiny" / name


def test_a_derived_file_is_found_in_the_mirror(mirror):
    (mirror / "tiny/made.csv").write_bytes(DERIVED)
    assert find_file("tiny/made.csv").read_bytes() == DERIVED


def test_a_damaged_file_of_the_mirror_is_refused_with_both_checksums(mirror):
    (mirror / "tiny/plain.csv").write_bytes(CONTENT + b"5,6\n")
    expected = registered_file("tiny/plain.csv")[0].sha256
    with pytest.raises(
        DatasetError, match=rf"plain.csv must have the SHA-256 {expected}, but has [0-9a-f]{{64}}: .* Replace it"
    ):
        find_file("tiny/plain.csv")


def test_a_file_is_fetched_once_and_then_comes_from_the_cache(served, cache):
    assert locate(registered_file("tiny/plain.csv")[0]) is None
    assert find_file("tiny/plain.csv") == cache / "tiny/plain.csv"
    (served / "plain.csv").unlink()
    assert find_file("tiny/plain.csv").read_bytes() == CONTENT
    assert locate(registered_file("tiny/plain.csv")[0]).place == "cache"


def test_what_a_mirror_compresses_is_fetched_and_kept_as_it_is(served, cache):
    assert find_file("tiny/packed.csv.gz") == cache / "tiny/packed.csv"


def test_a_file_that_the_mirror_lacks_is_fetched(served, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMGP_DATA_DIR", str(tmp_path))
    assert find_file("tiny/plain.csv") == cache / "tiny/plain.csv"


def test_a_damaged_file_of_the_cache_is_fetched_again(served):
    find_file("tiny/plain.csv").write_bytes(b"")
    assert find_file("tiny/plain.csv").read_bytes() == CONTENT


def test_a_bar_follows_the_fetching(served):
    bar = CountingBar()
    find_file("tiny/plain.csv", progress=bar)
    assert (bar.total, bar.num_bytes, bar.is_closed) == (len(CONTENT), len(CONTENT), True)


def test_a_file_that_has_changed_at_its_address_is_refused_and_not_kept(served, cache):
    (served / "plain.csv").write_bytes(b"other")
    with pytest.raises(DatasetError, match=r"could not be fetched from http://127.*plain.csv: .*hash.* Deleted"):
        find_file("tiny/plain.csv")
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_an_address_without_the_file_is_an_error(served):
    (served / "plain.csv").unlink()
    with pytest.raises(DatasetError, match=r"'tiny' could not be fetched from http://127.*: 404 Client Error"):
        find_file("tiny/plain.csv")


def test_a_refused_connection_is_a_sentence_that_names_the_set_the_address_and_the_variable(mirror):
    with pytest.raises(
        DatasetError,
        match=r"tiny/plain.csv of the data set 'tiny' could not be fetched from http://127.0.0.1:9/plain.csv: .*refused"
        r".* point the variable STREAMGP_DATA_DIR, which is '.*mirror' and does not hold the file, at its directory",
    ) as caught:
        find_file("tiny/plain.csv")
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, StreamGPError)


def test_a_derived_file_that_is_not_here_is_not_fetched(served, cache):
    with pytest.raises(
        DatasetError,
        match=r"tiny/made.csv of the data set 'made' is not here, and cannot be fetched, as it is derived from http.*"
        r"\(the first row left out\)\. .* STREAMGP_DATA_DIR, which is not set",
    ):
        find_file("tiny/made.csv")
    assert not cache.exists()


@pytest.fixture
def without_pooch(monkeypatch):
    def import_others(name: str):
        if name == "pooch":
            raise ModuleNotFoundError(name)
        return importlib.import_module(name)

    monkeypatch.setattr("paper.datasets.files.import_module", import_others)


def test_without_pooch_fetching_says_what_to_install(served, without_pooch):
    with pytest.raises(DatasetError, match=r"pooch, which fetches it, is not installed.*--group paper"):
        find_file("tiny/plain.csv")


def test_a_mirror_needs_no_pooch(mirror, without_pooch):
    (mirror / "tiny/plain.csv").write_bytes(CONTENT)
    assert find_file("tiny/plain.csv").read_bytes() == CONTENT


def test_an_unknown_file_is_refused_with_the_names_that_exist(mirror):
    with pytest.raises(OptionError, match=r"name must be one of 'tiny/plain.csv', .* but is 'plain.csv'"):
        find_file("plain.csv")


class CountingBar:
    """A bar that counts, with pooch's rule that it is set to the full size at the end."""

    def __init__(self) -> None:
        self.total = 0.0
        self.num_bytes = 0
        self.is_closed = False

    def update(self, num_bytes: int) -> None:
        self.num_bytes += num_bytes

    def reset(self) -> None:
        self.num_bytes = 0

    def close(self) -> None:
        self.is_closed = True
