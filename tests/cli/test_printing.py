import io
import json

import pytest
from rich.console import Console

from streamgp.cli.printing import count_of, print_json, say, show_table


def test_one_thing_has_no_plural():
    assert (count_of(1, "point"), count_of(0, "point")) == ("1 point", "0 points")


def test_json_has_null_for_what_is_not_finite(capsys):
    print_json({"y": [1.5, float("nan")], "best": {"x": float("inf")}})
    assert json.loads(capsys.readouterr().out) == {"y": [1.5, None], "best": {"x": None}}


def test_failures_are_called_so_and_numbers_are_short(capsys):
    show_table("Told", ["x", "y"], [[1 / 3, float("nan")]])
    printed = capsys.readouterr().out
    assert "0.333333" in printed
    assert "failed" in printed
    assert "nan" not in printed


def test_sentences_are_printed_as_they_are(capsys):
    say("One [bold] line.", "Another.")
    assert capsys.readouterr().out.splitlines() == ["One [bold] line.", "Another."]


@pytest.mark.parametrize("is_quiet", [False, True])
def test_the_first_rows_of_a_table_are_printed_as_they_are_and_nothing_if_quiet(is_quiet):
    console = Console(file=io.StringIO(), width=60, quiet=is_quiet)
    show_table("Next", ["rank"], [[f"[bold]{i}"] for i in range(1, 24)], console=console, most_rows=20)
    text = console.file.getvalue()
    if is_quiet:
        assert not text
    else:
        assert "[bold]20" in text
        assert "[bold]21" not in text
        assert "And 3 more." in text
