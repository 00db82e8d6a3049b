"""Past experiments in files take the place of the initial design as far as they go."""

import pytest
import torch

import streamgp as sg
from streamgp.errors import FileFormatError, SaveError, StreamGPError
from streamgp.loops.state import is_initial

SPACE = {"heat": sg.Real(0, 10), "solvent": sg.Categorical(["water", "ethanol"])}


def write(path, rows):
    # As spreadsheets do, with a mark in front and columns of their own.
    path.write_text("number,solvent,heat,yield\n" + "".join(rows), encoding="utf-8-sig")
    return path


def begins(optimizer):
    """Whether the next point is one of the initial design."""
    parts = optimizer.to_parts()
    return is_initial(parts["state"], parts["settings"])


def past(tmp_path, num_rows):
    rows = [f"{i},{'water' if i % 2 else 'ethanol'},{i % 10},{'failed' if i == 2 else i}\n" for i in range(num_rows)]
    path = write(tmp_path / "past.csv", rows)
    return sg.Optimizer.from_csv(path, SPACE, objectives=[sg.Objective("yield")], num_initial=6)


def test_enough_past_experiments_replace_the_whole_design(tmp_path):
    optimizer = past(tmp_path, 8)
    assert optimizer.X[1] == {"heat": 1.0, "solvent": "water"}
    assert optimizer.y[2].isnan()
    assert not begins(optimizer)


def test_a_few_past_experiments_replace_some_of_it(tmp_path):
    optimizer = past(tmp_path, 5)  # of which one failed
    for _ in range(2):
        assert begins(optimizer)
        optimizer.tell(optimizer.ask(), [1.0])
    assert not begins(optimizer)


def test_what_was_exported_is_read_again(tmp_path):
    optimizer = past(tmp_path, 4)
    optimizer.export(tmp_path / "runs.csv")
    again = sg.Optimizer.from_csv(tmp_path / "runs.csv", SPACE, objectives=[sg.Objective("yield")])
    assert again.X == optimizer.X
    assert torch.equal(again.y.nan_to_num(-1.0), optimizer.y.nan_to_num(-1.0))
    empty = sg.Optimizer(SPACE)
    empty.export(tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text().strip() == "heat,solvent,objective"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x0,x1,objective\n1,a,3\n", "The table must have a number for a coordinate, but has 'a'"),
        ("x0,x1,objective\n1,2\n1\n", "line 2: it has 2 fields, but the header has 3"),
        ("x0,x1,objective\n1,2,high\n", "the outcome 'objective' is 'high' and not a number. Write a decimal point"),
        ("x0,x1\n1,2\n", "must have a column 'objective', but has x0, x1"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(StreamGPError, match=message):
        sg.Optimizer.from_csv(tmp_path / "bad.csv", [(0.0, 10.0), (0.0, 10.0)])


def test_a_pool_reads_whole_numbers(tmp_path):
    learner = sg.PoolLearner(torch.rand(5, 2))
    (tmp_path / "pool.csv").write_text("index,response\n3,1.5\n0.5,2\n")
    with pytest.raises(FileFormatError, match=r"a whole number for an index, but has '0.5'"):
        learner.tell_csv(tmp_path / "pool.csv")
    (tmp_path / "pool.csv").write_text("index,response\n3,1.5\n")
    learner.tell_csv(tmp_path / "pool.csv")
    assert learner.X.tolist() == [3]
    learner.export(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().split() == ["index,response", "3,1.5"]


HEAT = {"heat": sg.Real(0.0, 10.0), "solvent": sg.Categorical(["water", "ethanol"])}


def told(tmp_path, text):
    (tmp_path / "past.csv").write_text(text)
    return sg.Optimizer.from_csv(tmp_path / "past.csv", HEAT, objectives=[sg.Objective("yield")])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("heat,solvent,yield\n1,water,61,5\n", r"line 2: it has 4 fields, but the header has 3.*decimal point"),
        ("heat,solvent,yield\n1,water,6\n2,water\n", "line 3: it has 2 fields, but the header has 3"),
        ("heat,solvent,yield,yield\n1,water,61,5\n", "several columns of the names \\['yield'\\]. Rename all but one"),
        ("heat,solvent,yield\n1,water,6\n\nhot,water,6\n", "line 4: The parameter 'heat' must be a number"),
        ("heat,solvent,yield\n1,water,6\n2,acetone,6\n", "line 3: The parameter 'solvent' must be one of"),
        (
            "heat;solvent;yield\n1;water;61,5\n",
            r"line 2: the outcome 'yield' is '61,5' and not a number. Write a decimal point",
        ),
        ("heat,solvent,Yield\n1,water,61\n", "must have a column 'yield'.*Rename 'Yield'"),
    ],
)
def test_a_table_that_could_be_misread_is_refused_with_the_line(tmp_path, text, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        told(tmp_path, text)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_tables_of_spreadsheets_are_read(tmp_path, separator):
    text = "note,heat , solvent,yield\n,1,water,6.5\n,,,\n\nx,2,ethanol,failed\n".replace(",", separator)
    optimizer = told(tmp_path, text)
    assert optimizer.X == [{"heat": 1.0, "solvent": "water"}, {"heat": 2.0, "solvent": "ethanol"}]
    assert optimizer.y[0].item() == 6.5
    assert optimizer.y[1].isnan().all()


def test_a_table_that_cannot_be_written_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(SaveError, match=r"cannot be written \(No such file or directory\). Choose another place"):
        sg.Optimizer(HEAT).export(tmp_path / "nowhere" / "runs.csv")


def test_texts_that_a_spreadsheet_would_run_are_exported_with_an_apostrophe_and_read_again(tmp_path):
    space = {"=x": sg.Real(-2, 1), "kind": sg.Categorical(["=HYPERLINK(1)", "-1", "plain"])}
    optimizer = sg.Optimizer(space, objectives=[sg.Objective("+y")])
    optimizer.tell([{"=x": -0.5, "kind": kind} for kind in ("=HYPERLINK(1)", "-1", "plain")], [1.0, -2.0, 3.0])
    path = tmp_path / "runs.csv"
    optimizer.export(path)
    lines = path.read_text().splitlines()
    assert lines[0] == "'=x,kind,'+y"
    assert lines[1:] == ["-0.5,'=HYPERLINK(1),1.0", "-0.5,-1,-2.0", "-0.5,plain,3.0"]
    again = sg.Optimizer.from_csv(path, space, objectives=[sg.Objective("+y")])
    assert again.X == optimizer.X
    assert torch.equal(again.y, optimizer.y)
