"""Detectors that are shown the errors of a stream, and tell when it has changed."""

from collections.abc import Sequence
from copy import deepcopy
from importlib import import_module
from typing import Any, Protocol, final, runtime_checkable

from streamgp.checks import check_choice
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError
from streamgp.storage import register

__all__ = ["DETECTORS", "DriftDetector", "DriftWatch"]

# Classes of river.drift, and whether they look at labels only.
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
# Number of errors over which "of late" is: less than detectors need to find a change, as ADWIN's 32.
_LATELY = 20
# Errors that are kept of a detector given by name. After so many, it begins again with the latest half of them.
_MOST_ERRORS = 10000


@runtime_checkable
class DriftDetector(Protocol):
    """Detectors of river, and all that is asked of one."""

    @property
    def drift_detected(self) -> bool:
        """True if the last value told of a change."""

    def update(self, x: float) -> object:
        """Look at one more value."""


@final
class DriftWatch:
    """A detector of changes, and what to do when it finds one.

    Detectors such as ADWIN find any change of the errors, also that a model has learned. A change for the better is
    not acted upon. A detector that was given by name can be saved: the errors that it was shown are.

    Attributes:
        name: Name of the detector; None for one that was given as an object.
        action: `"rewarm"` or `"reset"`.
        num_drifts: Number of changes that were acted upon.
        errors: Errors since the last change, of a detector that was given by name.
    """

    def __init__(self, detector: object, action: str, *, is_label: bool) -> None:
        """Check the options and copy the detector.

        Args:
            detector: A name of `DETECTORS`, or an object.
            action: What to do when errors have grown.
            is_label: Whether errors are those of labels, 0 or 1.
        """
        self.name = detector if isinstance(detector, str) else None
        self.is_label = is_label
        if isinstance(detector, str):
            detector = _named(detector, is_label=is_label)
        if not isinstance(detector, DriftDetector):
            raise ArgumentTypeError(
                "drift_detector must have a method update(value) and a property drift_detected, as those of "
                f"river.drift, or be one of {', '.join(map(repr, DETECTORS))}, but is {detector!r}."
            )
        check_choice(action, ("rewarm", "reset"), "on_drift")
        self.action, self.num_drifts = action, 0
        self.errors: list[float] = []
        self._fresh: Any = deepcopy(detector)
        self._detector: Any = None
        self._num, self._mean, self._late = 0, 0.0, 0.0
        self._begin()

    def inspect(self, errors: Sequence[float]) -> int | None:
        """Look at the errors of rows; returns which of them told of a change for the worse, if one did."""
        detector, before = deepcopy(self._detector), (self._num, self._mean, self._late)
        try:
            change = self._shown(errors)
        except BaseException:
            self._detector, (self._num, self._mean, self._late) = detector, before
            raise
        if change is not None:
            self.num_drifts += 1
            self._begin()
        elif self.name is not None:
            self.errors.extend(errors)
            if len(self.errors) > _MOST_ERRORS:
                self._replay(self.errors[-_MOST_ERRORS // 2 :])
        return change

    def _begin(self) -> None:
        self._detector = deepcopy(self._fresh)
        self._num, self._mean, self._late = 0, 0.0, 0.0
        self.errors = []

    def _replay(self, errors: Sequence[float]) -> None:
        """Begin again with these errors, of which no change is told."""
        self._begin()
        if self._shown(errors) is not None:
            self._begin()
        else:
            self.errors = list(errors)

    def _shown(self, errors: Sequence[float]) -> int | None:
        for index, error in enumerate(errors):
            self._num += 1
            self._mean += (error - self._mean) / self._num
            self._late += (error - self._late) / min(self._num, _LATELY)
            try:
                self._detector.update(error)
            except (ArithmeticError, TypeError, ValueError) as problem:
                raise OptionError(
                    f"drift_detector, a {type(self._detector).__name__}, does not take the error {error:.3g} "
                    f"({problem}). Detectors of river.drift.binary are for classes; for real targets take one such as "
                    "river.drift.ADWIN()."
                ) from problem
            if not self._detector.drift_detected:
                continue
            if self._late >= self._mean:
                return index
            # For the better: errors are now compared with these.
            self._num, self._mean = min(self._num, _LATELY), self._late
        return None


def _named(name: str, *, is_label: bool) -> Any:
    check_choice(name, tuple(DETECTORS), "drift_detector")
    try:
        drift = import_module("river.drift")
    except ImportError as error:
        raise OptionError("Drift detectors are those of river. Install it with: pip install 'streamgp[river]'.") from (
            error
        )
    found, is_binary = DETECTORS[name]
    if is_binary and not is_label:
        others = ", ".join(each for each, (_, binary) in DETECTORS.items() if not binary)
        raise OptionError(
            f"The detector {name} looks at labels only, but the targets are numbers. Use one of {others}."
        )
    make = getattr(drift.binary if is_binary else drift, found)
    # This one draws at random.
    return make(seed=0) if name == "kswin" else make()


def _fields(watch: DriftWatch) -> dict[str, Any]:
    if watch.name is None:
        raise UnsupportedError(
            "A drift detector that was given as an object cannot be saved. Give it by name, such as "
            "drift_detector='adwin', or leave it out."
        )
    return {
        "name": watch.name,
        "action": watch.action,
        "is_label": watch.is_label,
        "num_drifts": watch.num_drifts,
        "errors": tuple(watch.errors),
    }


def _rebuild(name: str, action: str, is_label: bool, num_drifts: int, errors: tuple[float, ...]) -> DriftWatch:
    watch = DriftWatch(name, action, is_label=is_label)
    watch._replay(errors)
    watch.num_drifts = num_drifts
    return watch


register(DriftWatch, name="stream.DriftWatch", to_fields=_fields, from_fields=_rebuild)
