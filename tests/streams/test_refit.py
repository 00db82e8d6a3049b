"""Refits: gradients, points, and what is carried over them."""

from dataclasses import replace

import numpy as np
from tests.streams.streams import PRIOR, buffer_of, moving_rows, plain_fit, prior_belief

from streamgp.streams.buffer import Units
from streamgp.streams.marginal import Rows, fit_prior, negative_log_marginal
from streamgp.streams.points import choose_points, slack_of, whitening_of
from streamgp.streams.prior import Prior
from streamgp.streams.refit import Fitted, Snapshot, carry, replay
from streamgp.streams.rows import predict_rows
from streamgp.streams.state import empty_said
from streamgp.testing.tolerances import approximation, judgement


def some_rows(n=30):
    X, y = moving_rows(n)
    return Rows(X, y[None], np.arange(n) * 1.5, np.random.default_rng(2).uniform(0.5, 2.0, (1, n)))


def test_the_gradient_of_the_marginal_likelihood_is_that_of_finite_differences():
    rows = some_rows()
    squares = np.stack([(rows.inputs[:, j : j + 1] - rows.inputs[:, j]) ** 2 for j in range(3)])
    theta, step = PRIOR.log, 1e-5
    _, gradient = negative_log_marginal(theta, rows, squares, PRIOR)
    for j, unit in enumerate(np.eye(len(theta))):
        up, down = (negative_log_marginal(theta + sign * step * unit, rows, squares, PRIOR)[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient[j], (up - down) / (2 * step), **judgement(absolute=1e-5, relative=1e-5))


def test_hyperparameters_of_a_fast_level_are_found():
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.standard_normal(200))
    rows = Rows(rng.standard_normal((200, 2)), ((y - y.mean()) / y.std())[None], np.arange(200.0), np.ones((1, 200)))
    prior, _ = fit_prior(rows, Prior.default(2))
    assert prior.level_variance > 10 * prior.noise_variance
    assert prior.function_variance < prior.level_variance


def test_points_leave_no_row_more_open_than_the_tolerance():
    X, _ = moving_rows(80)
    kernel = PRIOR.stream_kernel
    points = X[choose_points(X, kernel, most=80, tolerance=1e-2)]
    assert len(points) < 80
    assert slack_of(X, points, whitening_of(points, kernel), kernel).max() < 1.1e-2


def predictions(belief, prior, X):
    said = empty_said(len(X), belief)
    predict_rows(X, np.full(len(X), 60), belief, prior.dynamics(), None, said)
    return said


def test_carrying_to_the_same_points_changes_nothing():
    X, y = moving_rows(60)
    belief = replay(buffer_of(X, y), plain_fit(), X[:20])
    new = prior_belief(X[:20])
    carry(Snapshot(plain_fit(), belief), new, plain_fit())
    new.clock[:] = belief.clock
    before, after = (predictions(each, PRIOR, X[40:]) for each in (belief, new))
    # The last value's level has walked away from its prior, of which a site knows nothing.
    np.testing.assert_allclose(after.location[:, :2], before.location[:, :2], **approximation(1e-4, "jitter"))
    np.testing.assert_allclose(after.scale[:, :2], before.scale[:, :2], **approximation(1e-4, "jitter"))


def test_carrying_to_other_units_keeps_predictions_in_the_users_units():
    """With a flat level and no slopes, as the prior of these depends on the units."""
    X, y = moving_rows(60)
    flat = replace(PRIOR, slope_variance=1e-9, level_variance=1e4, level_life=np.inf)
    belief = replay(buffer_of(X, y), plain_fit(flat), X[:20])
    units = replace(
        Units.plain(3, 0.3, 1.7), input_mean=np.array([1.0, -2.0, 0.5]), input_scale=np.array([2.0, 0.5, 3.0])
    )
    other = Fitted(units, flat.rescaled(plain_fit().units, units))
    new = prior_belief(units.inputs(X[:20]), other.prior)
    carry(Snapshot(plain_fit(flat), belief), new, other)
    new.clock[:] = belief.clock
    before, after = predictions(belief, flat, X[40:]), predictions(new, other.prior, units.inputs(X[40:]))
    jitter = approximation(1e-3, "jitter")
    np.testing.assert_allclose(0.3 + 1.7 * after.location[:, :2], before.location[:, :2], **jitter)
    np.testing.assert_allclose(1.7**2 * after.scale[:, :2], before.scale[:, :2], **jitter)
