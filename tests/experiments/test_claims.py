"""Parts of a claim hold, fail or stay open by their errors, and the verdict follows from them."""

import math

import pytest

from streamgp.experiments.claims import Check, is_larger, is_no_worse, is_similar, weigh
from streamgp.experiments.statistics import Difference


@pytest.mark.parametrize(("mean", "status"), [(0.3, "holds"), (-0.3, "fails"), (0.1, "open"), (-0.1, "open")])
def test_a_difference_is_larger_if_it_exceeds_its_error(mean, status):
    assert is_larger("a above b", Difference(mean, 0.2, 5)).status == status


@pytest.mark.parametrize(("mean", "status"), [(0.9, "holds"), (-0.1, "holds"), (-0.5, "open"), (-0.8, "fails")])
def test_no_worse_means_above_minus_the_margin_with_the_error(mean, status):
    assert is_no_worse("a as good as b", Difference(mean, 0.2, 5), 0.5).status == status


@pytest.mark.parametrize(
    ("mean", "status"),
    [(0.0, "holds"), (0.2, "holds"), (-0.2, "holds"), (0.5, "open"), (-0.5, "open"), (0.9, "fails"), (-0.9, "fails")],
)
def test_similar_means_within_the_margin_to_both_sides(mean, status):
    assert is_similar("a and b", Difference(mean, 0.2, 5), 0.5).status == status


def test_one_trial_leaves_everything_open():
    unknown = Difference(1.0, math.nan, 1)
    checks = [is_larger("a", unknown), is_no_worse("b", unknown, 0.5), is_similar("c", unknown, 0.5)]
    assert [check.status for check in checks] == ["open", "open", "open"]
    assert weigh(checks).verdict == "not"


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        (["holds", "holds"], "reproduced"),
        (["holds", "fails"], "partly"),
        (["holds", "open"], "partly"),
        (["open", "holds"], "partly"),
        (["fails", "holds"], "not"),
        (["open", "open"], "not"),
    ],
)
def test_the_verdict_follows_from_the_parts(statuses, verdict):
    judgement = weigh([Check(f"part {index}", status) for index, status in enumerate(statuses)])
    assert judgement.verdict == verdict
    assert judgement.evidence.startswith("; ".join(f"part {i} ({status})" for i, status in enumerate(statuses)) + ".")
    assert judgement.evidence.endswith("too large to tell.") == ("open" in statuses)


def test_the_evidence_carries_the_numbers():
    check = is_no_worse("a as good as b", Difference(0.25, 0.1, 7), 0.5)
    assert weigh([check]).evidence == "a as good as b (margin 0.5): +0.25 ± 0.1 over 7 trials (holds)."
