"""Tables that somebody filled in: told once, completed later, and written so that nothing is lost."""

import pytest
import torch

import streamgp as sg
from streamgp.errors import FileFormatError, OptionError

SPACE = {"heat": sg.Real(100, 180), "dose": sg.Real(1e-4, 1, log=True), "solvent": sg.Categorical(["water", "-OH"])}
ASSAYS = [sg.Objective("yield"), sg.Objective("waste", maximize=False)]
HEADER = "heat;dose;solvent;yield;waste;comment\n"


def make(**options):
    return sg.Optimizer(SPACE, **({"objectives": ASSAYS} | options))


def table(tmp_path, text, name="results.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_numbers_failures_and_rows_yet_to_be_done_are_told_apart(tmp_path):
    rows = "120;0.01;water;71.5;2;good\n130;0.1;'-OH;Failed;;boiled over\n140;0.1;water;;;\n;;;;;\n150;.1;water;3;;\n"
    optimizer = make()
    counts = optimizer.tell_csv(table(tmp_path, HEADER + rows))
    assert (counts.num_told, counts.num_failed, counts.num_open) == (3, 1, 1)
    assert [point["solvent"] for point in optimizer.X] == ["water", "-OH", "water"]
    assert optimizer.y.isnan().tolist() == [[False, False], [True, True], [False, True]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("hot;0.01;water;3;1;", r"line 2: The parameter 'heat' must be a number, but is 'hot'"),
        ("120;0.01;petrol;3;1;", "must be one of"),
        ("120;;water;3;1;", "the parameter 'dose' is missing"),
        ("120;0;water;3;1;", "'dose' must be a positive number"),
        (
            "120;0.01;water;good;1;",
            "the outcome 'yield' is 'good' and not a number. Write a decimal point, <0.5 for a bound",
        ),
        ("120;0.01;water", "it has 3 fields, but the header has 6"),
    ],
)
def test_rows_that_cannot_be_used_are_named_and_nothing_is_told(tmp_path, row, message):
    optimizer = make()
    good = table(tmp_path, f"{HEADER}120;.1;water;1;1;\n", "good.csv")
    with pytest.raises(FileFormatError, match=message):
        optimizer.tell_csv(good, table(tmp_path, f"{HEADER}{row}\n"))
    assert not len(optimizer.y)


def test_a_table_that_grows_is_told_once_and_repeats_within_it_count(tmp_path):
    optimizer = make()
    text = HEADER + "120;0.01;water;71.5;2;\n120;0.01;water;failed;;\n"
    optimizer.tell_csv(table(tmp_path, text))
    grown = table(tmp_path, text + "120;0.01;water;71.5;2;\n130;0.01;water;60;1;\n")
    counts = optimizer.tell_csv(grown, skip_known=True)
    assert (counts.num_told, counts.num_known) == (2, 2)
    assert optimizer.y[2:, 0].tolist() == [71.5, 60.0]


def test_outcomes_measured_later_complete_the_evaluation_that_they_belong_to(tmp_path):
    optimizer = make()
    optimizer.tell_csv(table(tmp_path, HEADER + "120;0.01;water;71.5;;\n130;0.01;water;60;;\n"))
    counts = optimizer.tell_csv(
        table(tmp_path, HEADER + "120;0.01;water;71.5;2;\n130;.01;water;61;4;\n"), skip_known=True
    )
    assert (counts.num_completed, counts.num_told) == (1, 1)
    assert optimizer.y[0].tolist() == [71.5, 2.0]
    assert optimizer.y[1].isnan().tolist() == [False, True]
    optimizer.correct(1, {"waste": 3.0})
    assert optimizer.y[1].tolist() == [60.0, 3.0]
    optimizer.correct(1)
    assert optimizer.y[1].isnan().all()


def test_several_tables_are_told_as_one(tmp_path):
    paths = [table(tmp_path, f"{HEADER}{heat};.1;water;1;2;\n", f"{heat}.csv") for heat in (110, 120)]
    optimizer = sg.Optimizer.from_csv(paths, SPACE, objectives=ASSAYS)
    assert [point["heat"] for point in optimizer.X] == [110.0, 120.0]
    with pytest.raises(OptionError, match="needs the path of a table"):
        optimizer.tell_csv()


