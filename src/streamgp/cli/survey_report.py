"""What `streamgp survey` prints: what was noticed, and the places to go to."""

from dataclasses import dataclass
from typing import final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamgp.cli.survey_tables import SurveyTable

__all__ = ["SurveyReport"]

_MOST_SHOWN = 20


@final
@dataclass(frozen=True)
class SurveyReport:
    """Sentences and a table.

    Attributes:
        console: Where they go.
        is_quiet: Whether nothing is printed.
    """

    console: Console
    is_quiet: bool

    def say(self, *sentences: str) -> None:
        """Print sentences, one a line."""
        if not self.is_quiet:
            for sentence in sentences:
                self.console.print(sentence, soft_wrap=True, highlight=False, markup=False)

    def show(self, chosen: SurveyTable) -> None:
        """Print the first rows of the table of chosen places."""
        if self.is_quiet:
            return
        table = Table(title="Where to go next")
        for name in chosen.header:
            table.add_column(Text(name), justify="right")
        for row in chosen.rows[:_MOST_SHOWN]:
            table.add_row(*map(Text, row))
        self.console.print(table)
        if len(chosen.rows) > _MOST_SHOWN:
            self.say(f"And {len(chosen.rows) - _MOST_SHOWN} more.")
