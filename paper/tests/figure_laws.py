"""The laws that every figure of the report must obey."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, ClassVar

from paper.registry import find_figure, find_study
from paper.schema.figure import Figure, Judgement, Verdict
from paper.schema.record import Records

__all__ = ["FigureLaws"]


class FigureLaws(ABC):
    """Inherit, and say which figure it is, from which records it is made, and what its verdict on some of them is.

    Attributes:
        figure: The figure.
        verdicts: Verdicts on records of which something is changed.
        evidence: Words that stand in the evidence of each.
        num_trials: Trials that a verdict needs.
    """

    figure: Figure
    verdicts: ClassVar[Sequence[tuple[Mapping[str, Any], Verdict]]]
    evidence: ClassVar[str] = ""
    num_trials: ClassVar[int] = 5

    @abstractmethod
    def records(self, num_trials: int, **changes: Any) -> Records:
        """Records of all problems and methods of the figure, as the paper claims but for what is changed."""

    def test_the_verdict_follows_from_the_records(self) -> None:
        assert {"reproduced", "not"} <= {verdict for _, verdict in self.verdicts}
        for changes, verdict in self.verdicts:
            judgement = self.figure.judge(self.records(self.num_trials, **changes))
            assert judgement.verdict == verdict, f"{changes}: {judgement.evidence}"
            assert self.evidence in judgement.evidence

    def test_it_is_registered_and_its_study_has_its_problems_and_methods(self) -> None:
        study = find_study(self.figure.study)
        assert find_figure(self.figure.name) is self.figure
        assert set(self.figure.problems) <= set(study.problems)
        assert set(self.figure.methods) <= set(study.methods)

    def test_it_is_drawn_with_labels(self) -> None:
        picture = self.figure.draw(self.records(3))
        picture.savefig(BytesIO(), format="svg")
        assert picture.axes
        assert all(axes.has_data() for axes in picture.axes)
        assert any(axes.get_xlabel() for axes in picture.axes)
        assert picture.legends or any(axes.get_legend() for axes in picture.axes)

    def test_one_trial_is_enough_to_show_it(self) -> None:
        records = self.records(1)
        assert self.figure.draw(records).axes
        assert isinstance(self.figure.judge(records), Judgement)
        assert self.figure.describe(records).endswith(".")
        self.figure.tables(records)

    def test_where_a_line_may_be_missing_the_others_are_shown(self) -> None:
        records, figure = self.records(3), self.figure
        for missing in () if figure.needs_all else set(figure.methods) - set(figure.needed_methods):
            others = Records(tuple(record for record in records.all if record.method != missing))
            assert self.figure.draw(others).axes
            assert self.figure.describe(others).endswith(".")
            self.figure.tables(others)
            assert isinstance(self.figure.judge(others), Judgement)

    def test_texts_are_sentences_and_tables_are_complete(self) -> None:
        records = self.records(3)
        assert len(self.figure.describe(records)) > 80
        sentences = (self.figure.claim, *self.figure.notes, self.figure.describe(records))
        assert all(sentence.endswith(".") for sentence in (*sentences, self.figure.judge(records).evidence))
        for table in self.figure.tables(records):
            assert table.rows
            assert all(len(row) == len(table.header) for row in table.rows)
