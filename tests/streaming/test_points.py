from dataclasses import replace

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch.testing import assert_close

import streamgp as sg
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.bank import Bank
from streamgp.streaming.carrying import carry
from streamgp.streaming.experts import Expert, Experts
from streamgp.streaming.points import Usage, follow
from streamgp.streaming.settings import Room
from streamgp.testing.tolerances import approximation, rounding

NOISE = np.full((1, 1, 1), 0.01)


def _bank(rng, m=8, n=30, lengthscale=0.7):
    kernel = ScaleKernel(MaternKernel(2.5)).double()
    kernel.base_kernel.lengthscale = lengthscale
    X = 3.0 * torch.rand(n, 1, generator=rng, dtype=torch.float64).numpy()
    experts = Experts((Expert(), Expert(50.0, level_gain=0.3, slope=1.0)))
    Z = torch.linspace(0.0, 3.0, m, dtype=torch.float64).unsqueeze(-1)
    bank = Bank.from_prior(experts, kernel, Z, constant=torch.zeros(1, dtype=torch.float64), level_noise=0.01)
    for i in range(n):
        bank = bank.learn(bank.see(X[i : i + 1]), np.sin(X[i : i + 1]), NOISE)
    return bank, X


def test_a_point_that_joins_changes_no_prediction(rng):
    bank, _ = _bank(rng)
    joined = bank.joined(np.array([[3.6]]))
    W = np.linspace(-1.0, 5.0, 20)[:, None]
    assert joined.num_inducing == bank.num_inducing + 1
    assert_close(joined.see(W).mean, bank.see(W).mean, **rounding(torch.float64, condition=1e4))
    assert_close(joined.see(W).variance, bank.see(W).variance, **rounding(torch.float64, condition=1e4))


def test_an_exchange_equals_carrying_the_belief_to_the_new_points(rng, monkeypatch):
    """But for what they leave open, of which refits see more: an exchange is for one point."""
    monkeypatch.setattr("streamgp.streaming.carrying._OPEN_SHARE", 0.0)
    bank, X = _bank(rng)
    x = torch.tensor([[4.0]], dtype=torch.float64)
    exchanged = bank.exchanged(x.numpy(), 2)
    stays = torch.arange(8) != 2
    there = Bank.from_prior(
        bank.experts, bank.process.prior.kernel, torch.cat([bank.inducing_points[stays], x]),
        constant=bank.constant, level_noise=bank.level_noise,
    )  # fmt: skip
    carried = carry(bank, there)
    assert_close(exchanged.see(X).mean, carried.see(X).mean, **approximation(1e-6, "jitter"))
    assert_close(exchanged.see(X).variance, carried.see(X).variance, **approximation(1e-6, "jitter"))


def test_an_input_that_the_points_explain_does_not_become_one(rng):
    bank, X = _bank(rng, m=20)
    inside = X[:1]
    after, _, _, num_moves = follow(bank, Usage.none(20), inside, bank.see(inside), Room(20, 20, 20))
    assert num_moves == 0
    assert torch.equal(after.inducing_points, bank.inducing_points)


@pytest.mark.parametrize(("noise", "num_points"), [(1e-3, 21), (100.0, 20)])
def test_a_point_joins_for_a_row_of_which_more_is_left_open_than_there_is_noise(rng, noise, num_points):
    bank, _ = _bank(rng, m=20)
    bank = replace(bank, level_noise=noise * bank.experts.largest_amplitude)
    x = np.full((1, 1), 100.0)
    after, usage, seen, num_moves = follow(bank, Usage.none(20), x, bank.see(x), Room(20, 20, 21))
    assert (after.num_inducing, len(usage.last_rows)) == (num_points, num_points)
    assert num_moves == num_points - 20
    assert (float(seen.slack[0]) < 1e-6) == (num_points == 21)


