import json
import math
from dataclasses import asdict, replace

import pytest
import torch

from paper.schema.record import UnitRecord
from paper.schema.record_lines import as_json, read_line, write_line
from streamgp.errors import FileFormatError, ValueRangeError

RECORD = UnitRecord(
    study="tiny",
    problem="left",
    method="sum",
    seed=3,
    scale="mine",
    settings={"pause": 0.5, "sizes": [1, 2]},
    outcome={"draws": [0.25, -1e-30], "label": "Größe", "is_good": True, "none": None},
    seconds=1.25,
    machine="A processor, 2 cores",
    software={"python": "3.11"},
    finished="2026-01-01T00:00:00+00:00",
)


def changed(**fields) -> bytes:
    return json.dumps({"version": 1, **asdict(RECORD), **fields}).encode()


def test_a_record_that_is_written_and_read_is_the_same():
    line = write_line(RECORD)
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert read_line(line.encode()) == RECORD


def test_lines_from_before_a_field_are_read():
    content = json.loads(changed(processor_seconds=1.5))
    assert read_line(json.dumps(content).encode()).processor_seconds == 1.5
    del content["processor_seconds"]
    assert read_line(json.dumps(content).encode()) == RECORD


def test_json_has_lists_for_tuples():
    assert as_json({"sizes": (1, (2.0, "a"))}) == {"sizes": [1, [2.0, "a"]]}


@pytest.mark.parametrize("value", [math.nan, math.inf, [1.0, -math.inf], torch.tensor(1.0), {1, 2}, {(1, 2): 3}])
def test_what_json_does_not_know_is_refused(value):
    with pytest.raises(ValueRangeError, match=r"Results must be finite numbers.*tolist\(\)"):
        write_line(replace(RECORD, outcome={"value": value}))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"version": 1, "study": "ti', "cannot be read as JSON"),
        (b"\xff\xfe", "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b"[1, 2]", "holds a list and not an object"),
        (b"{}", "its version must be 1, but is None"),
        (changed(version=2), "its version must be 1, but is 2. Update streamgp"),
        (changed(version=True), "its version must be 1, but is True"),
        (changed(seed="3"), "its field seed must be a whole number, but is \"3\""),
        (changed(seed=True), "its field seed must be a whole number, but is true"),
        (changed(processor_seconds="1"), "its field processor_seconds must be a number, but is \"1\""),
        (changed(seed=3.5), "its field seed must be a whole number, but is 3.5"),
        (changed(seconds="long"), "its field seconds must be a number"),
        (changed(outcome=[1]), r"its field outcome must be an object, but is \[1\]"),
        (changed(problem=None), "its field problem must be text, but is null"),
        (changed(software={"python": 3}), "its field software must hold versions as texts"),
        (changed(outcome={"a": math.nan}), "NaN is not a finite number"),
        (changed(outcome={"a": 0}).replace(b'"a": 0', b'"a": 1e999'), "1e999 is not a finite number"),
        (b'{"version": 1, "study": "tiny", "problem": "left"}', "lacks the fields method, seed, scale"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_refused(line, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        read_line(line)
