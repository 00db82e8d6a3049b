from streamgp.cli.arguments import number_or_word, words


def test_words_are_separated_by_commas():
    assert words("a, b,c") == ("a", "b", "c")
    assert words(None) is None


def test_a_number_is_one_and_a_word_stays():
    assert number_or_word("40") == 40
    assert number_or_word("auto") == "auto"
