import json
import os
import sys
import zlib

import pytest

from streamgp.cli.stream.predictions import PredictionFile, check_unclaimed, claim
from streamgp.errors import FileFormatError, OptionError


def test_lines_are_written_and_counted(tmp_path):
    with PredictionFile(tmp_path / "a", 0) as file:
        num_bytes = file.write([{"row": 1, "target": "ä"}, {"row": 2}])
    content = (tmp_path / "a").read_bytes()
    assert len(content) == num_bytes
    assert [json.loads(line) for line in content.splitlines()] == [{"row": 1, "target": "ä"}, {"row": 2}]


def test_what_came_after_a_checkpoint_is_cut_off(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    with PredictionFile(tmp_path / "a", 3, zlib.crc32(b"123")) as file:
        file.write([{}])
    assert (tmp_path / "a").read_bytes() == b"123{}\n"
    with PredictionFile(tmp_path / "a", 6, zlib.crc32(b"123{}\n")) as file:
        file.write([{"half": "done"}])
        file.sync(6)
        file.write([{}])
    assert (tmp_path / "a").read_bytes() == b"123{}\n{}\n"


def test_a_file_that_is_too_short_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    with pytest.raises(FileFormatError, match=r"a has 3 bytes, but the checkpoint was written when it had 4.*--fresh"):
        PredictionFile(tmp_path / "a", 4)
    assert (tmp_path / "a").read_bytes() == b"123"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="everything can be written by this user")
def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "a").touch(mode=0o400)
    with pytest.raises(OptionError, match=r"a cannot be written .*Choose another --output"):
        PredictionFile(tmp_path / "a", 0)


def test_a_file_that_was_changed_or_replaced_is_refused(tmp_path):
    with PredictionFile(tmp_path / "a", 0) as file:
        num_bytes = file.write([{"row": 1}]) + file.write([{"row": 2}])
        checksum = file.checksum
    with PredictionFile(tmp_path / "a", num_bytes, checksum) as file:
        file.write([{"row": 3}])
        later = file.checksum
    content = (tmp_path / "a").read_bytes()
    assert later == zlib.crc32(content)
    (tmp_path / "a").write_bytes(content.replace(b"2", b"7"))
    with pytest.raises(FileFormatError, match=r"a does not begin with the predictions.*--output.*--fresh"):
        PredictionFile(tmp_path / "a", num_bytes, checksum)
    assert (tmp_path / "a").read_bytes() == content.replace(b"2", b"7")


def test_predictions_belong_to_a_checkpoint_while_both_are_there(tmp_path):
    path, checkpoint = tmp_path / "a", tmp_path / "keep"
    check_unclaimed(None, checkpoint)
    claim(None, checkpoint)
    claim(path, checkpoint)
    for content in (None, b"", b"{}"):
        if content is not None:
            path.write_bytes(content)
        check_unclaimed(path, None)
    checkpoint.write_bytes(b"...")
    check_unclaimed(path, checkpoint)
    for other in (None, tmp_path / "other"):
        with pytest.raises(
            OptionError, match=r"a holds the predictions of the run whose checkpoint is .*keep.*--output"
        ):
            check_unclaimed(path, other)
    checkpoint.unlink()
    check_unclaimed(path, None)
    claim(path, None)
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
