import random
from dataclasses import replace

import pytest

import streamgp as sg
from streamgp.cli.stream.checkpoints import (
    Checkpoint,
    check_identity,
    has_checkpoint,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from streamgp.errors import FileFormatError, OptionError
from streamgp.tables.lines import Position


def progress(num_rows):
    stream = sg.Stream("y", likelihood="gaussian", drift_detector=None)
    for i in range(num_rows):
        stream.learn({"x": float(i % 3), "when": f"2024-03-{1 + i:02d}", "y": float(i % 2)})
    start = Checkpoint(stream, {"seed": 0}, num_bytes=7)
    return start.skip(3, "the target 'y' is missing", Position(num_rows, 99))


def read(path):
    checkpoint, note = load_checkpoint(path)
    return checkpoint.num_rows, note


def test_a_checkpoint_is_read_as_it_was_written(tmp_path):
    before = progress(5)
    save_checkpoint(tmp_path / "keep", before)
    loaded, note = load_checkpoint(tmp_path / "keep")
    assert (loaded.num_rows, loaded.num_bytes, loaded.num_skipped, note) == (5, 7, 1, None)
    assert loaded.skipped == ((3, "the target 'y' is missing"),)
    assert loaded.position == Position(5, 99)
    assert loaded.identity == {"seed": 0}
    assert loaded.score_report() == before.score_report()
    assert loaded.stream.columns_ == before.stream.columns_


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
        save_checkpoint(path, progress(num_rows))
    whole, before = path.read_bytes(), (tmp_path / "keep.previous").read_bytes()
    for _ in range(20):
        path.write_bytes(whole[: draw.randrange(len(whole))])
        num_rows, note = read(path)
        assert num_rows == 2
        assert "keep is damaged" in note
        assert "the one before it is used" in note
        assert not path.exists()
    assert (tmp_path / "keep.previous").read_bytes() == before
    assert read(path) == (2, None)
    save_checkpoint(path, progress(4))
    assert read(path)[0] == 4
    path.unlink()
    assert read(path)[0] == 2


def test_without_a_whole_checkpoint_the_run_is_refused(tmp_path):
    path = tmp_path / "keep"
    path.write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match=r"keep is damaged.*There is no earlier one; start again with --fresh"):
        load_checkpoint(path)
    save_checkpoint(path, progress(1))
    path.write_bytes(b"nothing")
    (tmp_path / "keep.previous").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match=r"The one before it.*Start again with --fresh"):
        load_checkpoint(path)
    remove_checkpoint(path)
    assert not has_checkpoint(path)


def test_another_stream_is_refused(tmp_path):
    saved = replace(progress(1), identity={"target": "y", "block": 1}).identity
    check_identity(saved, {"target": "y", "block": 1}, tmp_path)
    with pytest.raises(OptionError, match=r"was written with block = 1, but now it is 2"):
        check_identity(saved, {"target": "y", "block": 2}, tmp_path)