@pytest.mark.parametrize("num_exchanged", [0, 3])
def test_what_a_point_is_worth_is_what_all_rows_would_lose_without_it(rng, num_exchanged):
    bank, X = _bank(rng, n=0)
    for i in range(num_exchanged):
        bank = bank.exchanged(np.array([[0.2 + i]]), 2)
    X = 3.0 * torch.rand(30, 1, generator=rng, dtype=torch.float64).numpy()
    for x in X:
        bank = bank.learn(bank.see(x[None]), np.ones((1, 1)), NOISE)
    Z, function = bank.inducing_points, bank.process.prior.covariance
    precision = torch.linalg.inv(function(Z, Z) + bank.process.jitter * torch.eye(8, dtype=Z.dtype))
    weights = function(torch.from_numpy(X), Z) @ precision
    worths = weights.square().sum(0) / 0.01 / precision.diagonal()
    assert_close(torch.from_numpy(bank.worths(0)), worths, **rounding(torch.float64, condition=1e6))
    assert (bank.worths(1) < bank.worths(0)).all()  # it forgets


def test_of_points_not_used_one_that_rows_need_little_goes_and_a_quarter_stays(rng):
    bank, _ = _bank(rng)
    usage = Usage(np.array([50.0, 9.0, 8.0, 7.0, 50.0, 50.0, 50.0, 50.0]), 50)
    x = np.array([[4.5]])
    worths, left = bank.worths(0)[1:4], bank.features.leave_one_out[1:4]
    cheap = worths < 4.0 * float(bank.see(x).slack[0]) / 0.01
    assert cheap.any()
    gone = 1 + int(np.where(cheap, left, np.inf).argmin())
    after, later, _, num_moves = follow(bank, usage, x, bank.see(x), Room(8, 8, 8))
    assert num_moves == 1
    assert bank.inducing_points[gone] not in after.inducing_points
    assert follow(after, later, x + 1.0, after.see(x + 1.0), Room(8, 8, 8))[3] == 0
    assert after.inducing_points[-1] == 4.5
    assert later.last_rows[-1] == later.num_rows == 51


def test_for_a_row_that_is_not_represented_the_point_not_used_for_longest_goes_where_rows_need_all(rng):
    bank, _ = _bank(rng, n=300)
    usage = Usage(np.array([50.0, 9.0, 8.0, 7.0, 50.0, 50.0, 50.0, 50.0]), 50)
    x = np.array([[4.5]])
    assert (bank.worths(0)[1:4] > 4.0 * float(bank.see(x).slack[0]) / 0.01).all()
    after, *_ = follow(bank, usage, x, bank.see(x), Room(8, 8, 8))
    assert bank.inducing_points[3] not in after.inducing_points
    assert after.inducing_points[-1] == 4.5


def test_a_row_that_points_know_but_for_less_than_the_noise_takes_the_place_of_none_that_is_worth_more(rng):
    bank, _ = _bank(rng)
    bank = replace(bank, level_noise=2.0)  # more than points can leave of it
    usage = Usage(np.zeros(8), 50)
    x = np.array([[4.5]])
    assert (bank.worths(0) > 4.0).all()
    assert follow(bank, usage, x, bank.see(x), Room(8, 8, 8))[3] == 0


def test_points_are_unused_after_as_many_rows_as_there_are_points():
    used = np.array([[True], [False]])
    usage = Usage.none(2).add(used, 0.1).add(~used, 0.1).add(used, 0.1)
    assert usage.last_rows.tolist() == [3.0, 2.0]
    assert usage.is_unused.tolist() == [False, False]
    assert usage.add(used, 0.1).add(used, 0.1).is_unused.tolist() == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize(("num_rows", "size", "num_inducing"), [(500, 2, 30), (900, 1, 30), (900, 1, 15)])
