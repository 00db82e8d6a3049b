import pytest

from paper.engine.times import Forecast, show_duration
from paper.schema.record import Unit, UnitRecord


def unit(problem="left", method="sum", seed=0):
    return Unit("tiny", "mine", problem, method, seed)


def record(seconds, **place):
    one = unit(**place)
    return UnitRecord("tiny", one.problem, one.method, one.seed, "mine", {}, {}, 99.0, "", {}, "", seconds)


def test_a_unit_takes_the_median_of_its_line_or_of_its_method_or_the_guess():
    forecast = Forecast(90.0).learn([record(1.0), record(3.0, seed=1), record(8.0, seed=2), record(5.0, problem="up")])
    assert forecast.seconds([unit(seed=7)]) == 3.0
    assert forecast.seconds([unit(problem="down")]) == 4.0
    assert forecast.seconds([unit(method="mean")]) == 90.0
    assert forecast.num_guessed([unit(), unit(method="mean")]) == 1


def test_several_at_a_time_share_the_work_but_no_unit():
    forecast = Forecast(6.0)
    units = [unit(seed=seed) for seed in range(4)]
    assert forecast.seconds(units, num_workers=2) == 12.0
    assert forecast.seconds(units, num_workers=9) == 6.0
    assert forecast.seconds([]) == 0.0


def test_learning_leaves_the_forecast_before_as_it_was():
    before = Forecast(6.0)
    before.learn([record(1.0)])
    assert before.seconds([unit()]) == 6.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "under 1 s"), (99.0, "99 s"), (720.0, "12 min"), (12_600.0, "3.5 h"), (4e5, "4.63 days")],
)
def test_times_are_said_as_people_say_them(seconds, words):
    assert show_duration(seconds) == words
