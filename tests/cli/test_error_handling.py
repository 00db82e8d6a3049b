from streamgp.cli.error_handling import list_few, printable


def test_long_lists_are_cut():
    assert list_few(list("abc")) == "a; b; c"
    assert list_few(list("abcdefg"), ", ") == "a, b, c, d, e, and 2 more"


def test_any_terminal_can_show_what_is_printed():
    assert printable("a\ud800") == "a\\ud800"
