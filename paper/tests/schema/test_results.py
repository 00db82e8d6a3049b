import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from paper.schema.record import UnitRecord
from paper.schema.results import append_record, as_json, load_records, read_line, results_file
from streamgp.errors import FileFormatError, ValueRangeError

SETTINGS = {"num_steps": 10, "rate": 0.5, "sizes": (1, 2)}


def make_record(method="sum", seed=0, *, draw=1.0, **settings) -> UnitRecord:
    return UnitRecord(
        study="tiny",
        problem="left",
        method=method,
        seed=seed,
        scale="mine",
        settings={"num_steps": 10, "rate": 0.5, "sizes": [1, 2], **settings},
        outcome={"draw": draw},
        seconds=1.0,
        machine="A processor, 2 cores",
        software={"python": "3.11"},
        finished="2026-01-01T00:00:00+00:00",
    )


def load(directory: Path, settings=SETTINGS):
    records, issues = load_records("tiny", "mine", directory, settings=settings)
    return records.all, [(issue.line, issue.sentence) for issue in issues]


def test_records_are_read_as_they_were_appended(tmp_path):
    records = tuple(make_record(method, seed) for seed in range(3) for method in ("sum", "mean"))
    for record in records:
        append_record(record, tmp_path)
    assert load(tmp_path) == (records, [])
    assert load(tmp_path, None) == (records, [])
    assert len(results_file("tiny", "mine", tmp_path).read_text().splitlines()) == 6


def test_a_file_that_does_not_exist_holds_nothing(tmp_path):
    assert load(tmp_path) == ((), [])


def test_a_record_with_nan_leaves_the_file_as_it_was(tmp_path):
    append_record(make_record(), tmp_path)
    before = results_file("tiny", "mine", tmp_path).read_bytes()
    with pytest.raises(ValueRangeError, match="Results must be finite"):
        append_record(make_record(seed=1, draw=float("nan")), tmp_path)
    assert results_file("tiny", "mine", tmp_path).read_bytes() == before


def written(directory: Path, record: UnitRecord) -> bytes:
    append_record(record, directory)
    return results_file(record.study, record.scale, directory).read_bytes()


@pytest.mark.parametrize("num_bytes", [1, 40, 200])
def test_a_record_after_a_line_that_was_cut_off_is_kept(tmp_path, num_bytes):
    path = results_file("tiny", "mine", tmp_path)
    append_record(make_record(), tmp_path)
    with path.open("ab") as file:
        file.write(written(tmp_path / "other", make_record(seed=1))[:num_bytes])
    append_record(make_record(seed=2), tmp_path)
    records, ((line, sentence),) = load(tmp_path)
    assert [record.seed for record in records] == [0, 2]
    assert line == 2
    assert sentence.startswith("The line was left out: it cannot be read as JSON")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b"{", b"[", "cannot be read as JSON"),
        (b'"seed": 0', b'"seed": NaN', "NaN is not a finite number"),
        (b'"draw": 1.0', b'"draw": 1e999', "1e999 is not a finite number"),
        (b'"version": 1', b'"version": 7', "its version must be 1, but is 7. Run the unit again"),
        (b'"seed": 0', b'"seeds": 0', "it lacks fields .*'seed'.* Run the unit again"),
    ],
)
def test_a_damaged_line_is_named_and_the_rest_is_read(tmp_path, old, new, sentence):
    line = written(tmp_path, make_record())
    assert read_line(line) == make_record()
    damaged = line.replace(old, new, 1)
    with pytest.raises(FileFormatError, match=sentence):
        read_line(damaged)
    results_file("tiny", "mine", tmp_path).write_bytes(b"\n" + damaged)
    append_record(make_record(seed=4), tmp_path)
    append_record(replace(make_record(seed=5), study="other"), tmp_path)
    (record,), ((number, said),) = load(tmp_path)
    assert record.seed == 4
    assert number == 2
    assert re.search(sentence, said)


def test_a_line_of_another_study_is_left_out(tmp_path):
    results_file("tiny", "mine", tmp_path).parent.mkdir()
    results_file("tiny", "mine", tmp_path).write_bytes(
        written(tmp_path / "other", replace(make_record(), study="other"))
    )
    assert load(tmp_path) == ((), [(1, "The line was left out: it is of other: left, sum, seed 0.")])


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, -math.inf], torch.tensor(1.0), {1, 2}, {(1, 2): 3}])
def test_what_json_does_not_know_is_refused(value):
    with pytest.raises(ValueRangeError, match=r"Results must be finite numbers.*tolist\(\)"):
        as_json({"value": value})


def test_json_has_lists_for_tuples():
    assert as_json({"sizes": (1, (2.0, "a"))}) == {"sizes": [1, [2.0, "a"]]}


def test_an_issue_names_the_file_and_the_line(tmp_path):
    path = results_file("tiny", "mine", tmp_path)
    path.parent.mkdir()
    path.write_text("{}\n")
    _, (issue,) = load_records("tiny", "mine", tmp_path)
    assert str(issue).startswith(f"{path}, line 1: The line was left out: its version")


def test_a_file_that_cannot_be_read_is_an_issue(tmp_path):
    path = results_file("tiny", "mine", tmp_path)
    path.mkdir(parents=True)
    _, (issue,) = load_records("tiny", "mine", tmp_path)
    assert str(issue) == f"{path}: The file cannot be read (Is a directory)."


def test_of_a_unit_that_ran_twice_the_last_record_counts(tmp_path):
    for draw in (1.0, 2.0):
        append_record(make_record(draw=draw), tmp_path)
    (record,), issues = load(tmp_path)
    assert record.outcome == {"draw": 2.0}
    assert issues == []


def test_records_made_with_other_settings_are_left_out_and_reported_together(tmp_path):
    for seed in range(3):
        append_record(make_record(seed=seed, num_steps=5), tmp_path)
    append_record(make_record(seed=3, num_steps=7, rate=1.0), tmp_path)
    append_record(make_record(seed=4), tmp_path)
    (record,), issues = load(tmp_path)
    assert record.seed == 4
    assert issues == [
        (1, "3 records from this line on were made with other settings (num_steps 5 instead of 10); "
            "run again to replace."),
        (4, "The record was made with other settings (num_steps 7 instead of 10, and 1 more); run again to replace."),
    ]  # fmt: skip


def test_records_with_other_settings_that_were_replaced_are_not_mentioned(tmp_path):
    append_record(make_record(draw=1.0, num_steps=5), tmp_path)
    append_record(make_record(draw=2.0), tmp_path)
    (record,), issues = load(tmp_path)
    assert record.outcome == {"draw": 2.0}
    assert issues == []


def test_without_settings_those_of_the_last_line_count(tmp_path):
    append_record(make_record(seed=0), tmp_path)
    append_record(make_record(seed=1, num_steps=5), tmp_path)
    (record,), ((line, sentence),) = load(tmp_path, None)
    assert record.seed == 1
    assert line == 1
    assert "num_steps 10 instead of 5" in sentence
