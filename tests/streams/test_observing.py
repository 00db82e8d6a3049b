"""Targets of any likelihood and classes: moments, compiled functions against NumPy, and laws of learners."""

import math

import gpytorch
import numpy as np
import pytest
import torch
from scipy.integrate import quad
from tests.streams.streams import PRIOR, buffer_of, called_from_python, moving_rows

from streamgp.errors import OptionError, SupportError
from streamgp.likelihoods import Bernoulli, Binomial, Gamma, NegativeBinomial, Poisson, StudentT
from streamgp.storage import load, save
from streamgp.streams import StreamLearner, StreamOptions, compiled, plain
from streamgp.streams.buffer import Units
from streamgp.streams.compiled_sites import match
from streamgp.streams.compiling import HAS_NUMBA
from streamgp.streams.kernels import FAMILIES, ModuleKernel, Stationary
from streamgp.streams.marginal import Rows, _module_objective, negative_log_marginal
from streamgp.streams.observing import Observing
from streamgp.streams.prior import CLASS_EXPERTS, COUNT_EXPERTS, Prior
from streamgp.streams.refit import Fitted
from streamgp.streams.state import empty_said
from streamgp.testing.tolerances import approximation, judgement, rounding


@called_from_python
def matched(densities, y, count, power, mean, variance):
    return match(densities, y, count, power, mean, variance)


@called_from_python
def correlated(family, square):
    return compiled.correlation(family, square)


CASES = [
    (Bernoulli("probit"), 1.0, 1.0),
    (Bernoulli("logit"), 0.0, 1.0),
    (Binomial(1), 3.0, 7.0),
    (Poisson(), 4.0, 1.5),
    (Poisson(), 900.0, 1.0),
    (NegativeBinomial(1.5), 6.0, 1.0),
    (StudentT(3.0, 0.2), 2.5, 1.0),
    (Gamma(2.0), 0.7, 1.0),
]


@pytest.mark.parametrize(("likelihood", "y", "count"), CASES)
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 0.8), (-1.0, 1e-4), (2.0, 25.0)])
@pytest.mark.parametrize("power", [1.0, 0.4])
def test_moments_are_those_of_quadrature(likelihood, y, count, mean, variance, power):
    if isinstance(likelihood, StudentT) and variance > 1.0:
        variance = 1.0  # a peak of a tenth of the width of the belief falls between the nodes
    observing, one = Observing(likelihood), np.ones(1)
    found = observing.moments(y * one, count * one, power * one, mean=mean * one, variance=variance * one)

    def joint(f):
        density = power * observing.log_density(np.array([y]), np.array([count]), np.array([f]))[0]
        return density - 0.5 * (f - mean) ** 2 / variance - 0.5 * math.log(2.0 * math.pi * variance)

    center, width, top = found.mean[0], math.sqrt(found.variance[0]), joint(found.mean[0])
    # Student's t has a narrow peak at its target, beside what is expected.
    points = sorted({center, *([y] if isinstance(likelihood, StudentT) else [])})
    moments = []
    for k in range(3):
        low, high = center - 12.0 * width, center + 12.0 * width
        inner = [each for each in points if low < each < high]
        moments.append(
            quad(lambda f, k=k: f**k * math.exp(joint(f) - top), low, high, points=inner, limit=400, epsabs=0.0)[0]
        )
    first = moments[1] / moments[0]
    # Where the belief is ten times as wide as the likelihood; most agree to 1e-5.
    close = judgement(absolute=1e-2)
    np.testing.assert_allclose(found.log_evidence[0], math.log(moments[0]) + top, **close)
    np.testing.assert_allclose(found.mean[0], first, **close)
    np.testing.assert_allclose(found.variance[0], moments[2] / moments[0] - first**2, **close)
    if observing.compiled is not None:
        again = matched(observing.compiled, y, count, power, mean, variance)
        np.testing.assert_allclose(again, [each[0] for each in found], **judgement(relative=1e-6, absolute=1e-9))


@pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")
@pytest.mark.parametrize(
    ("likelihood", "num_questions"),
    [(Bernoulli("probit"), 3), (Bernoulli("logit"), 1), (Binomial(1), 1), (Poisson(), 1), (StudentT(3.0, 0.2), 1)],
)
def test_the_compiled_functions_do_what_numpy_does(likelihood, num_questions):
    """Rows of other weights, a late row, new points, a spent budget, points that are exchanged, and asked rows."""
    n, rng = 80, np.random.default_rng(0)
    X, f = moving_rows(n)
    counts, noises, times = rng.integers(1, 6, n).astype(float), rng.choice([1.0, 2.0], n), np.arange(n)
    counts = np.ones(n) if likelihood.name == "bernoulli" else counts
    times[50], times[60:] = 20, times[60:] + 5
    y = {"bernoulli": np.digitize(f, [-0.5, 0.5][: max(num_questions - 1, 1)]), "student_t": f}.get(
        likelihood.name, rng.binomial(counts.astype(int), 0.4)
    )
    y = np.minimum(y, max(num_questions - 1, 1)).astype(float) if likelihood.name == "bernoulli" else 1.0 * y
    prior = Prior(*list(vars(PRIOR).values())[:7], has_sites=True)
    observing = Observing(likelihood, np.linspace(-0.3, 0.2, num_questions))
    experts = CLASS_EXPERTS if likelihood.name == "bernoulli" else COUNT_EXPERTS
    fitted = Fitted(Units.plain(3), prior, observing, experts)
    results = []
    for module, how in ((compiled, observing.compiled), (plain, observing)):
        belief, dynamics = fitted.new_belief(X[:3].copy()).with_room(10), fitted.dynamics()
        said = empty_said(n, belief)
        given = (X, y, counts, noises, times)
        rest = (belief, dynamics, how, 10, np.inf)
        module.learn_rows(*given, 0, 40, *rest, False, False, np.ones(40), said.rows(0, 40))
        module.learn_rows(*given, 40, 60, *rest, True, False, np.ones(20), said.rows(40, 60))
        module.predict_rows(X[60:], times[60:], belief, dynamics, how, said.rows(60, n))
        module.learn_rows(*given, 60, n, *rest, True, True, np.full(20, 0.3), said.rows(60, n))
        results.append((belief, said))
    for a, b in zip(results[0], results[1], strict=True):
        for name, first, second in zip(a._fields, a, b, strict=True):
            np.testing.assert_allclose(first, second, **judgement(relative=1e-4, absolute=1e-4), err_msg=name)


@pytest.mark.parametrize("family", range(len(FAMILIES)))
def test_kernels_by_name_are_those_of_gpytorch(family):
    X, weights = np.random.default_rng(1).standard_normal((9, 2)), np.array([0.7, 2.0])
    base = gpytorch.kernels.RBFKernel(ard_num_dims=2) if family == 3 else None
    base = base or gpytorch.kernels.MaternKernel((2.5, 1.5, 0.5)[family], ard_num_dims=2)
    base = base.double()
    base.lengthscale = torch.from_numpy(1.0 / weights)
    found, expected = Stationary(family, weights)(X, X), ModuleKernel(base)(X, X)
    np.testing.assert_allclose(found, expected, **judgement(absolute=1e-6))
    if HAS_NUMBA:
        square = float((((X[0] - X[1]) * weights) ** 2).sum())
        close = rounding(torch.float64, condition=1e4)
        np.testing.assert_allclose(correlated(family, square), found[0, 1], **close)


