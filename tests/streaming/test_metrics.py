import itertools
import math

import numpy as np
import pytest

from streamgp.errors import NumericalError, OptionError
from streamgp.storage import load, save
from streamgp.streaming.metrics import CLASS_MEASURES, VALUE_MEASURES, StreamMetrics, coverage_warning


def drawn(num_rows, measures=VALUE_MEASURES):
    draw = np.random.default_rng(0)
    return {name: draw.random(num_rows).tolist() for name in measures}


def added(values, parts):
    metrics = StreamMetrics(tuple(values))
    for start, stop in itertools.pairwise(parts):
        metrics = metrics.add({name: each[start:stop] for name, each in values.items()})
    return metrics


def test_metrics_of_values_are_those_of_all_rows():
    values = drawn(1000)
    summary = added(values, [0, 1000]).summary()
    assert summary["RMSE"] == pytest.approx(math.sqrt(np.mean(values["squared_error"])))
    assert summary["MAE"] == pytest.approx(np.mean(values["absolute_error"]))
    assert summary["NLPD"] == pytest.approx(np.mean(values["negative_log_density"]))
    assert summary["coverage of 90 %"] == pytest.approx(np.mean(values["is_covered"]))


def test_metrics_of_classes_are_those_of_all_rows():
    values = drawn(100, CLASS_MEASURES)
    summary = added(values, [0, 100]).summary()
    assert summary["accuracy"] == pytest.approx(np.mean(values["is_correct"]))
    assert summary["Brier"] == pytest.approx(np.mean(values["brier"]))


def test_blocks_do_not_matter():
    values = drawn(1500)
    assert added(values, [0, 1500]) == added(values, [0, 1, 7, 800, 801, 1500])


@pytest.mark.parametrize("num_rows", [10, 512, 513, 1025, 5000])
def test_the_history_is_bounded_and_even(num_rows):
    metrics = added(drawn(num_rows), [0, num_rows])
    assert len(metrics.history) <= 512
    assert len(metrics.history) >= min(num_rows, 256)
    counts = [point.num_rows for point in metrics.history]
    assert counts == list(range(metrics.spacing, num_rows + 1, metrics.spacing))


def test_each_point_of_the_history_holds_the_sums_until_then():
    values = drawn(2000)
    metrics = added(values, [0, 2000])
    for point in metrics.history[::50]:
        assert point.totals == pytest.approx([sum(values[name][: point.num_rows]) for name in VALUE_MEASURES])


def test_saved_metrics_are_restored_to_the_last_bit(tmp_path):
    metrics = added(drawn(700), [0, 700])
    save(metrics, tmp_path / "file")
    assert load(tmp_path / "file") == metrics


def test_metrics_of_nothing_are_not_a_number():
    assert all(math.isnan(value) for value in StreamMetrics(VALUE_MEASURES).summary().values())


@pytest.mark.parametrize(
    ("share", "num_rows", "is_discrete", "words"),
    [
        (0.6, 100, False, "held 60% of 100 targets: they are too narrow"),
        (0.98, 1000, False, "wider than needed"),
        (0.6, 100, True, "too narrow"),
        (0.6, 40, False, None),
        (0.84, 100, False, None),
        (0.98, 1000, True, None),
    ],
)
def test_poor_coverage_is_told(share, num_rows, is_discrete, words):
    covered = [1.0] * round(share * num_rows) + [0.0] * round((1 - share) * num_rows)
    metrics = StreamMetrics(("is_covered",)).add({"is_covered": covered})
    warning = coverage_warning(metrics, is_discrete=is_discrete)
    assert warning is None if words is None else words in warning


def test_a_value_that_is_not_finite_is_refused():
    values = {**drawn(1), "negative_log_density": [math.inf]}
    with pytest.raises(NumericalError, match=r"prediction of row 1 is not finite: .*negative_log_density = inf"):
        StreamMetrics(VALUE_MEASURES).add(values)


def test_other_measures_are_refused():
    with pytest.raises(OptionError, match=r"must have the names .*, but has \['brier'\]"):
        StreamMetrics(VALUE_MEASURES).add({"brier": [1.0]})
