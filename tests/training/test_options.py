import pytest

from streamgp.errors import OptionError, ValueRangeError
from streamgp.training.options import Minibatches, Options


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_inducing": 0}, ValueRangeError, "num_inducing must be a whole number of at least 1, but is 0"),
        ({"num_inducing": "many"}, OptionError, "num_inducing must be a whole number or 'auto', but is 'many'"),
        (
            {"inducing": "random"},
            OptionError,
            "inducing must be one of 'pivoted', 'kmeans', 'distributed_kmeans', 'features', but is 'random'",
        ),
        ({"objective": "mll"}, OptionError, "objective must be one of 'elbo', 'pll', but is 'mll'"),
        ({"beta": 0.0}, ValueRangeError, "beta must be a positive, finite number, but is 0.0"),
        ({"tolerance": -1.0}, ValueRangeError, "tolerance must be a positive, finite number, but is -1.0"),
        ({"priors": "flat"}, OptionError, "priors must be one of 'dim_scaled'"),
        ({"max_iterations": 0}, ValueRangeError, "max_iterations must be a whole number of at least 1, but is 0"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        Options(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, but is 0"),
        ({"natural_rate": 1.5}, "natural_rate must be a number above 0 and at most 1, but is 1.5"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive, finite number, but is 0.0"),
    ],
)
def test_wrong_sizes_of_minibatches_are_refused(options, message):
    with pytest.raises(ValueRangeError, match=message):
        Minibatches(**options)
