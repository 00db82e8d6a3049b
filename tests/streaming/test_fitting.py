import pytest
import torch

from streamgp.likelihoods import Gaussian, Poisson
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.fitting import fit_latest
from streamgp.streaming.rows import Rows
from streamgp.streaming.settings import Room


def _rows(rng, num_rows=60):
    X = torch.randn(num_rows, 2, generator=rng, dtype=torch.float64)
    y = torch.sin(X[:, 0]) + 0.1 * torch.randn(num_rows, generator=rng, dtype=torch.float64)
    return Rows(X.numpy(), y.unsqueeze(0).numpy())


def test_only_the_latest_rows_count(rng):
    rows = _rows(rng)
    rows.targets[:, :30] += 100.0
    found = fit_latest(rows, StreamSettings(num_inducing=8), None, 30, None, Room(8, 8, 8), is_searching=True)
    assert abs(float(found.constant)) < 1.0
    assert found.noise_variance < 0.1


def test_without_a_search_hyperparameters_are_those_of_before(rng):
    rows, settings = _rows(rng), StreamSettings(num_inducing=8)
    before = fit_latest(rows, settings, None, 60, None, Room(8, 8, 8), is_searching=True)
    again = fit_latest(rows, settings, before.hyperparameters, 60, None, Room(8, 8, 8), is_searching=False)
    assert again.hyperparameters.kernel is before.hyperparameters.kernel
    assert again.outliers is None


def test_a_likelihood_of_the_user_is_left_alone(rng):
    settings = StreamSettings(Gaussian(0.3, is_learned=False), num_inducing=8)
    found = fit_latest(_rows(rng), settings, None, 60, None, Room(8, 8, 8), is_searching=True)
    assert found.noise_variance == 0.3
    assert found.outliers is None


@pytest.mark.slow
def test_the_noise_of_counts_is_the_inverse_of_their_rate_up_to_a_tenth(rng):
    X = torch.randn(40, 1, generator=rng, dtype=torch.float64)
    settings = StreamSettings(Poisson())
    for rate, least, most in ((100.0, 0.0, 0.05), (0.05, 0.1, 0.1)):
        counts = torch.poisson(torch.full((1, 40), rate, dtype=torch.float64), generator=rng)
        rows = Rows(X.numpy(), counts.numpy())
        found = fit_latest(rows, settings, None, 40, None, Room(5, 5, 5), is_searching=True)
        assert least <= found.level_noise(rows) <= most


@pytest.mark.slow
def test_levels_of_rare_counts_stay_where_counts_are():
    draw = torch.Generator().manual_seed(2)
    X = torch.rand(90, 3, generator=draw, dtype=torch.float64)
    y = torch.poisson((X[:, 0] - 3.0).exp(), generator=draw)
    learner, largest = StreamLearner(StreamSettings("poisson", num_inducing=10)), 0.0
    for index in range(90):
        if index:
            largest = max(largest, float(learner.predict(X[index : index + 1]).mean))
        learner, _ = learner.learn(X[index : index + 1], y[index : index + 1])
    assert largest < 3.0
