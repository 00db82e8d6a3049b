import gzip

import numpy as np
import pytest

from streamgp.cli.fit.tables import TableShard, column_names, input_names, read_columns, read_labels
from streamgp.errors import DatasetError, FileFormatError, OptionError, ValueRangeError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    rows = "\n".join(f"{i},{i * i},{'odd' if i % 2 else 'even'}" for i in range(25))
    path.write_text(f"x,y,kind\n{rows}\n")
    return path


def test_rows_are_trained_on_or_held_out(table):
    parts = [TableShard(table, ("x",), "y", is_held_out=is_held_out)() for is_held_out in (False, True)]
    (X, y), (X_out, y_out) = parts
    assert X_out[:, 0].tolist() == [9.0, 19.0]
    assert sorted(np.concatenate([X, X_out])[:, 0].tolist()) == list(range(25))
    assert np.array_equal(np.concatenate([X, X_out])[:, 0] ** 2, np.concatenate([y, y_out]))


def test_columns_are_numbers_or_labels(table):
    assert column_names(table) == ("x", "y", "kind")
    assert read_columns(table, ("y", "x"))[3].tolist() == [9.0, 3.0]
    assert read_labels(table, "kind")[:2].tolist() == ["even", "odd"]
    assert set(TableShard(table, ("x",), "kind", is_label=True)()[1]) == {"even", "odd"}


@pytest.mark.parametrize(
    ("error", "sentence", "text", "columns"),
    [
        (DatasetError, "is empty", "", ("x",)),
        (OptionError, "has no column 'w'; it has 'x'", "x\n1\n", ("w",)),
        (DatasetError, "line 3: 2 cells, but the header has 1", "x\n1\n2,3\n", ("x",)),
        (DatasetError, "line 2: 'x' must be a number, but is 'high'", "x\nhigh\n", ("x",)),
    ],
)
def test_tables_that_cannot_be_read_are_refused(tmp_path, error, sentence, text, columns):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(error, match=sentence):
        read_columns(path, columns)


def test_missing_values_are_counted(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("x,y\n1,2\n,3\n2,inf\n")
    with pytest.raises(ValueRangeError, match="2 of 3 rows have missing or infinite values, the first after 1 good"):
        TableShard(path, ("x",), "y")()
    with pytest.raises(DatasetError, match="is not a file"):
        column_names(tmp_path / "nothing.csv")


def test_tables_are_read_as_those_of_streams(tmp_path):
    plain = "x,y\n1,2\n3,NA\n"
    for name, content in (
        ("semicolons.csv", plain.replace(",", ";").encode()),
        ("tabs.tsv", plain.replace(",", "\t").encode()),
        ("padded.csv", plain.replace("x,y", " x , y").encode()),
        ("packed.csv.gz", gzip.compress(plain.encode())),
        ("mark.csv", b"\xef\xbb\xbf" + plain.encode()),
    ):
        (tmp_path / name).write_bytes(content)
        assert column_names(tmp_path / name) == ("x", "y")
        assert np.array_equal(read_columns(tmp_path / name, ("y", "x")), [[2, 1], [np.nan, 3]], equal_nan=True)


@pytest.mark.parametrize(
    ("error", "sentence", "content"),
    [
        (FileFormatError, r"several columns of the names \['x'\]. Rename all but one", b"x,x\n1,2\n"),
        (FileFormatError, "must name the columns, but holds numbers", b"1,2\n3,4\n"),
        (FileFormatError, "not text in UTF-8. Pass CSV with a header in UTF-8", "größe,x\n1,2\n".encode("latin1")),
        (DatasetError, "line 3: not text in UTF-8", "x\n1\nö\n".encode("latin1")),
        (DatasetError, "line 2: 'x' must be a number, but is '1_000'", b"x\n1_000\n"),
        (ValueRangeError, "decimal commas, such as '0,5'", b"x;y\n0,5;2\n"),
    ],
)
def test_tables_that_could_be_misread_are_refused(tmp_path, error, sentence, content):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(error, match=sentence):
        read_columns(path, ("x",))


def test_inputs_are_all_columns_but_the_target_or_those_that_are_named(table, tmp_path):
    assert input_names(table, "y", None) == ("x", "kind")
    assert input_names(table, "y", ("kind", "x")) == ("kind", "x")
    with pytest.raises(OptionError, match="--features names the target 'y'"):
        input_names(table, "y", ("x", "y"))
    with pytest.raises(OptionError, match="--features names 'x' more than once"):
        input_names(table, "y", ("x", "x"))
    numbered = tmp_path / "numbered.csv"
    numbered.write_text(",x,y\n0,1,2\n")
    with pytest.raises(OptionError, match="a column named '', as pandas writes the numbers of rows"):
        input_names(numbered, "y", None)
    assert input_names(numbered, "y", ("x",)) == ("x",)
    numbered.write_text("y\n1\n")
    with pytest.raises(OptionError, match="no column but the target"):
        input_names(numbered, "y", None)


def test_a_file_without_rows_is_named(tmp_path):
    path = tmp_path / "header.csv"
    path.write_text("x,y\n")
    with pytest.raises(DatasetError, match=r"has no rows\. Leave the file out"):
        TableShard(path, ("x",), "y")()


def test_parquet_is_known_by_its_content_and_bad_columns_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra streamgp[tables]")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.pq"
    days = pyarrow.array(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ms]"))
    parquet.write_table(pyarrow.table({"x": [1, 2], "y": [1.0, np.nan], "t": days}), path)
    assert read_columns(path, ("x",)).tolist() == [[1.0], [2.0]]
    assert read_labels(path, "y").tolist() == ["1.0", ""]
    with pytest.raises(DatasetError, match=r"column 't' must hold numbers, but holds timestamp\[ms\]"):
        read_columns(path, ("t",))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_text("x,y\n")
    with pytest.raises(FileFormatError, match="cannot be read as Parquet"):
        column_names(damaged)
