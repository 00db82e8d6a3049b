"""Fig. 10 d on made records."""

import pytest

from streamgp.experiments.figures.fig10d_collapsed import FIGURE
from streamgp.testing.figure_laws import FigureLaws
from streamgp.testing.made_records import make_records


def records_of(num_trials=5, **ends):
    def outcome(problem, method, seed):
        end = ends.get(method.replace("-", "_"), 2.0) + 0.1 * ((seed * 7 + len(method)) % 5)
        return {"num_evaluations": [100, 200], "best": [-8.0, end], "seconds": [1.0]}

    settings = {"num_inducing_large": 400, "num_inducing_small": 200, "depth": 4}
    return make_records(FIGURE, outcome, num_trials=num_trials, settings=settings)


class TestFigure(FigureLaws):
    figure = FIGURE

    def records(self, num_trials):
        return records_of(num_trials)


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [({}, "reproduced"), ({"exact_lts": 6.0}, "partly"), ({"svgp_large_elbo_ts": -3.0}, "not")],
)
def test_the_verdict_follows_from_the_records(ends, verdict):
    assert FIGURE.judge(records_of(**ends)).verdict == verdict
