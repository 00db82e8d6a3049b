import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from scipy import stats
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from tests.support.estimator_checks import checks_of_scikit_learn

import streamgp as sg
from streamgp.errors import OptionError, StreamGPError, UnsupportedError, ValueRangeError
from streamgp.testing.tolerances import judgement, within


def waves(n=80, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    f = np.sin(6 * X[:, 0]) + X[:, 1]
    return X, f, f + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, _, y = waves()
    return sg.GPRegressor().fit(100 * X, 10 * y + 5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The fit found nothing but noise")  # some of the checks have targets at random
@checks_of_scikit_learn(sg.GPRegressor(num_inducing=5, kernel="matern"))
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_it_is_the_exact_gp_of_its_kernel_and_noise(fitted):
    X, _, y = waves()
    W = waves(9, seed=1)[0]
    scaling, noise = fitted.result_.scaling, float(fitted.likelihood_.noise_variance)
    inputs, new = (scaling.inputs(torch.from_numpy(100 * each)) for each in (X, W))
    targets = scaling.targets(torch.from_numpy(10 * y + 5))
    kernel, mean = fitted.kernel_, fitted.result_.gp.mean
    with torch.no_grad():
        A = kernel(inputs).to_dense() + noise * torch.eye(80, dtype=torch.float64)
        cross = kernel(inputs, new).to_dense()
        expected = mean(new) + cross.T @ torch.linalg.solve(A, targets - mean(inputs))
        covariance = kernel(new).to_dense() - cross.T @ torch.linalg.solve(A, cross) + noise * torch.eye(9)
    scale, shift = float(scaling.target_scale), float(scaling.target_shift)
    predicted, found = fitted.predict(100 * W, return_cov=True)
    np.testing.assert_allclose(predicted, shift + scale * expected.numpy(), **judgement(relative=1e-4))
    np.testing.assert_allclose(found, scale**2 * covariance.numpy(), atol=1e-4 * scale**2)
    deviation = fitted.predict(100 * W, return_std=True)[1]
    np.testing.assert_allclose(deviation**2, found.diagonal(), **judgement(relative=1e-6))


def test_quantiles_densities_and_samples_are_of_the_same_distribution(fitted):
    W, f, _ = waves(5, seed=2)
    mean, deviation, quantiles = fitted.predict(100 * W, return_std=True, quantiles=[0.1, 0.9])
    np.testing.assert_allclose(quantiles, stats.norm(mean, deviation).ppf([[0.1], [0.9]]).T, **judgement(relative=1e-6))
    density = fitted.log_predictive_density(100 * W, 10 * f + 5)
    np.testing.assert_allclose(density, stats.norm(mean, deviation).logpdf(10 * f + 5), **judgement(relative=1e-6))
    drawn = fitted.sample_y(100 * W, n_samples=4000, random_state=3)
    assert drawn.shape == (5, 4000)
    # Six standard errors.
    np.testing.assert_array_less(np.abs(drawn.mean(1) - mean), 6 * deviation / np.sqrt(4000))
    np.testing.assert_allclose(drawn.std(1), deviation, **judgement(relative=0.1))


def test_conditioned_and_absorbed_rows_are_known_and_the_original_stays(fitted):
    X, f, _ = waves(6, seed=4)
    before = fitted.predict(100 * X)
    new = 10 * f + 25
    for other in (fitted.condition(100 * X, new), fitted.absorb(100 * X, new, num_inducing=86)):
        assert np.abs(other.predict(100 * X) - new).mean() < np.abs(before - new).mean()
        assert other.n_features_in_ == 2
    np.testing.assert_array_equal(fitted.predict(100 * X), before)
    chained = fitted.condition(100 * X[:3], new[:3]).condition(100 * X[3:], new[3:])
    np.testing.assert_allclose(
        chained.predict(100 * X), fitted.condition(100 * X, new).predict(100 * X), **judgement(relative=1e-6)
    )
    with pytest.raises(UnsupportedError, match="Absorb first"):
        chained.absorb(100 * X, new)


def test_whole_weights_are_repetitions_and_others_divide_the_noise():
    X, _, y = waves(40)
    counts = np.random.default_rng(0).integers(0, 4, 40)
    options = {"num_inducing": 10, "kernel": "rbf"}
    weighted = sg.GPRegressor(**options).fit(X, y, sample_weight=counts)
    repeated = sg.GPRegressor(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    ones, plain = (sg.GPRegressor(**options).fit(X, y, sample_weight=w) for w in (np.full(40, 0.7), None))
    np.testing.assert_array_equal(ones.predict(X), plain.predict(X))
    trusted = np.full(40, 0.01)
    trusted[7] = 1000.5
    closer = sg.GPRegressor().fit(X, y, sample_weight=trusted)
    assert abs(closer.predict(X)[7] - y[7]) < 0.1 * abs(sg.GPRegressor().fit(X, y).predict(X)[7] - y[7])
    with pytest.raises(ValueRangeError, match="all weights are zero"):
        sg.GPRegressor().fit(X, y, sample_weight=np.zeros(40))
    with pytest.raises(UnsupportedError, match="must be whole numbers for a Poisson"):
        sg.GPRegressor("poisson", num_inducing=5).fit(X, np.round(np.abs(y)), sample_weight=np.linspace(0.1, 1, 40))


def test_kernels_have_names_and_are_chosen_where_none_is_given(fitted):
    X, _, y = waves(40)
    assert isinstance(sg.GPRegressor(kernel="rbf").fit(X, y).kernel_.base_kernel, RBFKernel)
    given = sg.GPRegressor(kernel=ScaleKernel(MaternKernel(0.5))).fit(X, y)
    assert given.kernel_.base_kernel.nu == 0.5
    assert len(fitted.info_.kernels) == 4
    with pytest.raises(StreamGPError, match="'cubic'"):
        sg.GPRegressor(kernel="cubic").fit(X, y)


def test_counts_have_means_deviations_and_quantiles():
    rng = np.random.default_rng(0)
    X = rng.random((120, 1))
    y = rng.poisson(np.exp(2 * X[:, 0]))
    model = sg.GPRegressor("poisson", num_inducing=10).fit(X, y)
    mean, deviation, median = model.predict(X, return_std=True, quantiles=[0.5])
    assert np.abs(mean - np.exp(2 * X[:, 0])).mean() < 0.7
    assert (deviation**2 >= mean).all()
    assert (median == np.round(median)).all()
    assert (model.sample_y(X[:3], 5) >= 0).all()
    with pytest.raises(UnsupportedError, match="no covariance in closed form"):
        model.predict(X, return_cov=True)


def test_it_works_in_pipelines_and_cross_validation():
    X, _, y = waves(60)
    pipeline = make_pipeline(PolynomialFeatures(2), sg.GPRegressor(num_inducing=15, kernel="matern"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    model = sg.GPRegressor(num_inducing=10, kernel="matern").fit(X, y)
    with pytest.raises(OptionError, match="Either return_std or return_cov"):
        model.predict(X, return_std=True, return_cov=True)


def test_a_saved_regressor_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    X, loaded = 100 * waves(5, seed=5)[0], sg.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.get_params() == fitted.get_params()
    assert loaded.info_ == fitted.info_
    conditioned = fitted.condition(X, np.zeros(5))
    conditioned.save(tmp_path / "model")
    np.testing.assert_array_equal(sg.load(tmp_path / "model").predict(X), conditioned.predict(X))


@pytest.fixture(scope="module")
def skewed():
    """A regressor of prices, whose noise is a share of them."""
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    y = np.exp(1.5 * np.sin(5 * X[:, 0]) + 0.3 * rng.normal(size=150))
    return sg.GPRegressor().fit(X, y), X, y


def test_skewed_targets_are_bent(skewed):
    model, X, y = skewed
    assert model._reading.targets.power < 0.7
    straight = sg.GPRegressor(warp=None).fit(X, y)
    rng = np.random.default_rng(1)
    W = rng.random((200, 2))
    v = np.exp(1.5 * np.sin(5 * W[:, 0]) + 0.3 * rng.normal(size=200))
    assert model.log_predictive_density(W, v).mean() > straight.log_predictive_density(W, v).mean() + 0.2
    low, high = model.predict(W, quantiles=[0.05, 0.95])[1].T
    assert 0.84 < np.mean((low < v) & (v < high)) < 0.96


def test_bent_targets_have_one_distribution(skewed):
    model, X, _ = skewed
    mean, deviation, quantiles = model.predict(X[:4], return_std=True, quantiles=[0.1, 0.5])
    drawn = model.sample_y(X[:4], n_samples=20_000, random_state=0)
    np.testing.assert_array_less(np.abs(drawn.mean(1) - mean), 6 * deviation / np.sqrt(20_000))
    np.testing.assert_allclose(np.quantile(drawn, 0.5, axis=1), quantiles[:, 1], **judgement(relative=0.03))
    _, covariance = model.predict(X[:4], return_cov=True)
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), deviation, **judgement(relative=1e-6))
    np.testing.assert_allclose(np.cov(drawn), covariance, atol=0.1 * covariance.max())
    grid = np.linspace(-3.0, 60.0, 40_001)
    density = np.exp(model.log_predictive_density(np.repeat(X[:1], len(grid), axis=0), grid))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, **within(judgement(absolute=1e-3)))
    assert np.trapezoid(grid * density, grid) == pytest.approx(mean[0], **within(judgement(relative=1e-3)))


def test_a_bent_regressor_learns_on_in_the_units_of_its_targets(skewed, tmp_path):
    model, X, _ = skewed
    for other in (model.condition(X[:3], [9.0] * 3), model.absorb(X[:3], [9.0] * 3)):
        assert (np.abs(other.predict(X[:3]) - 9.0) < np.abs(model.predict(X[:3]) - 9.0)).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(sg.load(tmp_path / "model").sample_y(X[:3]), model.sample_y(X[:3]))


def test_bends_are_asked_for_by_name(skewed):
    _, X, y = skewed
    options = {"num_inducing": 10, "kernel": "matern"}
    assert sg.GPRegressor(warp="inputs", **options).fit(X, y)._reading.targets.is_identity
    assert not sg.GPRegressor(warp="targets", **options).fit(X, y)._reading.inputs.columns
    given = sg.GPRegressor(kernel=ScaleKernel(MaternKernel()), num_inducing=10).fit(X, y)
    assert given._reading.targets.is_identity
    with pytest.raises(OptionError, match="warp must be one of 'auto', 'inputs', 'targets', 'none', but is 'log'"):
        sg.GPRegressor(warp="log", **options).fit(X, y)
