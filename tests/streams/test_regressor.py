import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import streamgp as sg
from streamgp.errors import (
    ArgumentTypeError,
    DTypeError,
    OptionError,
    ShapeError,
    StreamGPError,
    StreamGPWarning,
    SupportError,
    ValueRangeError,
)
from streamgp.likelihoods import Gaussian, Poisson
from streamgp.testing.tolerances import approximation, rounding, sampling, tolerance


@pytest.fixture
def numbers():
    return np.random.default_rng(20_230_517)


def waves(numbers, n, *, noise=0.1):
    X = 10.0 * numbers.random((n, 2))
    f = 5.0 + np.sin(X[:, 0]) + 0.1 * X[:, 1]
    return X, f, f + noise * numbers.standard_normal(n)


def frozen_kernel():
    kernel = ScaleKernel(MaternKernel(2.5))
    kernel.outputscale, kernel.base_kernel.lengthscale = 2.0, 0.8
    return kernel.requires_grad_(False)


def small(likelihood="gaussian", **options):
    return sg.StreamingGPRegressor(likelihood, **{"num_inducing": 20, "warmup": 40, "refit": "never", **options})


def exact_settings(**options):
    """Options under which a stream is an exact GP: one belief, a point for each row, and hyperparameters that stay."""
    fixed = {"kernel": frozen_kernel(), "num_inducing": 60, "warmup": 8, "half_life": None, **options}
    return small(Gaussian(0.04, is_learned=False), **fixed)


def stream(model, X, y, *, block, **rows):
    for start in range(0, len(y), block):
        part = slice(start, start + block)
        model.partial_fit(X[part], y[part], **{name: value[part] for name, value in rows.items()})
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* outside the range of all rows")
@parametrize_with_checks([sg.StreamingGPRegressor(num_inducing=5, warmup=8, refit="never", buffer_size=10)])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_mean_deviation_quantiles_and_density_tell_of_one_distribution(numbers):
    X, _, y = waves(numbers, 60)
    model = small(half_life=None).fit(X, y)
    mean, deviation, quantiles = model.predict(X, return_std=True, quantiles=[0.05, 0.5, 0.95])
    assert mean.shape == deviation.shape == (60,)
    normal = stats.norm(mean, deviation)
    for column, probability in enumerate([0.05, 0.5, 0.95]):
        np.testing.assert_allclose(
            quantiles[:, column], normal.ppf(probability), **approximation(1e-6, "model", scale=3.0)
        )
    np.testing.assert_allclose(
        model.log_predictive_density(X, y), normal.logpdf(y), **approximation(1e-6, "model", scale=10.0)
    )
    np.testing.assert_array_equal(model.predict(X), mean)
    np.testing.assert_array_equal(model.predict(X, quantiles=[0.5])[1], quantiles[:, 1:2])


def test_samples_are_joint_draws_with_the_moments_of_the_prediction(numbers):
    X, _, y = waves(numbers, 60)
    model = small().fit(X, y)
    W = np.array([[20.0, 20.0], [20.0, 20.1]])  # far away: unsure, but of nearly equal values
    mean, deviation = model.predict(W, return_std=True)
    draws, latent = (model.sample(W, 4000, random_state=0, latent=latent) for latent in (False, True))
    assert draws.shape == latent.shape == (4000, 2)
    np.testing.assert_allclose(draws.mean(0), mean, **sampling(deviation.max() / 4000**0.5))
    np.testing.assert_allclose(draws.std(0), deviation, **sampling(deviation.max() / 8000**0.5))
    assert np.corrcoef(latent.T)[0, 1] > 0.95
    np.testing.assert_array_equal(draws, model.sample(W, 4000, random_state=0))
    assert not np.array_equal(draws, model.sample(W, 4000, random_state=1))


