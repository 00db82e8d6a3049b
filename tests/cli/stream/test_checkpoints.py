import random

import pytest

from streamgp.cli.stream.checkpoints import (
    Progress,
    check_identity,
    has_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from streamgp.cli.stream.drift import DriftLog
from streamgp.cli.stream.scoring import Recent
from streamgp.errors import FileFormatError, OptionError
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.metrics import VALUE_MEASURES, StreamMetrics
from streamgp.streaming.scoring import ValueScore
from streamgp.tables.columns import Column, Preprocessing
from streamgp.tables.lines import Position


def test_only_the_latest_predictions_are_remembered():
    assert [each.row for each in progress(1).with_recent([Recent(i, 0.0, 0.0, 0.0, 0.0) for i in range(400)]).recent][
        ::299
    ] == [100, 399]


def progress(num_rows):
    metrics = StreamMetrics(VALUE_MEASURES).add({name: [0.1 * num_rows] for name in VALUE_MEASURES})
    start = Progress(
        StreamLearner(StreamSettings()),
        ValueScore(metrics),
        Preprocessing((Column("x", "date", format="iso", mean=3.5, num_values=2),)),
        num_rows=num_rows,
        num_bytes=7,
        num_refits=2,
        drift=DriftLog((0.1, 0.2), 3),
        recent=(Recent(1, None, 1.0, 0.5, 1.5),),
    )
    return start.skip(3, "the target 'y' is missing", Position(num_rows, 99))


def read(path):
    loaded, identity, note = load_checkpoint(path)
    return loaded.num_rows, identity, note


def test_a_checkpoint_is_read_as_it_was_written(tmp_path):
    save_checkpoint(tmp_path / "keep", progress(5), {"seed": 0})
    loaded, identity, note = load_checkpoint(tmp_path / "keep")
    assert (loaded.num_rows, loaded.num_bytes, loaded.num_skipped, loaded.num_refits) == (5, 7, 1, 2)
    assert loaded.skipped == ((3, "the target 'y' is missing"),)
    assert loaded.position == Position(5, 99)
    assert loaded.score == progress(5).score
    assert loaded.preprocessing == progress(5).preprocessing
    assert loaded.drift == progress(5).drift
    assert loaded.recent == progress(5).recent
    assert (identity, note) == ({"seed": 0}, None)


def test_only_the_first_bad_rows_are_remembered():
    many = progress(1)
    for line in range(50):
        many = many.skip(line, "bad", Position(line, 0))
    assert many.num_skipped == 51
    assert len(many.skipped) == 20


def test_the_checkpoint_before_the_last_is_kept_and_used_when_the_last_is_damaged_or_gone(tmp_path):
    path, draw = tmp_path / "keep", random.Random(0)
    assert not has_checkpoint(path)
    assert load_checkpoint(path) is None
    for num_rows in (1, 2, 3):
        save_checkpoint(path, progress(num_rows), {})
    whole, before = path.read_bytes(), (tmp_path / "keep.previous").read_bytes()
    for _ in range(40):
        path.write_bytes(whole[: draw.randrange(len(whole))])
        num_rows, _, note = read(path)
        assert num_rows == 2
        assert "keep is damaged" in note
        assert "the one before it is used" in note
        assert not path.exists()
    assert (tmp_path / "keep.previous").read_bytes() == before
    assert read(path) == (2, {}, None)
    save_checkpoint(path, progress(4), {})
    assert read(path)[0] == 4
    path.unlink()
    assert read(path)[0] == 2


def test_without_a_whole_checkpoint_the_run_is_refused(tmp_path):
    path = tmp_path / "keep"
    path.write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match=r"keep is damaged.*There is no earlier one; start again with --fresh"):
        load_checkpoint(path)
    (tmp_path / "keep.previous").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match=r"The one before it: .*Start again with --fresh"):
        load_checkpoint(path)
    assert path.exists()
    remove_checkpoint(path)
    assert not list(tmp_path.iterdir())


def test_another_identity_is_refused(tmp_path):
    check_identity({"seed": 0, "block": 1}, {"seed": 0}, tmp_path)
    with pytest.raises(OptionError, match=r"was written with block = 1, but now it is 2.*--fresh"):
        check_identity({"seed": 0, "block": 1}, {"seed": 0, "block": 2}, tmp_path)
