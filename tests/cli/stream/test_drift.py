import pytest

pytest.importorskip("river")

from streamgp.cli.stream import drift as module
from streamgp.cli.stream.drift import DETECTORS, Drift, DriftLog
from streamgp.errors import OptionError

ERRORS = [0.0] * 40 + [1.0] * 40


def changes(errors, log=None, name="adwin"):
    """Where changes were found, and the log at the end."""
    log, found = log or DriftLog(), []
    drift = Drift(name, "rewarm", log, is_classes=True)
    for index, error in enumerate(errors):
        log, change = drift.inspect(log, [error])
        found += [] if change is None else [index]
    return found, log


@pytest.mark.parametrize("name", DETECTORS)
def test_all_detectors_can_be_named(name):
    found, log = changes(ERRORS, name=name)
    assert log.num_drifts == len(found)


def test_a_run_that_goes_on_finds_the_changes_of_one_that_was_not_interrupted():
    found, log = changes(ERRORS)
    assert found
    for stop in (30, 50, 70):
        before, middle = changes(ERRORS[:stop])
        after, end = changes(ERRORS[stop:], middle)
        assert [*before, *(stop + index for index in after)] == found
        assert end == log


def test_the_memory_of_errors_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_MOST_ERRORS", 20)
    _, log = changes([0.0] * 50)
    assert len(log.errors) <= 20


def test_detectors_of_labels_refuse_numbers():
    with pytest.raises(OptionError, match=r"ddm looks at labels only, but the targets are numbers\. Use one of adwin"):
        Drift("ddm", "rewarm", DriftLog(), is_classes=False)