def counts(numbers, name, n):
    """Rows of each likelihood, with the numbers of trials where there are any."""
    X, f, _ = waves(numbers, n)
    g = f - f.mean()
    if name == "gaussian":
        return X, f + 0.3 * numbers.standard_normal(n), {}
    if name == "student_t":
        return X, f + 0.2 * numbers.standard_t(3, n), {}
    if name == "poisson":
        return X, numbers.poisson(np.exp(1.5 + g)), {}
    if name == "negative_binomial":
        return X, numbers.negative_binomial(3, 1 / (1 + np.exp(1.5 + g) / 3)), {}
    totals = numbers.integers(5, 40, n)
    return X, numbers.binomial(totals, 1 / (1 + np.exp(-2 * g))), {"total_count": totals}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "gaussian",
        *(
            pytest.param(each, marks=pytest.mark.thorough)
            for each in ("student_t", "poisson", "negative_binomial", "binomial")
        ),
    ],
)
def test_intervals_cover_what_they_promise(numbers, name):
    X, y, rows = counts(numbers, name, 300)
    W, z, new = counts(numbers, name, 500)
    model = stream(small(name, warmup=200), X, y, block=100, **rows)
    _, quantiles = model.predict(W, quantiles=[0.05, 0.95], **new)
    inside = ((quantiles[:, 0] <= z) & (z <= quantiles[:, 1])).mean()
    # 90 % and a little more for counts, whose quantiles are whole numbers; four standard errors of 500 are 5 %.
    assert 0.85 < inside < 0.985
    density = model.log_predictive_density(W, z, **new).mean()
    shuffled = model.log_predictive_density(W[::-1], z, **new).mean()
    assert density > shuffled + 0.1
    assert model.sample(W[:5], 3, 0, total_count=None if not rows else new["total_count"][:5]).shape == (3, 5)


@pytest.mark.slow
def test_counts_are_predicted_as_counts(numbers):
    X, y, _ = counts(numbers, "poisson", 40)
    model = small("poisson", num_inducing=8).fit(X, y)
    _, quantiles = model.predict(X, quantiles=[0.1, 0.9])
    draws = model.sample(X, 3, random_state=0)
    assert (quantiles == quantiles.round()).all()
    assert (draws >= 0).all()
    assert (draws == draws.round()).all()
    assert small("poisson").__sklearn_tags__().target_tags.positive_only


@pytest.mark.slow
def test_a_likelihood_may_be_an_object(numbers):
    X, y, _ = counts(numbers, "poisson", 20)
    by_name, by_object = (small(each, half_life=None, num_inducing=8).fit(X, y) for each in ("poisson", Poisson()))
    np.testing.assert_array_equal(by_name.predict(X), by_object.predict(X))


@pytest.mark.slow
def test_without_any_argument_it_learns_a_function(numbers):
    X, f, y = waves(numbers, 450)
    model = sg.StreamingGPRegressor().partial_fit(X[:250], y[:250])
    assert model.score(X[250:], f[250:]) > 0.98
    model.partial_fit(X[250:], y[250:])
    assert model.num_seen_ == 450
    assert [report.row for report in model.refits_][-1] == 400
    assert cross_val_score(sg.StreamingGPRegressor(), X[:200], y[:200], cv=2).min() > 0.9


@pytest.mark.slow
def test_fit_forgets_what_was_learned_before(numbers):
    X, _, y = waves(numbers, 40)
    fresh = small().fit(X, y)
    again = small().fit(X[:, :1], -y).partial_fit(X[:5, :1], y[:5]).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), fresh.predict(X))
    assert again.n_features_in_ == 2
    assert again.num_seen_ == 40


def test_fit_takes_its_rows_in_random_order_and_keeps_the_options_of_the_stream(numbers):
    X, f, y = waves(numbers, 400)
    order = np.argsort(X[:, 0])
    model = small(buffer_size=60, half_life=30.0).fit(X[order], y[order])
    assert model.score(X, f) > 0.9  # a warm-up on the first sorted rows would know nothing of the others
    assert model.state_.options.half_life == 30.0
    model.partial_fit(X[:1], y[:1])
    assert model.num_seen_ == 401


def test_inducing_points_are_in_the_units_of_the_user(numbers):
    X, _, y = waves(numbers, 60)
    model = small().fit(1e4 + 100 * X, y)
    points = model.inducing_points_
    assert 5 < len(points) <= 20
    assert points.min() > 1e4 - 600
    assert points.max() < 1e4 + 1600


