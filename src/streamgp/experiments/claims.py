"""Parts of a claim, each weighed by a paired difference, and the verdict on all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from streamgp.experiments.figure import Judgement, Verdict
from streamgp.experiments.statistics import Difference

__all__ = ["Check", "Status", "is_larger", "is_met", "is_no_worse", "is_similar", "weigh"]

Status = Literal["holds", "open", "fails"]
_OPEN = " Open means that the error is too large to tell."


@final
@dataclass(frozen=True)
class Check:
    """A part of a claim.

    Attributes:
        sentence: What was compared, and the numbers.
        status: `"holds"` or `"fails"` where the difference is larger than its error, `"open"` where it is not.
    """

    sentence: str
    status: Status


def is_larger(what: str, difference: Difference) -> Check:
    """Whether a difference is above zero.

    Args:
        what: What is compared, for example `"qKG above qEI"`.
        difference: First less second.
    """
    status: Status = "holds" if difference.is_positive else "fails" if difference.is_negative else "open"
    return Check(f"{what}: {difference}", status)


def is_met(what: str, *, is_true: bool) -> Check:
    """A part that holds or fails by a bound, where there are no trials to compare."""
    return Check(what, "holds" if is_true else "fails")


def is_no_worse(what: str, difference: Difference, margin: float) -> Check:
    """Whether a difference is above minus a margin.

    Args:
        what: What is compared.
        difference: First less second, both the larger the better.
        margin: What would not matter.
    """
    low, high = difference.mean - difference.error, difference.mean + difference.error
    status: Status = "holds" if low > -margin else "fails" if high < -margin else "open"
    return Check(f"{what} (margin {margin:.2g}): {difference}", status)


def is_similar(what: str, difference: Difference, margin: float) -> Check:
    """Whether a difference is within a margin to both sides."""
    low, high = difference.mean - difference.error, difference.mean + difference.error
    is_within, is_beyond = max(abs(low), abs(high)) < margin, low > margin or high < -margin
    status: Status = "holds" if is_within else "fails" if is_beyond else "open"
    return Check(f"{what} (margin {margin:.2g}): {difference}", status)


def weigh(checks: Sequence[Check]) -> Judgement:
    """The verdict: reproduced if all parts hold, not if none does or the first fails, partly otherwise.

    Args:
        checks: Parts of the claim, the one that matters most first.
    """
    statuses = [check.status for check in checks]
    verdict: Verdict = "partly"
    if all(status == "holds" for status in statuses):
        verdict = "reproduced"
    elif "holds" not in statuses or statuses[0] == "fails":
        verdict = "not"
    evidence = "; ".join(f"{check.sentence} ({check.status})" for check in checks) + "."
    return Judgement(verdict, evidence + _OPEN if "open" in statuses else evidence)
