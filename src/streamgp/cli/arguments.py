"""Texts of the command line as what they stand for."""

__all__ = ["number_or_word", "words"]


def words(text: str | None) -> tuple[str, ...] | None:
    """Words that are separated by commas; None for none."""
    return None if text is None else tuple(word.strip() for word in text.split(","))


def number_or_word(text: str) -> int | str:
    """A whole number, or a word such as `auto`."""
    return int(text) if text.isdigit() else text
