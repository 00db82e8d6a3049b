"""Noticing that a stream has changed."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Protocol, final, runtime_checkable

from streamgp.checks import check_choice
from streamgp.errors import ArgumentTypeError, OptionError

__all__ = ["DriftDetector", "DriftWatch"]

# Number of errors over which "of late" is: less than detectors need to find a change, as ADWIN's 32.
_LATELY = 20


@runtime_checkable
class DriftDetector(Protocol):
    """What river's drift detectors can do, and all that is asked of one."""

    @property
    def drift_detected(self) -> bool:
        """Whether the last value told of a change."""

    def update(self, x: float) -> object:
        """Look at one more value."""


@final
@dataclass(frozen=True, eq=False)
class DriftWatch:
    """A detector of changes, and what to do when it finds one; a frozen value.

    Detectors such as ADWIN find any change of the errors, also that a model has learned. A change for the better is
    not acted upon.

    Attributes:
        fresh: The detector as it was given; never updated.
        action: `"rewarm"` or `"reset"`.
        detector: The detector with the errors since the last change.
        num_errors: Number of these, or of those of late when they last changed for the better.
        mean_error: The mean of these and of those that followed.
        late_error: Their mean of late, which forgets exponentially.
        num_drifts: Changes so far that were acted upon.
    """

    fresh: DriftDetector
    action: str
    detector: DriftDetector
    num_errors: int = 0
    mean_error: float = 0.0
    late_error: float = 0.0
    num_drifts: int = 0

    @classmethod
    def start(cls, detector: object, action: str) -> "DriftWatch":
        """Check the options and copy the detector."""
        if not isinstance(detector, DriftDetector):
            raise ArgumentTypeError(
                "drift_detector must have a method update(value) and a property drift_detected, as those of "
                f"river.drift have, but is {detector!r}. Pass for instance river.drift.ADWIN()."
            )
        fresh = deepcopy(detector)
        return cls(fresh, check_choice(action, ("rewarm", "reset"), "on_drift"), fresh)

    def inspect(self, errors: Sequence[float]) -> tuple["DriftWatch", int | None]:
        """Look at the errors of rows, one after the other, until one tells of a change for the worse.

        Args:
            errors: How wrong the predictions of the rows were.

        Returns:
            The watch after these errors, and the index of the row that told of a change; None if none did.
        """
        detector = deepcopy(self.detector)
        num, mean, late = self.num_errors, self.mean_error, self.late_error
        for index, error in enumerate(errors):
            num += 1
            mean += (error - mean) / num
            late += (error - late) / min(num, _LATELY)
            try:
                detector.update(error)
            except (ArithmeticError, TypeError, ValueError) as problem:
                raise OptionError(
                    f"drift_detector, a {type(detector).__name__}, does not take the error {error:.3g} ({problem}). "
                    "Detectors of river.drift.binary are for classes; for real targets take one such as "
                    "river.drift.ADWIN()."
                ) from problem
            if not detector.drift_detected:
                continue
            if late >= mean:
                return DriftWatch(self.fresh, self.action, self.fresh, num_drifts=self.num_drifts + 1), index
            num, mean = min(num, _LATELY), late  # for the better: errors are now compared with these
        return replace(self, detector=detector, num_errors=num, mean_error=mean, late_error=late), None
