import json
import os
import sys

import pytest

from streamgp.cli.stream.predictions import PredictionFile
from streamgp.errors import FileFormatError, OptionError


def test_lines_are_written_and_counted(tmp_path):
    with PredictionFile(tmp_path / "a", 0) as file:
        num_bytes = file.write([{"row": 1, "target": "ä"}, {"row": 2}])
    content = (tmp_path / "a").read_bytes()
    assert len(content) == num_bytes
    assert [json.loads(line) for line in content.splitlines()] == [{"row": 1, "target": "ä"}, {"row": 2}]


def test_what_came_after_a_checkpoint_is_cut_off(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    with PredictionFile(tmp_path / "a", 3) as file:
        file.write([{}])
    assert (tmp_path / "a").read_bytes() == b"123{}\n"
    with PredictionFile(tmp_path / "a", 6) as file:
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
