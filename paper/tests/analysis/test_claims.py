"""Parts of a claim hold, fail or stay open by their intervals, and the verdict follows from them."""

import math
from dataclasses import replace

import pytest

from paper.analysis.claims import (
    Check,
    decide,
    is_larger,
    is_met,
    is_missing,
    is_no_worse,
    is_similar,
    weigh,
)
from paper.analysis.statistics import Difference

# With five trials the interval is 2.776 standard errors to each side: ± 0.2.
ERROR = 0.2 / 2.776445


@pytest.mark.parametrize(("mean", "status"), [(0.3, "holds"), (-0.3, "fails"), (0.1, "open"), (-0.1, "open")])
def test_a_difference_is_larger_if_it_exceeds_its_error(mean, status):
    assert decide([is_larger("a above b", Difference(mean, ERROR, 5))]) == [status]


@pytest.mark.parametrize(("mean", "status"), [(0.9, "holds"), (-0.1, "holds"), (-0.5, "open"), (-0.8, "fails")])
def test_no_worse_means_above_minus_the_margin_with_the_error(mean, status):
    assert decide([is_no_worse("a as good as b", Difference(mean, ERROR, 5), 0.5)]) == [status]


@pytest.mark.parametrize(
    ("mean", "status"),
    [(0.0, "holds"), (0.2, "holds"), (-0.2, "holds"), (0.5, "open"), (-0.5, "open"), (0.9, "fails"), (-0.9, "fails")],
)
def test_similar_means_within_the_margin_to_both_sides(mean, status):
    assert decide([is_similar("a and b", Difference(mean, ERROR, 5), 0.5)]) == [status]


def test_one_trial_leaves_everything_open():
    unknown = Difference(1.0, math.nan, 1)
    checks = [is_larger("a", unknown), is_no_worse("b", unknown, 0.5), is_similar("c", unknown, 0.5)]
    assert decide(checks) == ["open", "open", "open"]
    assert weigh(checks).verdict == "undetected"
    assert "too few trials to tell" in weigh(checks).evidence


def test_many_comparisons_ask_more_of_each():
    # Alone it holds (p = 0.027); as one of three, by Holm, it must be below 5 % / 3.
    check = is_larger("a above b", Difference(0.25, ERROR, 5))
    assert decide([check]) == ["holds"]
    assert decide([check, check, check]) == ["open"] * 3
    # What is not left to chance does not count, and one that holds by far frees the level of the others.
    far = is_larger("c above d", Difference(5.0, ERROR, 5))
    assert decide([check, is_met("a bound", is_true=True), is_missing("e above f")]) == ["holds", "holds", "missing"]
    assert decide([far, check]) == ["holds", "holds"]


def made(status):
    """A check that comes to a status on its own."""
    p_value = {"open": 1.0, "missing": None}.get(status, 0.0)
    return Check("part", "holds" if status == "open" else status, p_value, "undecided")


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        (["holds", "holds"], "reproduced"),
        (["holds", "fails"], "partly"),
        (["holds", "open"], "partly"),
        (["holds", "missing"], "partly"),
        (["open", "holds"], "partly"),
        (["fails", "holds"], "not"),
        (["open", "fails"], "not"),
        (["open", "open"], "undetected"),
        (["open", "missing"], "undetected"),
    ],
)
def test_the_verdict_follows_from_the_parts(statuses, verdict):
    judgement = weigh([made(status) for status in statuses])
    assert judgement.verdict == verdict
    words = [{"open": "undecided", "missing": "not run"}.get(status, status) for status in statuses]
    assert judgement.evidence.startswith("; ".join(f"part ({word})" for word in words) + ".")


def against(error):
    return is_larger("a above b", Difference(-0.25, error, 5))


def test_parts_that_all_point_the_other_way_are_not_called_undetected():
    # Each has p = 0.027, which three comparisons do not allow to count.
    judgement = weigh([against(ERROR)] * 3)
    assert {part.status for part in judgement.parts} == {"open"}
    assert judgement.verdict == "against"
    assert weigh([against(ERROR), against(ERROR), against(2.0 * ERROR)]).verdict == "undetected"


def test_a_check_of_sanity_decides_nothing():
    sane = is_larger("a above random", Difference(5.0, ERROR, 5), is_sanity=True)
    assert weigh([made("open"), sane]).verdict == "undetected"
    assert weigh([made("fails"), sane]).verdict == "not"
    assert weigh([made("holds"), made("holds"), is_larger("b", Difference(0.0, 1.0, 5), is_sanity=True)]).verdict == (
        "reproduced"
    )
    # Nor does it take part in the correction for the number of comparisons.
    check = is_larger("a above b", Difference(0.25, ERROR, 5))
    judgement = weigh([check, replace(sane, difference=check.difference, p_value=check.p_value)])
    assert judgement.verdict == "reproduced"
    assert "(holds; a check of sanity)" in judgement.evidence
    assert not weigh([is_missing("a"), sane]).has_parts


def test_parts_carry_their_numbers():
    (part, missing) = weigh([is_no_worse("a as good as b", Difference(0.25, ERROR, 5), 0.5), is_missing("c")]).parts
    assert (part.effect, part.bound, part.num_trials, part.status) == (0.25, -0.5, 5, "holds")
    assert (part.low, part.high) == pytest.approx((0.05, 0.45), abs=1e-6)
    assert (missing.effect, missing.low, missing.num_trials, missing.status) == (None, None, None, "missing")
    one = weigh([is_larger("a", Difference(1.0, math.nan, 1))]).parts[0]
    assert (one.effect, one.low, one.num_trials) == (1.0, None, 1)


def test_the_evidence_carries_effect_size_and_interval():
    check = is_no_worse("a as good as b", Difference(0.25, 0.1 / 2.446912, 7), 0.5)
    assert weigh([check]).evidence == "a as good as b (margin 0.5): +0.25 [+0.15, +0.35] over 7 trials (holds)."


def test_what_could_have_been_detected_is_said():
    # (2.776 + 0.941) standard errors, the quantiles of t with 4 degrees of freedom at 97.5 % and 80 %.
    evidence = weigh([is_larger("a above b", Difference(0.1, 0.1, 5))]).evidence
    assert evidence.endswith("(no difference detected; an effect of 0.37 would have been).")


def test_what_is_said_of_an_open_difference_fits_its_interval():
    corrected = weigh([is_larger("a", Difference(0.28, 0.075, 5)), *(is_larger("b", Difference(0.0, 0.1, 5)),) * 3])
    assert "a: +0.28 [+0.072, +0.49] over 5 trials (not told from chance once corrected" in corrected.evidence
    assert weigh([is_larger("a", Difference(0.0, 0.0, 5))]).evidence.endswith("(equal in all trials).")


def test_a_claim_of_which_nothing_has_run_has_no_parts():
    assert not weigh([is_missing("a"), is_missing("b")]).has_parts
    assert weigh([is_missing("a"), is_larger("b", Difference(0.1, 0.1, 5))]).has_parts
