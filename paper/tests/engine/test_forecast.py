from dataclasses import replace

import pytest

from paper.engine.forecast import Forecast
from paper.engine.plan import Plan
from paper.schema.configuration import Configuration
from paper.schema.record import Records, UnitRecord
from paper.schema.unit import Unit
from paper.tests.tiny_study import STUDY, TinySettings


def make_record(method: str, seconds: float, problem: str = "left") -> UnitRecord:
    return UnitRecord("tiny", problem, method, 0, "mine", {}, {}, seconds, "", {}, "")


def units(method: str, count: int) -> list[Unit]:
    return [Unit("tiny", "mine", "left", method, seed) for seed in range(count)]


@pytest.fixture
def forecast() -> Forecast:
    records = Records(tuple(make_record("sum", seconds) for seconds in (2.0, 100.0, 4.0)))
    configuration = Configuration("mine", 3, 10.0, TinySettings(0.0, (1,), "x"))
    return Forecast.of([Plan(STUDY, configuration, (), records, ())])


def test_a_method_that_has_run_takes_its_median_time(forecast):
    assert forecast.seconds(units("sum", 5)) == 5 * 4.0


def test_times_of_the_same_problem_count_more_than_those_of_others(forecast):
    other = Unit("tiny", "mine", "right", "sum", 0)
    assert forecast.seconds([other]) == 4.0
    learned = forecast.learn([make_record("sum", 30.0, "right")])
    assert learned.seconds([other]) == 30.0
    assert learned.seconds(units("sum", 1)) == 4.0


def test_a_method_that_has_not_run_takes_what_the_settings_guess(forecast):
    assert forecast.seconds(units("raises", 5)) == 5 * 10.0
    assert forecast.seconds([*units("raises", 5), *units("sum", 1)]) == 5 * 10.0 + 4.0


def test_workers_share_the_time_until_there_are_too_many(forecast):
    assert forecast.seconds(units("sum", 5), num_workers=2) == 10.0
    assert forecast.seconds(units("sum", 5), num_workers=50) == 4.0
    assert forecast.seconds([*units("sum", 1), *units("raises", 1)], num_workers=2) == 10.0


def test_nothing_takes_no_time(forecast):
    assert forecast.seconds([], num_workers=2) == 0.0


def test_what_is_learned_leaves_the_old_forecast_alone(forecast):
    learned = forecast.learn([make_record("raises", 1.0), make_record("sum", 6.0)])
    assert learned.seconds(units("raises", 1)) == 1.0
    assert learned.seconds(units("sum", 1)) == 5.0
    assert forecast.seconds(units("raises", 1)) == 10.0


def test_the_time_of_the_processor_counts_where_it_is_known(forecast):
    busy = replace(make_record("raises", 500.0), processor_seconds=3.0)
    assert forecast.learn([busy]).seconds(units("raises", 2)) == 6.0


def test_guesses_are_corrected_by_units_of_another_scale():
    settings = TinySettings(0.0, (1,), "x")
    here = Configuration("mine", 3, 100.0, settings, {"raises": 200.0})
    there = Configuration("quick", 3, 10.0, settings)
    records = Records(tuple(replace(make_record("raises", seconds), scale="quick") for seconds in (1.0, 5.0, 9.0)))
    forecast = Forecast.of([Plan(STUDY, here, (), Records(()), (), ((there, records),))])
    assert forecast.seconds(units("raises", 2)) == 200.0
    assert forecast.seconds(units("sum", 1)) == 100.0
    said = forecast.learn([make_record("left", 1.0)]).basis([*units("raises", 2), *units("sum", 1), *units("left", 4)])
    assert said == "Times of units: 4 measured, 2 guessed and corrected by units of another scale, 1 guessed."
    assert forecast.basis([]) == ""


def test_methods_may_have_guesses_of_their_own():
    configuration = Configuration("mine", 3, 10.0, TinySettings(0.0, (1,), "x"), {"raises": 25.0})
    forecast = Forecast.of([Plan(STUDY, configuration, (), Records(()), ())])
    assert forecast.seconds([*units("raises", 2), *units("sum", 1)]) == 60.0
