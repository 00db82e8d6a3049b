import pytest
from gpytorch.kernels import RBFKernel

from streamgp.errors import ArgumentTypeError, OptionError, ValueRangeError
from streamgp.likelihoods import Gaussian, Preference
from streamgp.streaming import StreamSettings
from streamgp.streaming.experts import Expert
from streamgp.streaming.settings import LIKELIHOODS


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_every_named_likelihood_can_be_made(name):
    assert StreamSettings(name).starting_likelihood.num_inputs == 1


def test_a_likelihood_given_as_an_object_keeps_its_units():
    given = Gaussian(0.3)
    assert StreamSettings(given).starting_likelihood is given
    assert not StreamSettings(given).is_target_scaled
    assert StreamSettings("gaussian").is_target_scaled


@pytest.mark.parametrize(
    ("policy", "counts"),
    [("auto", [6, 20, 40, 80]), ("doubling", [6, 20, 40, 80]), (15, [6, 20, 40, 55]), ("never", [6, 20, 40, None])],
)
def test_the_warm_up_doubles_and_then_the_policy_counts(policy, counts):
    settings = StreamSettings(warmup=40, refit=policy)
    assert [settings.next_refit(n) for n in (5, 10, 20, 40)] == counts


def test_hyperparameters_are_learned_at_least_every_thousand_rows():
    assert StreamSettings().next_refit(800) == 1600
    assert StreamSettings().next_refit(5000) == 6000


def test_a_half_life_that_is_given_means_itself():
    assert len(StreamSettings().experts(1, 3)) > 3
    assert StreamSettings(half_life=None).experts(1, 3).each == (Expert(),)
    assert StreamSettings(half_life=30).experts(1, 3).each == (Expert(30.0),)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"likelihood": "gauss"}, OptionError, "likelihood must be one of 'gaussian'"),
        ({"likelihood": Preference()}, ArgumentTypeError, "for single inputs"),
        (
            {"refit": "sometimes"},
            OptionError,
            "refit must be 'auto', 'background', 'doubling', 'never' or a number of rows",
        ),
        ({"refit": 0}, ValueRangeError, "refit must be a whole number"),
        ({"num_inducing": "many"}, OptionError, "num_inducing must be a whole number or 'auto'"),
        ({"num_inducing": 0}, ValueRangeError, "num_inducing"),
        ({"warmup": 0}, ValueRangeError, "warmup"),
        ({"buffer_size": 5}, ValueRangeError, "buffer_size must be a whole number of at least 10"),
        ({"half_life": 0.0}, ValueRangeError, "half_life must be 'auto' or a positive number of rows"),
    ],
)
def test_bad_options_are_refused_with_a_sentence(options, error, message):
    with pytest.raises(error, match=message):
        StreamSettings(**options)


def test_a_kernel_is_one_of_gpytorch():
    assert StreamSettings(kernel=RBFKernel()).kernel is not None


def test_room_for_inducing_points_grows_with_the_rows():
    assert [tuple(StreamSettings().room(n)) for n in (10, 2000, 3000, 10**9)] == [
        (100, 100, 256),
        (100, 100, 256),
        (100, 150, 256),
        (100, 256, 256),
    ]
    assert StreamSettings().room(10, 130) == (100, 130, 256)  # those that are there stay
    assert StreamSettings(max_inducing=40).room(10**9) == (40, 40, 40)
    assert StreamSettings(num_inducing=7).room(10**9) == (7, 7, 7)
