import pytest
import torch

from streamgp.errors import ConvergenceError, OptionError, StreamGPWarning, ValueRangeError
from streamgp.sites.site_rule import SiteRule

REPORT = {"num_open": 1, "num_batches": 3, "num_iterations": 200, "tolerance": 1e-7}


def test_the_tolerance_follows_the_dtype_unless_it_is_given():
    assert SiteRule().tolerance_in(torch.float64) < SiteRule().tolerance_in(torch.float32)
    assert SiteRule(tolerance=0.1).tolerance_in(torch.float64) == 0.1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"rule": "magic"},
            OptionError,
            "sites must be one of 'variational', 'laplace', 'moments', 'paper', but is 'magic'",
        ),
        ({"tolerance": 0.0}, ValueRangeError, "tolerance must be positive, but is 0.0"),
        ({"max_iterations": 0}, ValueRangeError, "max_iterations must be a whole number of at least 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        SiteRule(**options)


def test_sites_that_nearly_converged_are_returned_with_a_warning():
    with pytest.warns(StreamGPWarning, match="1 of 3"):
        SiteRule().report(residual=1e-3, **REPORT)


@pytest.mark.parametrize("residual", [10.0, float("nan"), float("inf")])
def test_sites_that_are_worthless_are_refused(residual):
    with pytest.raises(ConvergenceError, match="1 of 3"):
        SiteRule().report(residual=residual, **REPORT)
