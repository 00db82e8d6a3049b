from pathlib import Path

import pytest

from streamgp.cli.stream.options import StreamOptions
from streamgp.errors import OptionError, ValueRangeError


@pytest.mark.parametrize(
    ("source", "output", "path"),
    [
        ("a.csv", None, Path("a.predictions.jsonl")),
        ("a.jsonl.gz", None, Path("a.predictions.jsonl")),
        ("a.csv", "b", Path("b")),
        ("a.csv", "-", None),
        ("-", None, None),
        ("-", "b", Path("b")),
    ],
)
def test_predictions_go_beside_the_source_or_to_standard_output(source, output, path):
    assert StreamOptions(source, "y", output=output).output_path == path


def test_options_without_meaning_are_refused(tmp_path):
    with pytest.raises(ValueRangeError, match="block must be a whole number of at least 1, but is 0"):
        StreamOptions("-", "y", block=0)
    with pytest.raises(ValueRangeError, match="limit must be a whole number of at least 1, but is 0"):
        StreamOptions("-", "y", limit=0)
    with pytest.raises(OptionError, match=r"--checkpoint .*same is also --output"):
        StreamOptions("-", "y", output=str(tmp_path / "same"), checkpoint=tmp_path / "same")