def test_rows_just_learned_are_represented_after_a_stream_has_moved_on(num_rows, size, num_inducing):
    rng = torch.Generator().manual_seed(0)
    X = torch.arange(num_rows, dtype=torch.float64).unsqueeze(-1) / 10.0
    y = torch.sin(X.squeeze(-1)) + 0.1 * torch.randn(num_rows, generator=rng, dtype=torch.float64)
    learner = StreamLearner(StreamSettings(num_inducing=num_inducing))
    for i in range(0, num_rows, size):
        learner, _ = learner.learn(X[i : i + size], y[i : i + size])
    error = learner.predict(X[-50:]).mean - y[-50:]
    assert float(error.square().mean().sqrt()) < 0.15
    assert float(learner.model.inducing_points.max()) > 0.9 * float(X[-1])


@pytest.mark.slow
def test_old_regions_are_kept_while_there_are_points_enough_and_nothing_is_forgotten():
    rng = torch.Generator().manual_seed(0)
    X = torch.linspace(0.0, 12.0, 600, dtype=torch.float64).unsqueeze(-1)
    y = torch.sin(X.squeeze(-1)) + 0.1 * torch.randn(600, generator=rng, dtype=torch.float64)
    learner = StreamLearner(StreamSettings(num_inducing=30, half_life=None, warmup=100))
    for start in range(0, 600, 20):
        learner, _ = learner.learn(X[start : start + 20], y[start : start + 20])
    error = learner.predict(X).mean - torch.sin(X.squeeze(-1))
    assert float(error.square().mean().sqrt()) < 0.1


@pytest.mark.parametrize(("typical", "expected"), [(0.8, 0), (0.2, 1)])
def test_a_point_moves_for_a_row_that_is_farther_away_than_others_only(rng, typical, expected):
    bank, _ = _bank(rng, lengthscale=0.05)
    x = np.array([[3.04]])
    seen = bank.see(x)
    assert 0.4 < float(seen.slack[0] / seen.prior_variance[0]) < 0.8
    usage = Usage(np.zeros(8), 50, typical)
    _, later, _, num_moves = follow(bank, usage, x, seen, Room(8, 8, 8))
    assert num_moves == expected
    assert min(typical, 0.5) < later.typical_slack < max(typical, 0.5)


@pytest.mark.parametrize(("placed", "expected"), [(0.2, 0), (0.1, 1)])
def test_a_point_moves_for_it_only_if_the_stream_has_moved_since_points_were_placed(rng, placed, expected):
    bank, _ = _bank(rng, lengthscale=0.05)
    x = np.array([[3.04]])
    usage = Usage(np.zeros(8), 50, 0.25, placed)
    _, later, _, num_moves = follow(bank, usage, x, bank.see(x), Room(8, 8, 8))
    assert num_moves == expected == int(later.has_moved)


def test_what_points_leave_of_rows_is_an_average_of_as_many_as_there_are_points():
    usage, used = Usage.none(4), np.ones((4, 1), dtype=bool)
    for slack in (0.1, 0.3):
        usage = usage.add(used, slack)
    assert usage.typical_slack == pytest.approx(0.2)
    usage = usage.placed()
    for _ in range(40):
        usage = usage.add(used, 1.0)
    assert 0.99 < usage.typical_slack < 1.0
    assert usage.placed_slack == pytest.approx(0.2)
    assert usage.has_moved


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* far outside the range of the warm-up")
def test_what_was_left_behind_is_still_known_where_nothing_is_forgotten():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 4)) * [30.0, 3.0, 3.0, 3.0]
    X = X[X[:, 0].argsort()]
    f = np.sin(X[:, 0] / 4) + np.sin(X[:, 1]) + 0.3 * X[:, 2]
    y = f + 0.2 * rng.standard_normal(len(X))
    model = sg.StreamingGPRegressor(num_inducing=60, half_life=None)
    for start in range(0, len(X), 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    errors = np.abs(model.predict(X) - f)
    # The standard deviation of the function is 0.8. With points that all followed the stream the first was 0.1.
    assert errors[:1000].mean() < 0.05
    assert errors[-300:].mean() < 0.08
