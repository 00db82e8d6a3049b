import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import DTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Binomial, Preference
from streamgp.loops import PoolSpace

X = torch.linspace(0.0, 1.0, 20, dtype=torch.float64).reshape(10, 2)


def space(pool_X=X, *, weights=None, targets=None, is_standardized=True, seed=0):
    return PoolSpace.from_inputs(pool_X, weights=weights, targets=targets, is_standardized=is_standardized, seed=seed)


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (ShapeError, r"pool_X must have shape \(n, d\)", {"space": X[0]}),
        (ValueRangeError, "pool_X must be finite", {"space": X / 0.0}),
        (DTypeError, "pool_X must be numbers, but is a str", {"space": "villages"}),
        (OptionError, "does not say out of how many trials", {"likelihood": "binomial"}),
        (OptionError, "likelihood must be one of .*'gaussian'", {"likelihood": "normal"}),
        (UnsupportedError, "observed one by one", {"likelihood": Preference()}),
        (
            ShapeError,
            r"total_count of the Binomial likelihood must be a number",
            {"likelihood": Binomial(torch.ones(3))},
        ),
        (OptionError, "acquisition must be one of", {"acquisition": "qkg"}),
        (OptionError, "The rule Exceedance needs a threshold", {"acquisition": "exceedance"}),
        (UnsupportedError, "Use the acquisition 'exceedance'", {"acquisition": "hotspot_entropy", "threshold": 0.1}),
        (ShapeError, r"weights must have shape \(10,\)", {"weights": [1.0]}),
        (ValueRangeError, "targets must name at least one", {"targets": []}),
        (ValueRangeError, "targets must be indices from 0 to 9", {"targets": [10]}),
        (ValueRangeError, "num_initial must be a whole number", {"num_initial": 0}),
    ],
)
def test_options_that_make_no_sense_are_refused(error, match, options):
    with pytest.raises(error, match=match):
        sg.PoolLearner(**{"space": X, **options})


def test_the_pool_is_standardized_or_not():
    constant = torch.cat([X, torch.ones(10, 1, dtype=torch.float64)], dim=-1)
    scaled = space(constant).scaled
    assert_close(scaled.mean(0), torch.zeros(3, dtype=torch.float64))
    assert_close(scaled.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
    assert torch.equal(space(is_standardized=False).scaled, X)


def test_gains_over_large_pools_are_summed_over_a_part():
    large = torch.rand(6000, 1, dtype=torch.float64)
    targets = space(large)._default_targets
    assert len(targets) == len(targets.unique()) == 2000
    assert torch.equal(targets, space(large)._default_targets)
    assert not torch.equal(targets, space(large, seed=1)._default_targets)
    assert len(space(large[:5000])._default_targets) == 5000


def test_a_learner_keeps_its_own_pool():
    mine = X.clone()
    learner = sg.PoolLearner(mine)
    mine.zero_()
    assert torch.equal(learner.inspect(refit=False).space.members, X)
