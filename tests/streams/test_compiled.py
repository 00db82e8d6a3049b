"""The functions of a row, compiled and in NumPy, against each other and against dense algebra."""

import numpy as np
import pytest
import torch
from tests.streams.streams import PRIOR, called_from_python, moving_rows, prior_belief

from streamgp.streams import compiled, plain
from streamgp.streams.compiling import HAS_NUMBA, announced
from streamgp.streams.state import Belief, Said, empty_said
from streamgp.testing.tolerances import approximation, judgement, rounding, within

MODULES = [pytest.param(compiled, marks=pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")), plain]


def assert_same(first: Belief | Said, second: Belief | Said) -> None:
    for name, a, b in zip(first._fields, first, second, strict=True):
        np.testing.assert_allclose(a, b, **rounding(torch.float64, condition=1e4), err_msg=name)


@called_from_python
def add_and_drop(x, belief, dynamics, h, gains):
    slack = compiled.fill_features(x, belief, dynamics, h)
    compiled.add_point(x, h, slack, 14, belief, dynamics, gains)
    compiled.drop_point(10, belief, dynamics)


def learn(module, rows, belief, *, stop, start=0, most_points=24, exchanges=False, said=None, observing=None):
    """Learn rows as the PRIOR says; returns what the function returns."""
    X, y, noises, times = rows
    said = empty_said(stop - start, belief) if said is None else said
    given = (X, y, np.ones(len(y)), noises, times, start, stop, belief, PRIOR.dynamics(), observing, most_points)
    return module.learn_rows(*given, np.inf, exchanges, False, np.ones(stop - start), said)


@pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")
def test_the_compiled_functions_do_what_numpy_does():
    """Gaps in time, a late row, rows of other noise, new points, a spent budget, and points that are exchanged."""
    n, dynamics = 200, PRIOR.dynamics()
    X, y = moving_rows(n)
    times, noises = np.arange(n), np.random.default_rng(1).uniform(0.5, 2.0, n)
    times[100], times[120:] = 70, times[120:] + 5
    results = []
    for module in (compiled, plain):
        belief = prior_belief(X[:4]).with_room(24)
        said, later, rows = empty_said(n, belief), empty_said(9, belief), (X, y, noises, times)
        first = learn(module, rows, belief, stop=130, said=said)
        second = learn(module, rows, belief, start=130, stop=n, exchanges=True, said=said.rows(130, n))
        module.predict_rows(X[:9], np.arange(9) * 3 + n - 9, belief, dynamics, None, later)
        results.append((first, second, belief, said, later))
    (a1, a2, a, said_a, later_a), (b1, b2, b, said_b, later_b) = results
    assert a.num_points[0] == 24
    assert a1[0] == b1[0] == 130
    assert a1[1] == pytest.approx(b1[1], **within(judgement(relative=1e-9)))
    assert a1[1] > 0.0
    assert a2 == b2
    assert_same(a, b)
    assert_same(said_a, said_b)
    assert_same(later_a, later_b)


@pytest.mark.parametrize("module", MODULES)
def test_a_filter_with_a_point_for_each_row_is_the_exact_space_time_process(module):
    """The expert as learned, whose rows i and j have the covariance k(x, x') ρ^|i-j| and so on, by dense algebra."""
    n, e, dynamics = 25, 0, PRIOR.dynamics()
    X, y = moving_rows(n + 1)
    X = X * np.array([1.0, 6.0, 9.0])  # so far apart that each is a point
    belief, times = prior_belief(X[:1]).with_room(n), np.arange(n + 1)
    learn(module, (X, y, np.ones(n + 1), times), belief, stop=n, most_points=n)
    assert belief.num_points[0] == n
    later = empty_said(1, belief)
    module.predict_rows(X[n:], times[n:] + 3, belief, dynamics, None, later)
    t = np.r_[times[:n], n + 3].astype(float)
    apart = np.abs(t[:, None] - t) / 2.0
    function = dynamics.function[e] * dynamics.kernel(X, X) + dynamics.slope[e] * X @ X.T
    K = dynamics.keep[e] ** apart * function + dynamics.keep_level[e] ** apart * dynamics.level[e]
    gain = np.linalg.solve(K[:n, :n] + np.eye(n), K[:n, n])
    variance = K[n, n] + 1.0 - K[:n, n] @ gain
    said_variance = later.scale[0, e, 0] * belief.shape[e, 0] / belief.rate[e, 0]
    jitter = approximation(1e-6, "jitter")
    np.testing.assert_allclose(later.location[0, e], gain @ y[:n], **jitter)
    np.testing.assert_allclose(said_variance, variance, **jitter)


@pytest.mark.parametrize("module", MODULES)
def test_dropping_the_point_that_came_last_undoes_adding_it(module):
    X, y = moving_rows(30)
    dynamics, belief = PRIOR.dynamics(), prior_belief(X[:10]).with_room(12)
    learn(module, (X, y, np.ones(30), np.arange(30)), belief, stop=30, most_points=10)
    before, after = empty_said(5, belief), empty_said(5, belief)
    module.predict_rows(X[:5], np.full(5, 30), belief, dynamics, None, before)
    h, gains = np.empty(1 + 3 + 12), np.zeros((len(belief.mean), 16))
    x = np.array([4.0, 1.0, 1.0])
    if module is compiled:
        add_and_drop(x, belief, dynamics, h, gains)
    else:
        features, slack = plain._features(x, belief, dynamics)
        plain._add_point(x, features, slack, gains[:, :14], belief, dynamics)
        plain._drop_point(10, belief)
    module.predict_rows(X[:5], np.full(5, 30), belief, dynamics, None, after)
    assert_same(before, after)


@pytest.mark.parametrize("module", MODULES)
def test_a_row_of_little_weight_changes_little(module):
    X, y = moving_rows(20)
    beliefs = []
    for noise in (1.0, 1e12):
        belief, noises = prior_belief(X[:10]), np.ones(20)
        noises[19] = noise
        rows = (X, y + (np.arange(20) == 19), noises, np.arange(20))
        learn(module, rows, belief, stop=20, most_points=10)
        beliefs.append(belief)
    without = prior_belief(X[:10])
    learn(module, (X, y, np.ones(20), np.arange(20)), without, stop=19, most_points=10)
    np.testing.assert_allclose(beliefs[1].mean[1, 4:], without.mean[1, 4:], **judgement(absolute=1e-6))
    assert np.abs(beliefs[0].mean[1] - beliefs[1].mean[1]).max() > 1e-2


@pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")
def test_a_line_is_written_before_something_is_compiled_and_only_then(capsys):
    from numba import njit

    double, unfit = njit(lambda x: 2 * x), njit(lambda x: x.unknown)
    with announced("Compiling."), pytest.raises(Exception, match="unknown"):
        unfit(1.0)
    assert capsys.readouterr().err == "Compiling.\n"
    with announced("Compiling."):
        assert (double(1.0), double(1)) == (2.0, 2)
    assert capsys.readouterr().err == "Compiling.\n"
    with announced("Compiling."):
        assert double(1.0) == 2.0
    assert capsys.readouterr().err == ""
