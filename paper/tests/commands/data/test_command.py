import pytest
from typer.testing import CliRunner

from paper.commands.app import app
from paper.tests.tiny_datasets import CONTENT, DERIVED, PACKED, serve, tiny_datasets

pooch = pytest.importorskip("pooch", reason="needs the dependency group paper")


def run(*arguments: str):
    # A wide terminal, so that no sentence is broken over lines.
    return CliRunner().invoke(app, ["data", *arguments], env={"COLUMNS": "400", "NO_COLOR": "1", "TERM": "dumb"})


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server with the tiny data sets, an empty mirror, and no cache."""
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    for folder in ("served", "mirror/tiny"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("STREAMGP_DATA_DIR", str(tmp_path / "mirror"))
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache")
    for name in ("plain.csv", "packed.csv"):
        (tmp_path / "served" / name).write_bytes(CONTENT)
    with serve(tmp_path / "served") as address:
        for module in ("datasets.registry", "commands.data.tables", "commands.data.fetching"):
            monkeypatch.setattr(f"paper.{module}.DATASETS", tiny_datasets(address))
        yield tmp_path


def test_the_list_says_what_there_is_where_it_is_and_what_cannot_be_fetched(served):
    (served / "mirror/tiny/plain.csv").write_bytes(CONTENT)
    result = run("list")
    assert result.exit_code == 0
    (tiny,) = [line for line in result.output.splitlines() if "│ tiny " in line]
    assert [cell.strip() for cell in tiny.split("│")[1:-1]] == [
        "tiny",
        "numbers",
        "2",
        "none stated",
        "1 mirror, 1 not here",
    ]
    assert "│ made * " in result.output
    assert "* Cannot be fetched, as no address gives these files: point STREAMGP_DATA_DIR at a copy." in result.output
    assert "tiny/made.csv: the first row left out; from http://127.0.0.1:" in result.output


def test_the_list_names_every_data_set_that_is_registered():
    result = run("list")
    assert all(name in result.output for name in ("bananas", "exchange_rates", "hotspots", "malaria *", "protein"))


def test_fetching_puts_files_into_the_cache_and_where_finds_them(served):
    assert run("where", "tiny").exit_code == 1
    result = run("fetch", "tiny")
    assert result.exit_code == 0
    found = run("where", "tiny")
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [str(served / "cache/tiny" / name) for name in ("plain.csv", "packed.csv")]
    assert all(line in result.stderr for line in found.stdout.splitlines())


def test_where_says_what_is_not_here_and_how_to_get_it(served):
    assert (
        "Not here: tiny/plain.csv, tiny/packed.csv.gz. Fetch with: python -m paper data fetch tiny"
        in run("where", "tiny").stderr
    )
    assert "Not here: tiny/made.csv. See: python -m paper data list" in run("where", "made").stderr


def test_all_is_what_can_be_fetched(served):
    result = run("fetch", "all")
    assert result.exit_code == 0
    assert "tiny/made.csv of the data set 'made' is not here, and cannot be fetched" in result.stderr
    assert (served / "cache/tiny/plain.csv").read_bytes() == CONTENT


def test_a_derived_set_that_is_asked_for_by_name_fails(served):
    result = run("fetch", "made", "tiny")
    assert result.exit_code == 1
    assert "derived from" in result.stderr
    assert (served / "cache/tiny/plain.csv").exists()


def test_a_failed_fetch_is_a_sentence_and_an_exit_code(served):
    (served / "served/packed.csv").unlink()
    result = run("fetch", "all")
    assert result.exit_code == 1
    assert "tiny/packed.csv.gz of the data set 'tiny' could not be fetched from http://127.0.0.1:" in result.stderr


@pytest.mark.parametrize("command", ["fetch", "where"])
def test_an_unknown_name_is_refused_with_the_names_that_exist(served, command):
    result = run(command, "nothing")
    assert result.exit_code == 1
    assert "Error: name must be one of 'tiny', 'made', but is 'nothing'." in result.stderr


def test_check_counts_what_is_whole_damaged_and_not_here(served):
    assert "0 files are whole, 0 are damaged, 3 are not here." in run("check").output
    (served / "mirror/tiny/packed.csv.gz").write_bytes(PACKED)
    (served / "mirror/tiny/made.csv").write_bytes(DERIVED)
    result = run("check")
    assert result.exit_code == 0
    assert "2 files are whole, 0 are damaged, 1 are not here." in result.output
    (served / "mirror/tiny/made.csv").write_bytes(DERIVED[:-1])
    result = run("check")
    assert result.exit_code == 1
    assert "made.csv must have the SHA-256" in result.output
    assert "1 files are whole, 1 are damaged, 1 are not here." in result.output
