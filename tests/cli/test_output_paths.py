from pathlib import Path

import pytest

from streamgp.cli.output_paths import check_output_paths
from streamgp.errors import OptionError


def test_distinct_files_in_directories_that_exist_are_accepted(tmp_path):
    check_output_paths({"--output": tmp_path / "a", "--map": None, "--save": tmp_path / "b"}, "-")


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ("absent/b", "--save absent/b: the directory does not exist or cannot be written"),
        (".", "--save . is a directory. Add a file name"),
        ("a", "--save a is also --output"),
        ("./source", "--save source is also the source"),
    ],
)
def test_other_places_are_refused(tmp_path, monkeypatch, second, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=sentence):
        check_output_paths({"--output": Path("a"), "--save": Path(second)}, "source")
