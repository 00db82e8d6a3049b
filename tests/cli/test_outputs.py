import csv
from pathlib import Path

import pytest

from streamgp.cli.outputs import check_output_paths, write_table, write_together
from streamgp.errors import OptionError


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
