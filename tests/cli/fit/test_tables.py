import numpy as np
import pytest

from streamgp.cli.fit.tables import TableShard, column_names, read_columns, read_labels
from streamgp.errors import DatasetError, OptionError, ValueRangeError


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
