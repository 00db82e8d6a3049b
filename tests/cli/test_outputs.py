import csv
import os
import stat
from pathlib import Path

import pytest

from streamgp.cli.locks import locked
from streamgp.cli.outputs import check_output_paths, write_together
from streamgp.errors import OptionError, SaveError
from streamgp.tables.records import write_table


def test_distinct_files_in_directories_that_exist_are_accepted(tmp_path):
    check_output_paths({"--output": tmp_path / "a", "--map": None, "--save": tmp_path / "b"}, "-")


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ("absent/b", "--save absent/b: the directory does not exist or cannot be written"),
        (".", "--save . is a directory. Add a file name"),
        ("a", "--save a is also --output"),
        ("./source", "--save source is also the source"),
    ],
)
def test_other_places_are_refused(tmp_path, monkeypatch, second, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=sentence):
        check_output_paths({"--output": Path("a"), "--save": Path(second)}, "source")


def test_a_table_is_read_back(tmp_path):
    rows = [["1", "Böle, the old"], ["2", 'says "no"']]
    write_table(tmp_path / "t.csv", ["rank", "name"], rows)
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["rank", "name"], *rows]


def test_files_are_written_in_several_directories(tmp_path):
    (tmp_path / "sub").mkdir()
    paths = tmp_path / "a.csv", tmp_path / "sub" / "b.csv"
    write_together({path: lambda temporary: temporary.write_text("x", encoding="utf-8") for path in paths})
    assert all(path.read_text(encoding="utf-8") == "x" for path in paths)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "sub"]


def test_nothing_is_written_if_one_file_fails(tmp_path):
    def fail(path):
        path.write_text("half", encoding="utf-8")
        raise OSError("the disk is full")

    (tmp_path / "a.csv").write_text("before", encoding="utf-8")
    writers = {tmp_path / "a.csv": lambda path: path.write_text("after", encoding="utf-8"), tmp_path / "b.csv": fail}
    with pytest.raises(OSError, match="disk is full"):
        write_together(writers)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_texts_that_a_spreadsheet_would_run_are_escaped(tmp_path):
    rows = [["-1.5", "=1+1"], ["+2e3", "@SUM(A1)"], ["nan", "-x"], ["", "a=b"]]
    write_table(tmp_path / "t.csv", ["=rank", "name"], rows)
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.reader(file))
    assert read == [["'=rank", "name"], ["-1.5", "'=1+1"], ["+2e3", "'@SUM(A1)"], ["nan", "'-x"], ["", "a=b"]]


@pytest.mark.skipif(os.name == "nt", reason="modes and links are those of POSIX")
def test_modes_and_symbolic_links_of_files_stay(tmp_path):
    real, link = tmp_path / "deep" / "state", tmp_path / "link"
    real.parent.mkdir()
    real.write_text("before")
    real.chmod(0o600)
    link.symlink_to(real)
    write_together({link: lambda path: path.write_text("after"), tmp_path / "new": lambda path: path.write_text("x")})
    assert link.is_symlink()
    assert real.read_text() == "after"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "link", "new"]
    assert [path.name for path in real.parent.iterdir()] == ["state"]


def test_a_lock_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / ".state.lock").mkdir()
    with (
        pytest.raises(SaveError, match=r"lock .*\.state\.lock cannot be written"),
        locked(tmp_path / "state", patience=0.0),
    ):
        pass
