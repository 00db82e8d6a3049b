"""Fig. 11 on made records."""

from paper.figures.fig11_inducing_points import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import make_records


def records_of(num_trials=5, *, gain_of_pll=0.5, gain_of_large=0.0, time_of_pll=0.8):
    def outcome(problem, method, seed):
        _, size, objective, acquisition = method.split("-")
        is_pll = objective == "pll"
        end = 2.0 + gain_of_pll * (is_pll and acquisition == "lts") + gain_of_large * (size == "large")
        end += 0.1 * ((seed * 7 + len(method)) % 5)
        second = (time_of_pll if is_pll else 1.0) * (1.0 + 0.01 * seed)
        return {"num_evaluations": [100, 200], "best": [-8.0, end], "seconds": [second]}

    settings = {"num_inducing_large": 400, "num_inducing_small": 200, "depth": 4}
    return make_records(FIGURE, outcome, num_trials=num_trials, settings=settings)


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"time_of_pll": 3.0}, "reproduced"), ({"gain_of_large": 3.0}, "not"))

    def records(self, num_trials, **changes):
        return records_of(num_trials, **changes)


def test_each_column_has_the_four_models_of_its_sampling():
    picture = FIGURE.draw(records_of())
    titles = [axes.get_title() for axes in picture.axes[:2]]
    labels = [axes.get_legend_handles_labels()[1] for axes in picture.axes[:2]]
    assert titles == ["TS", "LTS"]
    assert [len(column) for column in labels] == [4, 4]
    assert all(label.endswith(", TS") for label in labels[0])
    assert all(label.endswith(", LTS") for label in labels[1])