def test_what_is_exported_is_read_again_failures_and_gaps_included(tmp_path):
    optimizer, again = make(), make()
    points = [{"heat": 110.0 + i, "dose": 0.1, "solvent": "-OH"} for i in range(3)]
    optimizer.tell(points, [[1.0, 2.0], [torch.nan, torch.nan], [torch.nan, 4.0]])
    optimizer.export(tmp_path / "runs.csv")
    assert (tmp_path / "runs.csv").read_text().splitlines()[2] == "111.0,0.1,'-OH,failed,failed"
    again.tell_csv(tmp_path / "runs.csv")
    assert again.X == optimizer.X
    assert torch.equal(again.y.nan_to_num(-1.0), optimizer.y.nan_to_num(-1.0))
    assert again.to_parts()["state"].observations.is_success.tolist() == [True, False, True]


def test_a_frame_says_what_is_pending(tmp_path):
    pytest.importorskip("pandas")
    optimizer = make()
    optimizer.tell({"heat": 110.0, "dose": 0.1, "solvent": "water"}, [1.0, 2.0])
    optimizer.tell_failure({"heat": 120.0, "dose": 0.1, "solvent": "water"})
    optimizer.ask(2)
    frame = optimizer.to_frame()
    assert frame["status"].tolist() == ["told", "failed", "pending", "pending"]
    assert list(frame.columns) == [*SPACE, "yield", "waste", "status"]


def test_comparisons_are_seen_exported_read_and_corrected(tmp_path):
    pytest.importorskip("pandas")
    taste, again = (make(objectives=None, likelihood="preference") for _ in range(2))
    points = [{"heat": 110.0 + i, "dose": 0.1, "solvent": "water"} for i in range(4)]
    taste.tell_comparison(points[:2], points[2:])
    assert list(taste.observations.columns)[:2] == ["winner.heat", "winner.dose"]
    taste.export(tmp_path / "taste.csv")
    assert again.tell_csv(tmp_path / "taste.csv").num_told == 2
    assert again.tell_csv(tmp_path / "taste.csv", skip_known=True).num_known == 2
    assert again.comparisons == taste.comparisons == (points[:2], points[2:])
    taste.correct(0)
    assert taste.comparisons == ([points[2], points[1]], [points[0], points[3]])
    taste.remove(1)
    assert taste.comparisons == ([points[2]], [points[0]])
    assert taste.to_frame()["status"].tolist() == ["told"]
    (tmp_path / "taste.csv").write_text("winner.heat,winner.dose,winner.solvent,loser.heat,loser.dose\n")
    with pytest.raises(FileFormatError, match=r"must have a column 'loser.solvent'"):
        again.tell_csv(tmp_path / "taste.csv")


def test_bounds_are_exported_read_and_corrected(tmp_path):
    optimizer, again = make(), make()
    points = [{"heat": 110.0 + i, "dose": 0.1, "solvent": "water"} for i in range(2)]
    optimizer.tell(points, {"yield": ["<0.5", 2.0], "waste": [1.0, ">3"]})
    optimizer.export(tmp_path / "runs.csv")
    assert [line.split(",")[3:] for line in (tmp_path / "runs.csv").read_text().splitlines()[1:]] == [
        ["<0.5", "1.0"],
        ["2.0", ">3.0"],
    ]
    again.tell_csv(tmp_path / "runs.csv")
    for one in (optimizer, again):
        assert one.to_parts()["state"].observations.sides.tolist() == [[-1.0, 0.0], [0.0, 1.0]]
    assert again.tell_csv(tmp_path / "runs.csv", skip_known=True).num_known == 2
    again.correct(0, {"yield": 0.4})
    assert again.to_parts()["state"].observations.sides.tolist() == [[0.0, 0.0], [0.0, 1.0]]
    assert again.y[0].tolist() == [0.4, 1.0]


def test_slopes_stay_right_in_another_range():
    optimizer = sg.Optimizer([(0.0, 1.0)])
    optimizer.tell([[0.5]], [1.0], gradient=[[3.0]])
    optimizer.change_range([(-1.0, 3.0)])
    assert optimizer.to_parts()["state"].observations.gradients.tolist() == [[12.0]]