@pytest.mark.slow
@pytest.mark.parametrize("block", [pytest.param(1, marks=pytest.mark.thorough), 64])
def test_memory_is_bounded(numbers, block):
    X, f, y = waves(numbers, 320)
    model = small(buffer_size=80, refit=120, half_life=None)
    sizes, buffered = [], []
    for start in range(0, 320, block):
        model.partial_fit(X[start : start + block], y[start : start + block])
        buffered.append(model.state_.learners[0].buffer.num_rows)
        if start % 64 == 0:
            sizes.append(len(pickle.dumps(model)) - len(pickle.dumps(model.state_.score)))
    assert max(buffered[80 // block :]) < 80 + block
    assert len(model.inducing_points_) <= 20
    # Beliefs now, in the middle of the buffer and before it, and the buffer; the score's history grows to 512 points.
    assert max(sizes) < 60_000
    assert model.score(X, f) > 0.9


@pytest.mark.slow
def test_a_half_life_lets_the_mean_follow_a_function_that_has_moved(numbers):
    X, f, y = waves(numbers, 300)
    y, f = np.concatenate([y[:200], y[200:] + 4.0]), f + 4.0
    kept = stream(small(half_life=None), X, y, block=10)
    forgot = stream(small(half_life=20.0), X, y, block=10)
    rmse = {name: np.sqrt(np.mean((m.predict(X) - f) ** 2)) for name, m in {"kept": kept, "forgot": forgot}.items()}
    assert rmse["kept"] > 1.5
    assert rmse["forgot"] < 0.6


def test_copies_predict_the_same_and_clones_know_nothing(numbers):
    X, _, y = waves(numbers, 60)
    model = small(kernel=frozen_kernel()).fit(X[:50], y[:50])
    copies = [deepcopy(model), pickle.loads(pickle.dumps(model))]
    for one in (model, *copies):
        one.partial_fit(X[50:], y[50:])
    for one in copies:
        np.testing.assert_array_equal(one.predict(X), model.predict(X))
    assert "state_" not in vars(clone(model))
    np.testing.assert_array_equal(
        clone(model).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).predict(X), model.predict(X)
    )


def test_far_outside_inputs_are_counted_and_reported_once(numbers):
    X, _, y = waves(numbers, 60)
    model = small().fit(X[:50], y[:50])
    with pytest.warns(StreamGPWarning, match="of 52 rows lie outside the range of all rows before them"):
        model.partial_fit(X[50:52] + 1e3, y[50:52])
    with warnings.catch_warnings():
        warnings.simplefilter("error", StreamGPWarning)
        model.partial_fit(X[52:] + 1e3, y[52:])
    assert 2 < model.num_outside_ <= 10  # the range has widened, row by row


def bad_rows():
    X, y = np.full((3, 2), 1.0), np.ones(3)
    holed, infinite = X.copy(), X.copy()
    holed[1, 0], infinite[2, 1] = np.nan, np.inf
    return {
        "nan": (holed, y, ValueRangeError, "contains NaN"),
        "infinity": (infinite, y, ValueRangeError, "contains infinity"),
        "nan target": (X, np.array([1.0, np.nan, 1.0]), ValueRangeError, "contains NaN"),
        "columns": (X[:, :1], y, ValueRangeError, "has 1 features, but .* is expecting 2"),
        "length": (X, y[:2], ValueRangeError, "inconsistent numbers of samples"),
        "text": ([["a", "b"]] * 3, y, ValueRangeError, "could not convert string to float"),
        "object": ([[{}, 1.0]] * 3, y, DTypeError, "must be a string or a real number"),
        "labels": (X, ["a", "b", "c"], DTypeError, "y must hold numbers, but .* Labels are for classifiers"),
        "huge inputs": (
            1e200 * (1.0 + X),
            y,
            ValueRangeError,
            r"X holds .*e\+200, and numbers beyond 1e\+150 cannot be",
        ),
        "huge targets": (X, 1e200 + y, ValueRangeError, r"y holds 1e\+200, and numbers beyond 1e\+150 cannot be"),
        "negative": (X, np.array([1.0, -1.0, 1.0]), SupportError, "Poisson targets must be"),
        "total_count": (X, y, OptionError, "total_count holds numbers of trials, but the likelihood is 'poisson'"),
    }


@pytest.fixture(scope="module")
def counted():
    """Counts, and a model of them, which is not to be changed."""
    X, y, _ = counts(np.random.default_rng(20_230_517), "poisson", 20)
    return X, small("poisson", half_life=None, num_inducing=8).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(bad_rows()))
