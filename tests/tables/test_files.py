import gzip

import numpy as np
import pytest

from streamgp.errors import DatasetError, FileFormatError, OptionError, ValueRangeError
from streamgp.tables.files import TableFile


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    rows = "\n".join(f"{i},{i * i},{'odd' if i % 2 else 'even'}" for i in range(25))
    path.write_text(f"x,y,kind\n{rows}\n")
    return path


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
        TableFile(path).numbers(columns)


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
        assert TableFile(tmp_path / name).names == ("x", "y")
        assert np.array_equal(TableFile(tmp_path / name).numbers(("y", "x")), [[2, 1], [np.nan, 3]], equal_nan=True)


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
        TableFile(path).numbers(("x",))


def test_parquet_is_known_by_its_content_and_bad_columns_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra streamgp[tables]")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.pq"
    days = pyarrow.array(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ms]"))
    parquet.write_table(pyarrow.table({"x": [1, 2], "y": [1.0, np.nan], "t": days}), path)
    assert TableFile(path).numbers(("x",)).tolist() == [[1.0], [2.0]]
    assert TableFile(path).labels("y").tolist() == ["1.0", ""]
    with pytest.raises(DatasetError, match=r"column 't' must hold numbers, but holds datetime64\[ms\]"):
        TableFile(path).numbers(("t",))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_text("x,y\n")
    with pytest.raises(FileFormatError, match="cannot be read as Parquet"):
        _ = TableFile(damaged).names