@pytest.mark.parametrize("kernel", [*range(len(FAMILIES)), "module"])
@pytest.mark.parametrize("has_sites", [False, True])
def test_the_gradient_of_the_marginal_likelihood_is_that_of_finite_differences(kernel, has_sites):
    n, rng, step = 20, np.random.default_rng(2), 1e-5
    X, y = moving_rows(n)
    rows = Rows(X, np.stack([y, -y[::-1]]), np.arange(n) * 1.5, rng.uniform(0.5, 2.0, (2, n)))
    if kernel == "module":
        module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.PeriodicKernel())
        objective, _, theta = _module_objective(rows, Prior.default(3, module, has_sites=has_sites), is_timed=True)
    else:
        prior, theta = Prior.default(3, kernel, has_sites=has_sites), PRIOR.log
        squares = np.stack([(X[:, j : j + 1] - X[:, j]) ** 2 for j in range(3)])

        def objective(theta):
            return negative_log_marginal(theta, rows, squares, prior)

    _, gradient = objective(theta)
    for j, unit in enumerate(np.eye(len(theta))):
        up, down = (objective(theta + sign * step * unit)[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[j], (up - down) / (2 * step), **judgement(absolute=1e-4, relative=1e-4))


def made_rows(kind, n=120):
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (n, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, {
        "poisson": rng.poisson(np.exp(0.5 + f)).astype(float),
        "classes": np.digitize(f + 0.3 * rng.standard_normal(n), [-0.7, 0.7]).astype(float),
        "student_t": f + 0.1 * rng.standard_normal(n) + 9.0 * (rng.random(n) < 0.05),
        "positive": rng.gamma(2.0, np.exp(f) / 2.0),
    }[kind]


def learned(kind, X, y, *, block=None, **options):
    likelihood = {"positive": Gamma(2.0), "classes": "gaussian"}.get(kind, kind)
    options = StreamOptions(likelihood=likelihood, most_points=16, **options)
    learner = StreamLearner(2, options, num_classes=3 if kind == "classes" else 0)
    for start in range(0, len(y), block or len(y)):
        learner.learn(X[start : start + (block or len(y))], y[start : start + (block or len(y))])
    return learner


def said_by(learner, X):
    forecast = learner.predict(X)
    return forecast.probabilities if learner.num_classes else forecast.mean


@pytest.mark.parametrize("kind", ["poisson", "classes", "student_t", "positive"])
def test_rows_of_a_block_are_learned_in_order_and_files_go_on(kind, tmp_path):
    X, y = made_rows(kind, 60)
    options = {"warmup": 40, "refit": 30, "buffer_size": 30}
    once, parts = learned(kind, X, y, **options), learned(kind, X, y, block=7, **options)
    close = judgement(relative=1e-6, absolute=1e-8)
    np.testing.assert_allclose(said_by(once, X), said_by(parts, X), **close)
    save(once, tmp_path / "stream.sgp")
    save(learned(kind, X, y, **options), tmp_path / "again.sgp")
    assert (tmp_path / "again.sgp").read_bytes() == (tmp_path / "stream.sgp").read_bytes()
    loaded = load(tmp_path / "stream.sgp")
    for each in (once, loaded):
        each.learn(X[:9], y[:9])
    np.testing.assert_array_equal(said_by(once, X), said_by(loaded, X))


@pytest.mark.parametrize("kind", ["poisson", "classes"])
def test_tickets_that_are_answered_at_once_are_rows_of_a_stream(kind):
    X, y = made_rows(kind, 50)
    usual, asked = learned(kind, X[:30], y[:30]), learned(kind, X[:30], y[:30])
    usual.learn(X[30:], y[30:])
    for i in range(30, 50):
        asked.learn_ticket(asked.expect(X[i : i + 1]), y[i : i + 1])
    np.testing.assert_allclose(said_by(usual, X), said_by(asked, X), **judgement(relative=1e-7, absolute=1e-9))


def test_counts_are_learned_and_their_forecasts_agree():
    X, y = made_rows("poisson", 300)
    learner = learned("poisson", X[:250], y[:250])
    forecast = learner.predict(X[250:])
    rate = np.exp(0.5 + np.sin(2 * X[250:, 0]) + X[250:, 1])
    assert np.abs(forecast.mean - rate).mean() < 0.25 * rate.mean()
    np.testing.assert_allclose(
        forecast.cumulative(y[250:]) - forecast.below(y[250:]),
        np.exp(forecast.log_density(y[250:])),
        **approximation(1e-5, "quadrature"),
    )
    low, high = forecast.quantiles([0.05, 0.95]).T
    assert (forecast.cumulative(low) >= 0.05 - 1e-6).all()
    assert (forecast.below(high) < 0.95).all()
    draws = learner.sample(X[250:255], 400, np.random.default_rng(0))
    assert (draws == draws.round()).all()
    np.testing.assert_allclose(draws.mean(0), forecast.mean[:5], **judgement(relative=0.3))


def test_outliers_hardly_move_students_t():
    X, y = made_rows("student_t", 200)
    learner = learned("student_t", X, y)
    clean = np.sin(2 * X[:, 0]) + X[:, 1]
    assert np.abs(learner.predict(X).mean - clean).mean() < 0.08


def test_a_class_that_comes_late_was_not_there_before():
    X, y = made_rows("classes", 150)
    X, y = X[np.argsort(y == 2, kind="stable")], y[np.argsort(y == 2, kind="stable")]
    late = int((y < 2).sum())
    learner = StreamLearner(2, StreamOptions(most_points=16), num_classes=2)
    learner.learn(X[:late], y[:late])
    with pytest.raises(OptionError, match="with_classes"):
        learner.learn(X[late:], y[late:])
    ticket, before = learner.expect(X[late : late + 1]), learner.predict(X).probabilities
    learner.with_classes(3)
    after = learner.predict(X).probabilities
    np.testing.assert_allclose(after.sum(1), 1.0)
    assert after[:, 2].mean() < 0.05
    assert np.abs(after[:, :2] - before).max() < 0.2
    learner.learn_ticket(ticket, y[late : late + 1])
    learner.learn(X[late + 1 :], y[late + 1 :])
    assert learner.predict(X[late:]).probabilities[:, 2].mean() > 0.8
    draws = learner.sample(X[:4], 50, np.random.default_rng(0))
    assert draws.shape == (50, 4, 3)
    np.testing.assert_allclose(draws.sum(-1), 1.0)


def test_probabilities_of_all_inputs_do_not_follow_the_last_label():
    """Labels of two places, of which the stream has left one."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(-2.0, 0.3, (150, 1)), rng.normal(2.0, 0.3, (150, 1))]
    learner = StreamLearner(1, num_classes=2)
    learner.learn(X, (X[:, 0] > 0).astype(float))
    probability = learner.predict(np.array([[-2.0], [2.0]])).probabilities[:, 1]
    assert probability[0] < 0.1
    assert probability[1] > 0.9


def test_targets_that_cannot_be_change_nothing():
    X, y = made_rows("poisson", 30)
    learner = learned("poisson", X, y)
    for bad in (-1.0, 0.5):
        with pytest.raises(SupportError):
            learner.learn(X[:2], np.array([1.0, bad]))
    with pytest.raises(OptionError, match="total_count"):
        StreamLearner(2, StreamOptions(likelihood="binomial")).learn(X, y)
    assert (learner.num_seen, learner.clock) == (30, 30)


def test_a_kernel_of_ones_own_is_learned():
    rng = np.random.default_rng(0)
    X = np.arange(90.0)[:, None] / 12.0
    y = np.sin(2 * np.pi * X[:, 0]) + 0.05 * rng.standard_normal(90)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.PeriodicKernel())
    learner = StreamLearner(1, StreamOptions(kernel=kernel, half_life=None, warmup=40))
    learner.learn(X[:80], y[:80])
    assert learner.expert_names == ("function that stays",)
    assert np.abs(learner.predict(X[80:]).mean - np.sin(2 * np.pi * X[80:, 0])).max() < 0.15
    assert isinstance(learner.kernel.base_kernel, gpytorch.kernels.PeriodicKernel)


def test_a_half_life_forgets_by_half():
    X, y = moving_rows(60)
    learner = StreamLearner(3, StreamOptions(half_life=20.0))
    learner.learn(X, y)
    np.testing.assert_allclose(learner.dynamics.keep, 0.5 ** (1 / 20.0))
    assert buffer_of(X, y).num_rows == 60
