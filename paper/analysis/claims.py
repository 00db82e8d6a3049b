"""Parts of a claim, each weighed by a paired difference, and the verdict on all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from paper.analysis.statistics import Difference, holm
from paper.schema.figure import Judgement, Verdict

__all__ = ["Check", "Status", "decide", "is_larger", "is_met", "is_missing", "is_no_worse", "is_similar", "weigh"]

Status = Literal["holds", "open", "fails", "missing"]
# Family-wise error of the comparisons of a figure.
_ERROR_RATE = 0.05


@final
@dataclass(frozen=True)
class Check:
    """A part of a claim.

    Attributes:
        sentence: What was compared, and the numbers.
        status: What the numbers say, `"holds"` or `"fails"`, if they are not chance; `"missing"` if there are none.
        p_value: Probability that chance alone says so; None where nothing is left to chance.
        if_open: What to say where chance may have said so.
    """

    sentence: str
    status: Status
    p_value: float | None = None
    if_open: str = ""


def is_larger(what: str, difference: Difference | None) -> Check:
    """Whether a difference is above zero.

    Args:
        what: What is compared, for example `"qKG above qEI"`.
        difference: First less second; None if one of them has not run.
    """
    if difference is None:
        return is_missing(what)
    return Check(
        f"{what}: {difference}",
        "holds" if difference.mean > 0.0 else "fails",
        difference.p_value(),
        _open_words(difference),
    )


def _open_words(difference: Difference) -> str:
    """What to say of a difference that is not told from chance."""
    if math.isnan(difference.detectable):
        return "too few trials to tell"
    if difference.detectable == 0.0:
        return "equal in all trials"
    if difference.p_value() <= _ERROR_RATE:
        return "not told from chance once corrected for the number of comparisons"
    return f"no difference detected; an effect of {difference.detectable:.2g} would have been"


def is_met(what: str, *, is_true: bool) -> Check:
    """A part that holds or fails by a bound, where there are no trials to compare."""
    return Check(what, "holds" if is_true else "fails")


def is_missing(what: str) -> Check:
    """A part for which a line of the figure has not run."""
    return Check(what, "missing")


def is_no_worse(what: str, difference: Difference | None, margin: float) -> Check:
    """Whether a difference is above minus a margin.

    Args:
        what: What is compared.
        difference: First less second, both the larger the better; None if one of them has not run.
        margin: What would not matter.
    """
    if difference is None:
        return is_missing(what)
    status: Status = "holds" if difference.mean > -margin else "fails"
    return Check(f"{what} (margin {margin:.2g}): {difference}", status, difference.p_value(-margin), "undecided")


def is_similar(what: str, difference: Difference | None, margin: float) -> Check:
    """Whether a difference is within a margin to both sides; missing if one of two has not run."""
    if difference is None:
        return is_missing(what)
    is_within = abs(difference.mean) < margin
    # To be within, both limits must be told apart from the mean; to be beyond, the nearer one.
    p_value = max(difference.p_value(margin), difference.p_value(-margin)) if is_within else 1.0
    if not is_within:
        p_value = difference.p_value(margin if difference.mean > 0.0 else -margin)
    sentence = f"{what} (margin {margin:.2g}): {difference}"
    return Check(sentence, "holds" if is_within else "fails", p_value, "undecided")


def decide(checks: Sequence[Check], *, error_rate: float = _ERROR_RATE) -> list[Status]:
    """What each part says, corrected by Holm's steps for the number of parts that chance has a hand in.

    Args:
        checks: Parts of a claim.
        error_rate: Probability that any part of a claim is decided by chance alone.
    """
    tested = [index for index, check in enumerate(checks) if check.p_value is not None]
    adjusted = holm([checks[index].p_value or 0.0 for index in tested])
    is_open = {index for index, p_value in zip(tested, adjusted, strict=True) if p_value > error_rate}
    return ["open" if index in is_open else check.status for index, check in enumerate(checks)]


def weigh(checks: Sequence[Check]) -> Judgement:
    """The verdict on a claim.

    Reproduced if all parts hold; not if the first fails, or some fail and none holds; undetected if no part holds or
    fails; partly otherwise.

    Args:
        checks: Parts of the claim, the one that matters most first.
    """
    statuses = decide(checks)
    verdict: Verdict = "partly"
    if all(status == "holds" for status in statuses):
        verdict = "reproduced"
    elif "holds" not in statuses and "fails" not in statuses:
        verdict = "undetected"
    elif "holds" not in statuses or statuses[0] == "fails":
        verdict = "not"
    words = {"missing": "not run"}
    said = [
        check.if_open if status == "open" and check.if_open else words.get(status, status)
        for check, status in zip(checks, statuses, strict=True)
    ]
    evidence = "; ".join(f"{check.sentence} ({word})" for check, word in zip(checks, said, strict=True)) + "."
    num_tested = sum(check.p_value is not None for check in checks)
    if num_tested > 1:
        evidence += f" Intervals are of 95 % each; what holds or fails is corrected for {num_tested} comparisons."
    has_parts = any(check.status != "missing" for check in checks)
    return Judgement(verdict, evidence, has_parts=has_parts)
