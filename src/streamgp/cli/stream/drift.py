"""Detectors of changes by name, and errors from which their state is found again after a kill."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import final

from streamgp.errors import OptionError
from streamgp.streaming.drift import DriftDetector, DriftWatch

__all__ = ["DETECTORS", "Drift", "DriftLog"]

# Where river has them, and whether they look at labels only.
DETECTORS = {
    "adwin": ("ADWIN", False),
    "kswin": ("KSWIN", False),
    "page_hinkley": ("PageHinkley", False),
    "ddm": ("DDM", True),
    "eddm": ("EDDM", True),
    "fhddm": ("FHDDM", True),
    "hddm_a": ("HDDMA", True),
    "hddm_w": ("HDDMW", True),
}
# Errors that a detector sees at most. After so many, it begins again with the latest half of them.
_MOST_ERRORS = 10000


@final
@dataclass(frozen=True)
class DriftLog:
    """All that tells the state of a detector; a frozen value.

    Attributes:
        errors: Errors since it began.
        num_drifts: Changes that were acted upon.
    """

    errors: tuple[float, ...] = ()
    num_drifts: int = 0


@final
class Drift:
    """A detector that is shown the errors of a stream."""

    def __init__(self, name: str, action: str, log: DriftLog, *, is_classes: bool) -> None:
        """Begin, or go on where another run was.

        Args:
            name: One of `DETECTORS`.
            action: What to do when errors have grown, `"rewarm"` or `"reset"`.
            log: Errors so far.
            is_classes: Whether errors are those of labels, 0 or 1.
        """
        self.action = action
        self._fresh = _detector(name, is_classes=is_classes)
        self._watch, _ = self._start().inspect(log.errors)

    def inspect(self, log: DriftLog, errors: Sequence[float]) -> tuple[DriftLog, int | None]:
        """Look at the errors of rows; returns the log after them, and which of them told of a change, if one did."""
        self._watch, change = self._watch.inspect(errors)
        if change is not None:
            self._watch = self._start()
            return DriftLog((), log.num_drifts + 1), change
        kept = (*log.errors, *errors)
        if len(kept) > _MOST_ERRORS:
            kept = kept[-_MOST_ERRORS // 2 :]
            self._watch, change = self._start().inspect(kept)
            if change is not None:  # the latest half alone tells of one that the whole did not
                self._watch, kept = self._start(), ()
        return DriftLog(kept, log.num_drifts), None

    def _start(self) -> DriftWatch:
        return DriftWatch.start(self._fresh, self.action)


def _detector(name: str, *, is_classes: bool) -> DriftDetector:
    try:
        drift = import_module("river.drift")
    except ImportError as error:
        raise OptionError("--drift-detector needs river. Install it with: pip install 'streamgp[river]'.") from error
    found, is_binary = DETECTORS[name]
    if is_binary and not is_classes:
        others = ", ".join(each for each, (_, binary) in DETECTORS.items() if not binary)
        raise OptionError(
            f"The detector {name} looks at labels only, but the targets are numbers. Use one of {others}."
        )
    make = getattr(drift.binary if is_binary else drift, found)
    # This one draws at random.
    detector: DriftDetector = make(seed=0) if name == "kswin" else make()
    return detector
