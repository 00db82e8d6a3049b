import csv

import pytest

from streamgp.cli.survey_files import write_table, write_together


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
