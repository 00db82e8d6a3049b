"""A table that somebody filled in is read row by row, and told once."""

import pytest
import torch

from streamgp.cli.optimize.results import read_results, without_known
from streamgp.cli.optimize.study_file import read_study
from streamgp.errors import FileFormatError

HEADER = "temperature;loading;solvent;yield;comment\n"


def read(study, text):
    table = study.with_name("results.csv")
    table.write_text(text)
    return read_results(str(table), read_study(study).to_parts()["settings"])


def test_numbers_failures_and_rows_yet_to_be_done_are_told_apart(study):
    rows = "120;0.01;water;71.5;good\n130;0.1;'-OH;Failed;boiled over\n140;0.1;water;;\n;;;;\n"
    results = read(study, HEADER + rows)
    assert [point["solvent"] for point in results.points] == ["water", "-OH"]
    assert torch.equal(results.y.isnan(), torch.tensor([[False], [True]]))
    assert (results.num_open, results.num_failed) == (1, 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("90;0.01;water;3;", r"row 1 \(line 2\): The parameter 'temperature' must lie between 100 and 180, but is 90"),
        ("120;0.01;petrol;3;", "must be one of"),
        ("120;;water;3;", "the parameter 'loading' is missing"),
        ("120;0.01;water;good;", "the outcome 'yield' is 'good' and not a number. Write failed if"),
        ("120;0.01;water", "it has 3 fields, but the header has 5"),
    ],
)
def test_rows_that_cannot_be_used_are_named(study, row, message):
    with pytest.raises(FileFormatError, match=message):
        read(study, f"{HEADER}{row}\n")


def test_a_column_that_is_missing_is_named(study):
    with pytest.raises(FileFormatError, match="has no column 'yield'; it has temperature, loading, solvent"):
        read(study, "temperature,loading,solvent\n120,0.1,water\n")


def test_a_table_that_grows_is_told_once_and_repeats_within_it_count(study):
    optimizer = read_study(study)
    text = HEADER + "120;0.01;water;71.5;\n120;0.01;water;failed;\n"
    first = read(study, text)
    optimizer.tell(list(first.points), first.y)
    grown = read(study, text + "120;0.01;water;71.5;\n130;0.01;water;60;\n")
    parts = optimizer.to_parts()
    new, num_known = without_known(grown, parts["state"], parts["settings"].space)
    assert (num_known, new.y.flatten().tolist()) == (2, [71.5, 60.0])
