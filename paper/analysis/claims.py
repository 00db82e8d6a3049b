"""Parts of a claim, each weighed by a paired difference, and the verdict on all of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from paper.analysis.statistics import Difference, holm
from paper.schema.figure import Judgement, Part, Verdict

__all__ = ["Check", "Status", "decide", "is_larger", "is_met", "is_missing", "is_no_worse", "is_similar", "weigh"]

Status = Literal["holds", "open", "fails", "missing"]
# Family-wise error of the comparisons of a figure.
_ERROR_RATE = 0.05


@final
@dataclass(frozen=True)
class Check:
    """A part of a claim.

    Attributes:
        sentence: What was compared.
        status: What the numbers say, `"holds"` or `"fails"`, if they are not chance; `"missing"` if there are none.
        p_value: Probability that chance alone says so; None where nothing is left to chance.
        if_open: What to say where chance may have said so.
        difference: The numbers.
        bound: What the difference must exceed.
        is_sanity: Whether it only shows that nothing is broken.
    """

    sentence: str
    status: Status
    p_value: float | None = None
    if_open: str = ""
    difference: Difference | None = None
    bound: float = 0.0
    is_sanity: bool = False


def is_larger(what: str, difference: Difference | None, *, is_sanity: bool = False) -> Check:
    """Whether a difference is above zero.

    Args:
        what: What is compared, for example `"qKG above qEI"`.
        difference: First less second; None if one of them has not run.
        is_sanity: Whether it only shows that nothing is broken, as that a method is above random points.
    """
    if difference is None:
        return Check(what, "missing", is_sanity=is_sanity)
    status: Status = "holds" if difference.mean > 0.0 else "fails"
    words = _open_words(difference)
    return Check(what, status, difference.p_value(), words, difference, is_sanity=is_sanity)


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
    what = f"{what} (margin {margin:.2g})"
    return Check(what, status, difference.p_value(-margin), "undecided", difference, -margin)


def is_similar(what: str, difference: Difference | None, margin: float) -> Check:
    """Whether a difference is within a margin to both sides; missing if one of two has not run."""
    if difference is None:
        return is_missing(what)
    is_within = abs(difference.mean) < margin
    # To be within, both limits must be told apart from the mean; to be beyond, the nearer one.
    p_value = max(difference.p_value(margin), difference.p_value(-margin)) if is_within else 1.0
    if not is_within:
        p_value = difference.p_value(margin if difference.mean > 0.0 else -margin)
    what = f"{what} (margin {margin:.2g})"
    return Check(what, "holds" if is_within else "fails", p_value, "undecided", difference, -margin)


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
    """The verdict on a claim, from its own parts; checks of sanity are shown, and decide nothing.

    Reproduced if all parts hold; not if the first fails, or some fail and none holds; against if all are open and each
    alone (p < 5 %) points the other way; undetected if no part holds or fails otherwise; partly in all other cases.

    Args:
        checks: Parts of the claim, the one that matters most first.
    """
    own = [check for check in checks if not check.is_sanity]
    statuses = decide(own)
    verdict: Verdict = "partly"
    if all(status == "holds" for status in statuses):
        verdict = "reproduced"
    elif "holds" not in statuses and "fails" not in statuses:
        verdict = "against" if all(_is_against(check) for check in own) else "undetected"
    elif "holds" not in statuses or statuses[0] == "fails":
        verdict = "not"
    sane = decide([check for check in checks if check.is_sanity])
    parts = tuple(_part(check, (sane if check.is_sanity else statuses).pop(0)) for check in checks)
    num_tested = sum(check.p_value is not None for check in own)
    remark = (
        f"Intervals are of 95 % each; what holds or fails is corrected for {num_tested} comparisons."
        if num_tested > 1
        else ""
    )
    return Judgement(verdict, remark, parts, has_parts=any(check.status != "missing" for check in own))


def _is_against(check: Check) -> bool:
    return check.status == "fails" and check.p_value is not None and check.p_value < _ERROR_RATE


def _part(check: Check, status: Status) -> Part:
    said = {"missing": "not run", "open": check.if_open or "open"}.get(status, status)
    words = f"{said}; a check of sanity" if check.is_sanity else said
    found = check.difference
    if found is None:
        return Part(check.sentence, words, status, check.is_sanity)
    ends = None if math.isnan(found.error) else found.error
    return Part(
        what=f"{check.sentence}: {found}",
        words=words,
        status=status,
        is_sanity=check.is_sanity,
        effect=found.mean,
        low=None if ends is None else found.mean - ends,
        high=None if ends is None else found.mean + ends,
        bound=check.bound,
        num_trials=found.num_trials,
    )