def test_a_bad_row_is_refused_with_a_sentence_and_changes_nothing(counted, case):
    X, model = counted
    before, state = model.predict(X), model.state_
    bad_X, bad_y, error, message = bad_rows()[case]
    rows = {"total_count": 7} if case == "total_count" else {}
    for learn in (model.partial_fit, model.fit) if case != "columns" else (model.partial_fit,):
        with pytest.raises(error, match=message):
            learn(bad_X, bad_y, **rows)
    assert model.state_ is state
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_refused_first_row_leaves_no_trace():
    model = small("poisson")
    with pytest.raises(SupportError, match="Poisson targets must be"):
        model.partial_fit([[1.0, 2.0]], [-1.0])
    assert vars(model) == vars(small("poisson"))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict([[1.0, 2.0]])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = model.num_seen_
    model.partial_fit([[1.0]], [1.0])
    assert model.n_features_in_ == 1


def test_binomial_targets_need_the_numbers_of_trials():
    model = small("binomial")
    with pytest.raises(OptionError, match="there is no total_count"):
        model.fit([[1.0], [2.0]], [1, 2])
    with pytest.raises(ShapeError, match=r"total_count must be a number or have shape \(2,\)"):
        model.fit([[1.0], [2.0]], [1, 2], total_count=[3, 4, 5])
    with pytest.raises(SupportError, match="from 0 to total_count"):
        model.fit([[1.0], [2.0]], [1, 2], total_count=1)
    model.fit([[1.0], [2.0]], [1, 2], total_count=[3, 4])
    assert (model.predict([[1.0], [2.0]], total_count=10) < 10).all()
    with pytest.raises(OptionError, match="there is no total_count"):
        model.predict([[1.0]])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"likelihood": "normal"}, OptionError, "likelihood must be one of 'gaussian'"),
        (
            {"refit": "sometimes"},
            OptionError,
            "refit must be 'auto', 'background', 'doubling', 'never' or a number of rows",
        ),
        ({"num_inducing": "many"}, OptionError, "num_inducing must be a whole number or 'auto'"),
        ({"warmup": 0}, ValueRangeError, "warmup must be a whole number of at least 1"),
        ({"half_life": -1.0}, ValueRangeError, "half_life must be 'auto' or a positive number of rows"),
    ],
)
def test_options_are_checked_when_learning_begins(options, error, message):
    model = sg.StreamingGPRegressor(**options)
    with pytest.raises(error, match=message):
        model.fit([[1.0]], [1.0])
    with pytest.raises(error, match=message):
        model.partial_fit([[1.0]], [1.0])


def test_options_may_be_numbers_of_numpy():
    model = small(num_inducing=np.int64(5), warmup=np.int32(3), half_life=np.float64(9.0)).fit(
        [[1.0], [2.0]], [1.0, 2.0]
    )
    assert type(model.num_inducing) is np.int64  # parameters stay as they were given
    assert model.state_.options.most_points == 5


@pytest.mark.filterwarnings("ignore:.* outside the range of all rows")
def test_two_threads_lose_no_row(numbers):
    X, _, y = waves(numbers, 24)
    model = small(num_inducing=5, warmup=6, half_life=None)

    def learn(start):
        for i in range(start, 24, 4):
            model.partial_fit(X[i : i + 2], y[i : i + 2])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(learn, (0, 2)))
    assert model.num_seen_ == 24


