import io

from rich.console import Console

from streamgp.cli.survey.running import SurveyReport
from streamgp.cli.survey.tables import SurveyTable

TABLE = SurveyTable(("rank", "village"), tuple((str(i), f"[bold]{i}") for i in range(1, 24)))


def printed(is_quiet):
    console = Console(file=io.StringIO(), width=60)
    report = SurveyReport(console, is_quiet=is_quiet)
    report.say("One.", "[Two].")
    report.show(TABLE)
    return console.file.getvalue()


def test_sentences_and_the_first_rows_are_printed_as_they_are():
    text = printed(is_quiet=False)
    assert text.startswith("One.\n[Two].\n")
    assert "[bold]20" in text
    assert "[bold]21" not in text
    assert "And 3 more." in text


def test_quiet_is_quiet():
    assert printed(is_quiet=True) == ""
