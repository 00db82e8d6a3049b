import mpmath
import pytest
import torch

from streamgp.likelihoods.intervals import interval_derivatives, log_interval
from streamgp.testing.tolerances import rounding

BOUNDS = [(-1.0, 0.5), (3.0, 3.1), (-40.0, -39.5), (8.0, 30.0), (-1e3, 2.0), (-0.2, 0.2), (37.0, 37.2)]


@pytest.mark.parametrize(("a", "b"), [*BOUNDS, (-mpmath.inf, -20.0), (25.0, mpmath.inf), (-mpmath.inf, 3.0)])
def test_probabilities_and_derivatives_equal_those_of_fifty_digits(a, b):
    with mpmath.workdps(60):

        def log_mass(z):
            if a + b > 0:  # both are close to one
                return mpmath.log(mpmath.ncdf(z - a) - mpmath.ncdf(z - b))
            return mpmath.log(mpmath.ncdf(b - z) - mpmath.ncdf(a - z))

        expected = [float(mpmath.diff(log_mass, 0, n)) for n in range(3)]
    a, b = (torch.tensor(float(x), dtype=torch.float64) for x in (a, b))
    found = [log_interval(a, b), *interval_derivatives(a, b)]
    for value, wanted in zip(found, expected, strict=True):
        # Of an interval far away that is narrow, the curvature is a small difference of squares.
        limits = rounding(torch.float64, condition=1e2, scale=max(1.0, float(a.clamp(-50, 50) ** 2)))
        assert abs(float(value) - wanted) <= limits["atol"] + limits["rtol"] * abs(wanted)


def test_no_bounds_say_nothing():
    end = torch.tensor(torch.inf, dtype=torch.float64)
    assert float(log_interval(-end, end)) == 0.0
    assert [float(each) for each in interval_derivatives(-end, end)] == [0.0, 0.0]