def test_feature_names_are_remembered_and_checked(numbers):
    pandas = pytest.importorskip("pandas")
    X, _, y = waves(numbers, 40)
    model = small().fit(pandas.DataFrame(X, columns=["a", "b"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueRangeError, match="feature names should match"):
        model.partial_fit(pandas.DataFrame(X, columns=["a", "c"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_single_precision_inputs_are_learned_in_double_precision(numbers):
    X, _, y = waves(numbers, 40)
    single = small(kernel=frozen_kernel()).fit(X.astype(np.float32), y.astype(np.float32))
    double = small(kernel=frozen_kernel()).fit(X, y)
    assert single.predict(X).dtype == np.float64
    np.testing.assert_allclose(single.predict(X), double.predict(X), **tolerance(torch.float32))


def _early_predictions(model, X, y):
    """What is predicted of each row before it is learned, but the first."""
    predictions = []
    for index in range(len(y)):
        if index:
            predictions.append(float(model.predict(X[index : index + 1])[0]))
        model.partial_fit(X[index : index + 1], y[index : index + 1])
    return np.array(predictions)


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in range(1, 20))])
def test_the_first_rows_are_predicted_within_what_was_seen(seed):
    """In any units, and if the first two rows nearly agree in an input."""
    numbers = np.random.default_rng(seed)
    X = numbers.standard_normal((20, 3))
    X[1, 0] = X[0, 0] + 1e-3
    y = X @ np.array([1.0, -2.0, 0.5])
    model = sg.StreamingGPRegressor()
    predictions = _early_predictions(model, X * 10.0 ** numbers.uniform(-3.0, 3.0, 3), y)
    largest = 1.0 + np.maximum.accumulate(np.abs(y))[:-1]
    assert (np.abs(predictions) < 10.0 * largest).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* outside the range of all rows")
def test_inputs_with_long_tails_are_learned_as_on_a_logarithmic_scale():
    numbers = np.random.default_rng(4)
    Z = numbers.standard_normal((300, 2))
    y = np.sin(2.0 * Z[:, 0]) + 0.1 * numbers.standard_normal(300)
    errors = [
        np.abs(_early_predictions(sg.StreamingGPRegressor(num_inducing=40), X, y) - y[1:])[150:].mean()
        for X in (np.exp(2.0 * Z), Z)
    ]
    assert errors[0] < 1.5 * errors[1]


def test_an_input_that_is_a_slip_of_the_pen_is_predicted_from_the_edge():
    numbers = np.random.default_rng(5)
    X = numbers.standard_normal((100, 2))
    y = 3.0 * X[:, 0] + 0.1 * numbers.standard_normal(100)
    model = sg.StreamingGPRegressor().partial_fit(X, y)
    assert abs(float(model.predict([[-9999.0, 0.0]])[0])) < 3.0 * np.abs(y).max()


def test_inducing_points_and_lengthscales_are_in_the_units_of_the_user():
    numbers = np.random.default_rng(6)
    X = np.stack([np.exp(5.0 + 2.0 * numbers.standard_normal(120)), 30.0 + numbers.standard_normal(120)], -1)
    model = sg.StreamingGPRegressor(num_inducing=20).partial_fit(X, np.log(X[:, 0]) + X[:, 1])
    assert model.lengthscales_.shape == (2,)
    Z = model.inducing_points_
    assert Z.shape[-1] == 2
    low, high = np.quantile(X, [0.1, 0.9], axis=0)
    assert ((low < np.median(Z, 0)) & (np.median(Z, 0) < high)).all()


@pytest.mark.slow
def test_where_points_are_few_a_stream_that_stands_still_is_nearly_as_good_as_a_fit_to_all_of_it():
    """With points that are not learned, and give way to single rows, its error is 1.6 to 1.8 times as large."""
    numbers, n = np.random.default_rng(0), 1200
    X = numbers.uniform(size=(n + 500, 6))
    angles, lengths = np.pi * np.cumsum(X[:, :3], 1), X[:, 3:]
    f = np.hypot((lengths * np.cos(angles)).sum(1), (lengths * np.sin(angles)).sum(1))
    y = f + 0.05 * numbers.standard_normal(len(f))
    model = sg.StreamingGPRegressor(num_inducing=60)
    for start in range(0, n, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    batch = sg.fit(X[:n], y[:n], num_inducing=60, standardize=True, generator=torch.Generator().manual_seed(0))
    error, least = (np.abs(each - f[n:]).mean() for each in (model.predict(X[n:]), batch.predict(X[n:]).mean))
    assert error < 1.3 * least


def test_a_line_is_drawn_out_by_a_width_and_no_farther():
    t = np.arange(100.0)[:, None]
    model = sg.StreamingGPRegressor().partial_fit(t, 2.0 * t[:, 0])
    near, edge, far = model.predict([[150.0], [198.0], [1e6]])
    assert 250.0 < near < 350.0
    assert near < edge < 450.0
    assert far == edge


def test_without_trends_predictions_go_anywhere():
    numbers = np.random.default_rng(7)
    X = numbers.uniform(0.0, 1.0, (60, 1))
    model = sg.StreamingGPRegressor(half_life=None, num_inducing=10).fit(X, 5.0 + np.sin(6.0 * X[:, 0]))
    mean, deviation = model.predict([[1e3]], return_std=True)
    middle, width = model.predict([[1e4]], return_std=True)
    np.testing.assert_allclose(mean, middle, **rounding(torch.float64))
    np.testing.assert_allclose(deviation, width, **rounding(torch.float64))


@pytest.mark.slow
def test_means_of_counts_that_are_mostly_zero_stay_near_those_of_the_counts():
    numbers = np.random.default_rng(0)
    X = numbers.random((120, 3))
    y = np.where(numbers.random(120) < 0.75, 0.0, numbers.choice([1, 2, 3, 7, 12], 120))
    model = sg.StreamingGPRegressor("negative_binomial", num_inducing=20)
    means = []
    for i in range(120):
        means.extend(model.predict(X[i : i + 1]) if i >= 20 else ())
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.mean(means) < 2.5 * y[20:].mean()  # it was five times as large


def test_means_of_counts_of_which_many_columns_say_nothing_stay_near_those_of_the_counts():
    numbers = np.random.default_rng(1)
    X, y = (numbers.random((160, 16)) < 0.3).astype(float), numbers.negative_binomial(0.4, 0.1, 160)
    model = sg.StreamingGPRegressor("negative_binomial", num_inducing=20, warmup=80)
    for i in range(0, 160, 4):
        model.partial_fit(X[i : i + 4], y[i : i + 4])
    metrics = model.score_report().metrics
    assert metrics["MAE"] < 1.25 * metrics["MAE of the running mean"]  # it was 1.5 times as large


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::streamgp.errors.StreamGPWarning")
@pytest.mark.parametrize("target", [0.5, 1e150, -1e149, 1e75, 1e-300])
@pytest.mark.parametrize("x", [0.5, 1e150, -1e149, 1e75, 1e-300])
def test_rows_near_the_end_of_all_numbers_are_learned_or_refused_without_a_trace(x, target):
    X = np.random.default_rng(0).random((40, 1))
    model = sg.StreamingGPRegressor(warmup=20, refit="never").partial_fit(X, np.sin(6 * X[:, 0]))
    before = model.predict(X)
    try:
        model.partial_fit([[x], [x]], [target, target])
    except StreamGPError:
        np.testing.assert_array_equal(model.predict(X), before)
    assert np.isfinite(model.partial_fit(X[:3], X[:3, 0]).predict(X)).all()


def test_rows_with_negative_strides_are_rows_like_any_other():
    X = np.arange(12.0).reshape(6, 2)
    turned, plain = (sg.StreamingGPRegressor(warmup=4, refit="never") for _ in range(2))
    for row in range(6):
        one = X[::-1][5 - row : 6 - row][::-1]
        turned.partial_fit(one, [float(row)])
        plain.partial_fit(X[row : row + 1], [float(row)])
    np.testing.assert_array_equal(turned.predict(X[::-1][:1]), plain.predict(X[5:]))


def test_one_quantile_and_half_lives_in_quotes_are_refused_with_what_to_pass():
    X = np.random.default_rng(0).random((10, 1))
    with pytest.raises(ArgumentTypeError, match=r"\[0\.5\]"):
        sg.StreamingGPRegressor().partial_fit(X, X[:, 0]).predict(X, quantiles=0.5)
    with pytest.raises(OptionError, match="without quotes"):
        sg.StreamingGPRegressor(half_life="100").partial_fit(X, X[:, 0])
