import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.outliers import Outliers
from streamgp.testing.tolerances import approximation, rounding, sampling

ONE = np.ones(1)


def _densities(share, *errors, variance=25.0):
    """Log densities of errors of one expert with unit variance, jointly with being no outliers and with being some."""
    squares = np.square(np.array(errors))[None, None]
    wide = 1.0 + variance
    plain = math.log1p(-share) - 0.5 * (squares + math.log(2.0 * math.pi))
    return plain, math.log(share) - 0.5 * (squares / wide + math.log(2.0 * math.pi * wide))


def test_probabilities_are_those_of_bayes():
    outliers = Outliers.none(1, 1).found(0.1, 25.0)
    plausible, _ = outliers.watched(*_densities(0.1, 0.5), ONE)
    plain, wide = (float(np.exp(each).item()) for each in _densities(0.1, 0.5))
    np.testing.assert_allclose(plausible.by_expert.item(), plain / (plain + wide), **rounding(torch.float64))
    np.testing.assert_allclose(plausible.overall, plausible.by_expert[0, 0], **rounding(torch.float64))


def test_a_row_that_is_far_off_is_an_outlier_and_many_in_a_row_are_a_change():
    outliers = Outliers.none(1, 1).found(0.03, 400.0)
    plausible, after = outliers.watched(*_densities(0.03, 0.2, 30.0, 0.1, *[30.0] * 6, variance=400.0), ONE)
    first = plausible.by_expert[0, 0]
    assert first[0] > 0.9
    assert first[1] < 1e-6
    assert first[2] > 0.9
    assert first[3] < 1e-6
    assert (first[7:] == 1.0).all()
    # It takes some rows that are as expected before the next one that is far off is an outlier again.
    again, _ = after.watched(*_densities(after.share, *[0.0] * 20, 30.0, variance=400.0), ONE)
    assert again.by_expert[0, 0, -1] < 1e-6


def test_the_share_of_outliers_follows_the_rows_and_never_vanishes():
    outliers = Outliers.none(1, 1).found(0.2, 400.0)
    for _ in range(60):
        _, outliers = outliers.watched(*_densities(outliers.share, *[0.3] * 10, variance=400.0), ONE)
    assert outliers.share == Outliers.none(1, 1).found(0.0, 0.0).share > 0.0
    for _ in range(100):
        rows = [30.0, *[0.3] * 9]
        _, outliers = outliers.watched(*_densities(outliers.share, *rows, variance=400.0), ONE)
    assert 0.05 < outliers.share < 0.2


def test_outliers_are_never_the_rule():
    outliers = Outliers.none(1, 1).found(0.1, 400.0)
    for _ in range(100):
        _, outliers = outliers.watched(*_densities(outliers.share, 30.0, 0.0, 30.0, variance=400.0), ONE)
    assert 0.2 < outliers.share < 0.5


def test_experts_that_are_not_believed_do_not_tell_the_share():
    outliers = Outliers.none(2, 1).found(0.05, 400.0)
    plain, wide = _densities(0.05, *[30.0, 0.0, 0.0, 0.0] * 20, variance=400.0)
    wrong = np.zeros_like(plain)  # finds all of them as expected
    both = np.concatenate([plain, wrong]), np.concatenate([wide, wide])
    _, by_first = outliers.watched(*both, np.array([1.0, 0.0]))
    _, by_second = outliers.watched(*both, np.array([0.0, 1.0]))
    assert by_first.share > 0.1
    assert by_second.share < 0.05


def _stream(num_rows=400, *, seed=0):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-2.0, 2.0, (num_rows, 3))
    f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    return torch.from_numpy(X), torch.from_numpy(f), torch.from_numpy(f + 0.1 * draw.normal(size=num_rows)), draw


def _errors(X, f, y, *, start):
    """Mean distance of predictions from the function, each before its row was learned."""
    learner, errors = StreamLearner(StreamSettings(num_inducing=40)), []
    for index in range(len(X)):
        if index >= start:
            errors.append(abs(float(learner.predict(X[index : index + 1]).mean - f[index])))
        learner, _ = learner.learn(X[index : index + 1], y[index : index + 1])
    return sum(errors) / len(errors)


@pytest.mark.slow
def test_a_stream_is_learned_as_well_with_outliers_as_without():
    X, f, y, draw = _stream()
    far = torch.from_numpy(np.where(draw.random(len(X)) < 0.05, draw.choice([-10.0, 10.0], len(X)), 0.0))
    clean = _errors(X, f, y, start=100)
    assert _errors(X, f, y + far, start=100) < 1.5 * clean


@pytest.mark.slow
def test_one_row_that_is_far_off_after_the_warmup_spoils_nothing():
    X, f, y, _ = _stream(300)
    clean = _errors(X, f, y, start=222)
    y[220] += 30.0
    assert _errors(X, f, y, start=222) < 1.5 * clean


@pytest.mark.slow
def test_a_level_that_jumps_is_followed():
    X, f, y, _ = _stream(300)
    y[230:] += 10.0
    f[230:] += 10.0
    assert _errors(X, f, y, start=240) < 1.0


@pytest.mark.slow
def test_predictions_expect_outliers_in_all_that_they_say():
    X, _, y, draw = _stream(200)
    y = y + torch.from_numpy(np.where(draw.random(200) < 0.1, 10.0 * draw.normal(size=200), 0.0))
    learner, _ = StreamLearner(StreamSettings(num_inducing=30, warmup=200)).learn(X, y)
    assert 0.02 < learner.model.mixture.outliers.share < 0.2
    prediction = learner.predict(X[:1])
    values = torch.linspace(-200.0, 200.0, 200_001, dtype=torch.float64)
    width = float(values[1] - values[0])
    many = learner.predict(X[:1].expand(len(values), -1))
    density = many.log_density(values).exp()
    mean = width * (values * density).sum()
    trapezoid = approximation(width, "quadrature")
    assert_close(width * density.sum(), torch.ones((), dtype=torch.float64), **trapezoid)
    assert_close(mean, prediction.mean[0], **trapezoid)
    below = width * density.cumsum(0)
    level = 0.97
    found = values[int((below < level).sum())]
    assert_close(prediction.quantiles([level])[0, 0], found, **approximation(3.0 * width, "quadrature"))
    variance = width * ((values - mean).square() * density).sum()
    outliers, mixture = learner.model.mixture.outliers, learner.model.mixture
    # But for those that would be expected had none been found.
    expected = 0.002 * outliers.variance * float(learner.model.units.target_scale) ** 2
    spread = mixture.degrees / (mixture.degrees - 2.0)
    assert_close(prediction.variance[0], variance - expected * spread, **trapezoid)
    draws = learner.model.sample_latent(X[:1].numpy(), 20_000, torch.Generator().manual_seed(0))
    observed = draws[2].observe(draws[0], draws[1], torch.Generator().manual_seed(1))
    share = (observed <= found).double().mean()
    error = math.sqrt(level * (1.0 - level) / len(observed))
    assert_close(share, torch.tensor(level, dtype=torch.float64), **sampling(error))


@pytest.mark.slow
def test_deviations_are_those_of_the_noise_where_no_outliers_were_found():
    draw = np.random.default_rng(0)
    X = torch.from_numpy(draw.uniform(size=(400, 1)))
    y = torch.sin(6.0 * X[:, 0]) + 0.02 * torch.from_numpy(draw.normal(size=400))
    learner, _ = StreamLearner(StreamSettings(num_inducing=20)).learn(X, y)
    assert 0.015 < float(learner.predict(X[:100]).variance.sqrt().median()) < 0.04
