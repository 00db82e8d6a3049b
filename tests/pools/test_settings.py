import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import DTypeError, OptionError, ShapeError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Binomial, Preference
from streamgp.pools import Training
from streamgp.pools.settings import Settings

X = torch.linspace(0.0, 1.0, 20, dtype=torch.float64).reshape(10, 2)
OPTIONS = {
    "likelihood": "gaussian",
    "acquisition": "integrated_variance",
    "threshold": None,
    "is_clipped": True,
    "weights": None,
    "targets": None,
    "kernel": None,
    "num_initial": None,
    "num_inducing": 500,
    "refit": "auto",
    "training": None,
    "standardize": True,
    "seed": 0,
}


def read(pool_X=X, **options):
    return Settings.read(pool_X, **(OPTIONS | options))


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (ShapeError, r"pool_X must have shape \(n, d\)", {"pool_X": X[0]}),
        (ValueRangeError, "pool_X must be finite", {"pool_X": X / 0.0}),
        (DTypeError, "pool_X must be a tensor, an array or a list", {"pool_X": "villages"}),
        (OptionError, "does not say out of how many trials", {"likelihood": "binomial"}),
        (OptionError, "likelihood must be one of 'gaussian'", {"likelihood": "normal"}),
        (UnsupportedError, "observed one by one", {"likelihood": Preference()}),
        (
            ShapeError,
            r"total_count of the Binomial likelihood must be a number",
            {"likelihood": Binomial(torch.ones(3))},
        ),
        (OptionError, "acquisition must be one of", {"acquisition": "qkg"}),
        (OptionError, "'exceedance' needs a threshold", {"acquisition": "exceedance"}),
        (UnsupportedError, "Use the acquisition 'exceedance'", {"acquisition": "hotspot_entropy", "threshold": 0.1}),
        (DTypeError, "threshold must be a number", {"threshold": "high"}),
        (ShapeError, r"weights must have shape \(10,\)", {"weights": [1.0]}),
        (ValueRangeError, "targets must name at least one", {"targets": []}),
        (ValueRangeError, "targets must be indices from 0 to 9", {"targets": [10]}),
        (DTypeError, "kernel must be a kernel of GPyTorch", {"kernel": "rbf"}),
        (DTypeError, r"training must be a streamgp\.pools\.Training", {"training": {"beta": 1.0}}),
        (DTypeError, "is_clipped must be True or False", {"is_clipped": 1}),
        (OptionError, "refit must be one of", {"refit": 2.5}),
        (ValueRangeError, "num_initial must be a whole number", {"num_initial": 0}),
    ],
)
def test_options_that_make_no_sense_are_refused(error, match, options):
    with pytest.raises(error, match=match):
        read(**options)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"beta": 0.0}, "beta"), ({"num_starts": 0}, "num_starts"), ({"max_iterations": 0}, "max_iterations")],
)
def test_training_is_checked(options, match):
    with pytest.raises(ValueRangeError, match=match):
        Training(**options)


def test_the_pool_is_standardised_or_not():
    constant = torch.cat([X, torch.ones(10, 1, dtype=torch.float64)], dim=-1)
    scaled = read(constant).scaled
    assert_close(scaled.mean(0), torch.zeros(3, dtype=torch.float64))
    assert_close(scaled.std(0, correction=0), torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
    assert torch.equal(read(standardize=False).scaled, X)


def test_gains_over_large_pools_are_summed_over_a_part():
    large = torch.rand(6000, 1, dtype=torch.float64)
    targets = read(large).default_targets
    assert len(targets) == len(targets.unique()) == 2000
    assert torch.equal(targets, read(large).default_targets)
    assert not torch.equal(targets, read(large, seed=1).default_targets)
    assert len(read(large[:5000]).default_targets) == 5000


def test_a_learner_keeps_its_own_pool():
    mine = X.clone()
    learner = sg.PoolLearner(mine)
    mine.zero_()
    assert torch.equal(learner._settings.inputs, X)
