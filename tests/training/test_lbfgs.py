import pytest
import torch
from torch.testing import assert_close

from streamgp.errors import NumericalError
from streamgp.testing.tolerances import convergence
from streamgp.training.lbfgs import maximize

TOLERANCE = 1e-12


def unbounded(k):
    return torch.full((k,), -torch.inf, dtype=torch.float64), torch.full((k,), torch.inf, dtype=torch.float64)


def climb(objective, start, **options):
    start = torch.tensor(start, dtype=torch.float64)
    defaults = {"bounds": unbounded(len(start)), "max_iterations": 100, "tolerance": TOLERANCE}
    return maximize(objective, start, **(defaults | options))


def test_it_finds_the_maximum():
    peak = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    ascent = climb(lambda x: -(x - peak).square().sum() - (x - peak).pow(4).sum(), [0.0, 0.0, 0.0])
    assert_close(ascent.x, peak, **convergence(TOLERANCE, curvature=2.0))
    assert ascent.is_converged
    assert ascent.value == max(ascent.history)
    assert list(ascent.history) == sorted(ascent.history)


def test_bounds_hold():
    bounds = torch.tensor([0.5], dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
    assert_close(climb(lambda x: -x.square().sum(), [1.0], bounds=bounds).x, bounds[0])


@pytest.mark.parametrize("failure", ["raise", "nan"])
def test_a_step_without_a_value_is_rejected_and_shortened(failure):
    def objective(x):
        if x.item() >= 0.99:
            if failure == "raise":
                raise NumericalError("outside")
            return x.sum() * torch.nan
        # Steep toward the edge of the domain, so that the first steps overshoot.
        return (50 * x + (1 - x).log()).sum()

    ascent = climb(objective, [-3.0])
    assert ascent.num_rejected > 0
    near = convergence(TOLERANCE * ascent.value, curvature=0.02**-2)  # the tolerance is relative to the value
    assert_close(ascent.x, torch.tensor([0.98], dtype=torch.float64), **near)


def test_it_stops_when_iterations_gain_little():
    ascent = climb(lambda x: -(x.pow(4)).sum(), [1.0, 2.0], tolerance=1e-2)
    assert ascent.is_converged
    assert "gained less than the tolerance" in ascent.reason
    assert ascent.num_evaluations < climb(lambda x: -(x.pow(4)).sum(), [1.0, 2.0]).num_evaluations


def test_it_says_when_iterations_run_out():
    ascent = climb(lambda x: -(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2), [-1.0, 1.0], max_iterations=3)
    assert not ascent.is_converged
    assert "largest number of iterations" in ascent.reason
    assert len(ascent.history) == 4


def test_nothing_to_learn_is_converged():
    ascent = maximize(
        lambda x: torch.tensor(3.0), torch.zeros(0), bounds=(torch.zeros(0),) * 2, max_iterations=5, tolerance=1e-3
    )
    assert ascent.value == 3.0
    assert ascent.is_converged


def test_a_start_without_a_value_is_an_error():
    with pytest.raises(NumericalError, match="NaN or infinite at the start of training"):
        climb(lambda x: x.sum() * torch.nan, [1.0])


def test_it_reports_each_iteration():
    seen = []
    ascent = climb(lambda x: -x.square().sum(), [3.0], on_iteration=seen.append)
    assert seen == list(ascent.history[1:])


def test_past_a_deadline_it_takes_fifteen_iterations():
    def valley(x):
        return -(1.0 - x[0]).square() - 100.0 * (x[1] - x[0].square()).square()

    late, whole = climb(valley, [-1.2, 1.0], deadline=0.0), climb(valley, [-1.2, 1.0])
    assert len(late.history) == 16 < len(whole.history)
    assert late.reason == "the time budget was spent"
    assert not late.is_converged
