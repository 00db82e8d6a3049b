from paper.figures.fig7_exchange_rates import FIGURE
from paper.tests.figure_laws import FigureLaws
from paper.tests.made_records import records_of


def outcomes(*, resampled=0.6, pivoted=0.2):
    """RMSE on the first days at the end."""

    def trial(method, seed):
        end = resampled + 0.01 * seed if method == "resample" else pivoted
        return {
            "inputs": [-1.0, 0.0, 1.0],
            "targets": [0.0, 1.0, -1.0],
            "grid": [-1.0, 1.0],
            "marks": [2, 3],
            "mean": [[0.0, 0.0]] * 2,
            "deviation": [[1.0, 1.0]] * 2,
            "points": [[-0.5, 0.5]] * 2,
            "days": [2, 3],
            "rmse_first": [0.15, end],
            "nll_first": [0.1, 0.5],
            "rmse_all": [0.15, 0.4],
        }

    return {("cad", method): [trial(method, seed) for seed in range(3)] for method in FIGURE.methods}


class TestFigure(FigureLaws):
    figure = FIGURE
    verdicts = (({}, "reproduced"), ({"pivoted": 0.5}, "partly"), ({"resampled": 0.1}, "not"))
    evidence = "RMSE on all days at the end: pivoted Cholesky 0.40"

    def records(self, num_trials, **changes):
        return records_of(FIGURE, outcomes(**changes), num_trials=num_trials)
