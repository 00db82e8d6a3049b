from dataclasses import replace

import pytest

from paper.report.section import make_section
from paper.schema.figure import Judgement, Part
from paper.schema.record import Records


def raise_error(records: Records):
    raise KeyError("warmth")


def first_trial(records: Records) -> Records:
    return Records(tuple(record for record in records.all if record.seed == 0))


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("reproduced", "Reproduced"), ("partly", "Partly reproduced"), ("not", "Not reproduced")],
)
def test_the_judgement_is_shown_in_words(figure, records, verdict, words):
    section = make_section(
        replace(figure, judge=lambda found: Judgement(verdict, "so it is.")), records, (), scale="quick"
    )
    assert (section.verdict, section.verdict_words, section.evidence) == (verdict, words, "So it is.")
    assert section.failures == ()
    assert section.pictures is not None


def test_evidence_that_begins_with_a_name_keeps_it(figure, records):
    section = make_section(
        replace(figure, judge=lambda found: Judgement("not", "qKG is below.")), records, (), scale="quick"
    )
    assert section.evidence == "qKG is below."


@pytest.mark.parametrize("part", ["draw", "describe", "tables", "judge"])
def test_an_error_in_one_part_is_told_and_the_others_are_made(figure, records, part):
    section = make_section(replace(figure, **{part: raise_error}), records, (), scale="quick")
    (failure,) = section.failures
    assert failure.endswith("failed with KeyError: 'warmth'")
    assert (section.pictures is None) == (part == "draw")
    assert (section.tables == ()) == (part == "tables")
    assert (section.judgement is None) == (part == "judge")
    assert section.description
    assert section.verdict_words == ("Not judged" if part == "judge" else "Reproduced")


def test_one_trial_is_shown_but_not_judged(figure, records):
    section = make_section(figure, first_trial(records), (), scale="quick")
    assert section.pictures is not None
    assert section.verdict_words == "Not judged"
    assert "a verdict needs at least three" in section.evidence


def test_a_claim_of_which_nothing_has_run_is_not_judged(figure, records):
    empty = replace(figure, judge=lambda found: Judgement("undetected", "a above b (not run).", has_parts=False))
    section = make_section(empty, records, (), scale="quick")
    assert section.verdict_words == "Not judged"
    assert "lines that the claim compares" in section.evidence


def test_one_trial_is_enough_for_a_figure_that_is_not_statistical(figure, records):
    section = make_section(replace(figure, is_statistical=False), first_trial(records), (), scale="quick")
    assert section.verdict_words == "Reproduced"


def test_without_results_nothing_is_drawn(figure):
    section = make_section(replace(figure, draw=raise_error, judge=raise_error), Records(()), (), scale="quick")
    assert section.verdict_words == "No results"
    assert (section.failures, section.pictures, section.settings, section.counts) == ((), None, (), "")


def test_settings_are_texts_and_counts_are_in_words(figure, records):
    section = make_section(figure, records, (), scale="quick")
    assert dict(section.settings)["strength"] == "0.25"
    assert dict(section.settings)["kinds"].startswith("green, black, ")
    assert section.counts == "6 cups"


def test_results_of_some_methods_only_are_incomplete(figure, records):
    section = make_section(figure, Records(records.of("warm", "pot")), (), scale="quick")
    assert section.verdict_words == "Incomplete"
    assert section.trials.missing == ("warm, bag", "cold, pot", "cold, bag")


def judged_with(*counts):
    return lambda found: Judgement("partly", "", tuple(Part("a", "holds", "holds", num_trials=each) for each in counts))


@pytest.mark.parametrize(
    ("counts", "words", "is_few"), [((3, 5), "3 to 5", True), ((8, 8), "8", False), ((20, 7), "7 to 20", True)]
)
def test_the_number_of_trials_is_that_of_the_lines_that_are_compared(figure, records, counts, words, is_few):
    section = make_section(replace(figure, judge=judged_with(*counts)), records, (), scale="quick")
    assert (section.trial_words, section.has_few_trials) == (words, is_few)
    once = make_section(replace(figure, judge=judged_with(*counts), is_statistical=False), records, (), scale="quick")
    assert not once.has_few_trials
