import warnings

import pytest

from streamgp.cli.error_handling import list_few, printable, report_warnings
from streamgp.errors import StreamGPWarning


def test_long_lists_are_cut():
    assert list_few(list("abc")) == "a; b; c"
    assert list_few(list("abcdefg"), ", ") == "a, b, c, d, e, and 2 more"


def test_any_terminal_can_show_what_is_printed():
    assert printable("a\ud800") == "a\\ud800"


@pytest.mark.filterwarnings("ignore:not ours")
def test_warnings_of_the_library_are_sentences(capsys):
    with report_warnings():
        warnings.warn("Too few.", StreamGPWarning, stacklevel=1)
        warnings.warn("Too few.", StreamGPWarning, stacklevel=1)
        warnings.warn("not ours", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: Too few.\n"
