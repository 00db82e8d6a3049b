from dataclasses import replace
from pathlib import Path

import pytest

from paper.report.report import make_report
from paper.schema.figure import Judgement
from paper.schema.results import append_record


@pytest.fixture
def configurations(figure):
    return {figure.study: ()}


def test_results_of_all_figures_are_read_and_damage_is_reported(example):
    report = example.report
    assert report.tally == (
        ("Reproduced", 1),
        ("Partly reproduced", 1),
        ("Not reproduced", 1),
        ("Not judged", 1),
        ("No results", 1),
    )
    assert [issue.line for issue in report.issues] == [13, 14]
    assert report.sections[0].issues == report.issues
    assert report.sections[-1].issues == ()
    assert report.runs.num_units == 12


def test_links_start_at_the_page_and_are_encoded(example):
    report = example.report
    address = "my%20results/quick/tea%20%26%20biscuits%20%231.jsonl"
    assert report.links == dict.fromkeys(("good", "partly", "wrong", "broken"), address)


def test_a_page_beside_the_results_reaches_them_through_its_parent(figure, configurations, tmp_path):
    (tmp_path / "results" / "quick").mkdir(parents=True)
    (tmp_path / "results" / "quick" / f"{figure.study}.jsonl").touch()
    report = make_report(
        [figure], "quick", tmp_path / "results", home=tmp_path / "pages", configurations=configurations
    )
    assert report.links[figure.name].startswith("../results/quick/")


def test_files_that_do_not_exist_are_not_linked(figure, configurations):
    report = make_report([figure], "quick", Path("nowhere"), home=Path(), configurations=configurations)
    assert report.links == {}
    assert report.tally == (("No results", 1),)


def test_results_that_say_nothing_of_a_claim_do_not_hide_others(figure, records, tmp_path):
    """A figure that compares its lines with those of another one needs results of its own."""

    def judge(records):
        return Judgement("reproduced", "Warmer.", has_parts=any(each.problem == "warm" for each in records.all))

    figure = replace(figure, judge=judge, needs_all=False)
    for record in records.all:
        append_record(record, tmp_path)
        if record.problem == "cold":
            append_record(replace(record, scale="full"), tmp_path)
    report = make_report([figure], None, tmp_path, home=tmp_path, configurations={figure.study: ()})
    assert [section.scale for section in report.sections] == ["quick"]
