import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from tests.support.reference import exact_gp
from torch.testing import assert_close

from streamgp.errors import OptionError, ShapeError, SupportError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Gaussian
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.carrying import carry
from streamgp.streaming.model import StreamModel
from streamgp.testing.tolerances import approximation, regression_condition, rounding, sampling, tolerance


def _wave(rng, n, *, shift=0.0):
    X = torch.rand(n, 1, generator=rng, dtype=torch.float64) * 10.0
    y = torch.sin(X.squeeze(-1) + shift) + 0.1 * torch.randn(n, generator=rng, dtype=torch.float64)
    return X, y


def _frozen_kernel():
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.4, 1.3
    return kernel.requires_grad_(False)


def _stream(learner, X, y, block):
    infos = []
    for start in range(0, len(X), block):
        learner, info = learner.learn(X[start : start + block], y[start : start + block])
        infos.append(info)
    return learner, infos


@pytest.mark.parametrize("block", [1, 7, 60])
def test_a_stream_with_room_for_all_rows_equals_the_exact_gp(rng, block):
    X, y = _wave(rng, 60)
    likelihood = Gaussian(0.01, is_learned=False)
    settings = StreamSettings(
        likelihood, kernel=_frozen_kernel(), num_inducing=60, warmup=20, refit="never", buffer_size=15, half_life=None
    )
    learner, _ = _stream(StreamLearner(settings), X, y, block)
    model, W = learner.model, torch.linspace(0.0, 10.0, 9, dtype=torch.float64).unsqueeze(-1)
    exact = exact_gp(
        model.bank.process.prior.kernel,
        ZeroMean(),
        torch.from_numpy(model.units.inputs(X.numpy())),
        y - model.bank.constant,
        0.01 * torch.eye(60, dtype=torch.float64),
        torch.from_numpy(model.units.inputs(W.numpy())),
    )
    prediction = learner.predict(W)
    # Room for all points is not a point for each: copies, as near as rounding, are left out.
    assert_close(prediction.mean - model.bank.constant, exact.mean, **approximation(1e-4, "model"))
    assert_close(prediction.variance, exact.covariance.diagonal() + 0.01, **approximation(1e-3, "model", scale=0.01))


def test_anchor_and_buffer_together_hold_the_belief(rng):
    X, y = _wave(rng, 80)
    settings = StreamSettings(
        Gaussian(0.04, is_learned=False), kernel=_frozen_kernel(), num_inducing=80, warmup=20, refit="never",
        buffer_size=20,
    )  # fmt: skip
    learner, _ = _stream(StreamLearner(settings), X, y, 5)
    assert learner.anchor is not None
    assert learner.buffer.num_rows < 20
    bank = carry(learner.anchor, learner.model.bank)
    noise = np.full((1, 1, 5), 0.04)
    rows = learner.model.units.rows(learner.buffer)
    for start in range(0, rows.num_rows, 5):
        part = rows.part(start, start + 5)
        bank = bank.learn(bank.see(part.inputs), part.targets, noise)
    W = learner.model.units.inputs(X[::7].numpy())
    assert_close(bank.see(W).mean, learner.model.bank.see(W).mean, **approximation(1e-5, "jitter"))
    assert_close(bank.see(W).variance, learner.model.bank.see(W).variance, **approximation(1e-5, "jitter"))


@pytest.mark.parametrize(("warmup", "counts"), [(30, [20, 30]), (24, [24])])
def test_everything_is_learned_anew_at_doubling_counts_until_the_warm_up_ends(rng, warmup, counts):
    X, y = _wave(rng, warmup + 2)
    learner = StreamLearner(StreamSettings(num_inducing=10, warmup=warmup, refit="never"))
    learned_at, model = [], None
    for n in range(warmup + 2):
        learner, _ = learner.learn(X[n : n + 1], y[n : n + 1])
        if model is None or learner.model.units is not model.units:
            learned_at.append(n + 1)
        model = learner.model
    # A count that the end of the warm-up soon follows is left out.
    assert learned_at == [*range(1, 11), *counts]
    assert learner.next_refit is None


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "expected"), [("doubling", [40, 80]), ("auto", [40, 80]), (25, [45, 70, 95])])
def test_refits_follow_the_policy(rng, policy, expected):
    X, y = _wave(rng, 100)
    settings = StreamSettings(num_inducing=6, warmup=20, refit=policy, buffer_size=30)
    learner, infos = _stream(StreamLearner(settings), X, y, 23)
    assert [report.num_seen for info in infos for report in info.refits] == expected
    assert [report.num_seen for report in learner.refits] == expected


@pytest.mark.slow
def test_the_state_does_not_grow(rng):
    settings = StreamSettings(num_inducing=12, warmup=50, buffer_size=64, half_life=None)
    sizes, learner = [], StreamLearner(settings)
    for _ in range(3):
        X, y = _wave(rng, 200)
        learner, _ = learner.learn(X, y)
        banks = [learner.model.bank, learner.anchor, learner.halfway.bank]
        assert all(bank.num_inducing <= 12 for bank in banks)
        # A view of a larger array keeps all of it in memory: there is some room for later rows, and nothing else.
        parts = (learner.buffer.inputs, learner.buffer.targets)
        assert all(part.base.nbytes <= 2 * part.nbytes + 16 * part.itemsize for part in parts if part.base is not None)
        sizes.append(learner.buffer.num_rows)
    assert max(sizes) <= 64 + 256


@pytest.mark.slow
def test_learning_rows_singly_is_as_good_as_in_blocks(rng):
    X, y = _wave(rng, 180)
    W = torch.linspace(0.5, 9.5, 50, dtype=torch.float64).unsqueeze(-1)
    for block in (1, 64):
        learner, _ = _stream(StreamLearner(StreamSettings(num_inducing=16, warmup=60)), X, y, block)
        assert float((learner.predict(W).mean - torch.sin(W.squeeze(-1))).square().mean().sqrt()) < 0.07


@pytest.mark.parametrize("lengthscale", [0.02, 2.0])
def test_automatic_size_grows_where_points_leave_more_open_than_there_is_noise(rng, lengthscale):
    X, y = _wave(rng, 600)
    kernel = _frozen_kernel()
    kernel.base_kernel.lengthscale = lengthscale
    settings = StreamSettings(kernel=kernel, max_inducing=130, warmup=100, refit="never", half_life=None)
    learner, _ = _stream(StreamLearner(settings), X, y, 50)
    num_points = learner.model.bank.num_inducing
    assert num_points == 130 if lengthscale < 1.0 else num_points <= 100


@pytest.mark.parametrize(("lengthscale", "grows"), [(0.03, True), (2.0, False)])
def test_automatic_size_grows_with_the_rows_of_a_stream_that_needs_it(rng, lengthscale, grows):
    X, y = _wave(rng, 2600)
    y += 3.0 * torch.randn(2600, generator=rng, dtype=torch.float64)
    kernel = _frozen_kernel()
    kernel.base_kernel.lengthscale, kernel.outputscale = lengthscale, 0.6  # less than the noise
    settings = StreamSettings(kernel=kernel, max_inducing=125, warmup=200, refit="never", half_life=None)
    learner, _ = _stream(StreamLearner(settings), X[:1900], y[:1900], 100)
    assert learner.model.bank.num_inducing <= 100
    learner, _ = _stream(learner, X[1900:], y[1900:], 100)
    assert (100 < learner.model.bank.num_inducing <= 125) if grows else learner.model.bank.num_inducing <= 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_refits_that_suit_the_latest_rows_keep_what_was_learned_elsewhere(seed):
    draw = torch.Generator().manual_seed(seed)
    n, num_late = 1000, 200
    x = torch.linspace(0.0, 10.0, n, dtype=torch.float64)
    day, effect = (torch.rand(2, n // 5, generator=draw, dtype=torch.float64)).repeat_interleave(5, -1)
    y = 3.0 * torch.sin(x) + 0.1 * torch.randn(n, generator=draw, dtype=torch.float64)
    y[-num_late:] += 6.0 * (effect[-num_late:] - 0.5)  # of a day, whatever comes before and after it
    X = torch.stack([x, day], -1)
    settings = StreamSettings(num_inducing=40, warmup=100, buffer_size=300, refit=100)
    learner, _ = _stream(StreamLearner(settings), X, y, 20)
    assert any(report.is_kept for report in learner.refits[-2:])
    error = learner.predict(X[:600]).mean - 3.0 * torch.sin(x[:600])
    assert float(error.square().mean().sqrt()) < 0.5


@pytest.mark.slow
def test_a_half_life_follows_a_changed_function(rng):
    before, after = _wave(rng, 300), _wave(rng, 300, shift=3.1416)
    W = torch.linspace(0.5, 9.5, 50, dtype=torch.float64).unsqueeze(-1)
    errors = {}
    for half_life in (None, 30.0):
        settings = StreamSettings(num_inducing=16, warmup=100, refit="never", half_life=half_life)
        learner, _ = _stream(StreamLearner(settings), *before, 10)
        learner, _ = _stream(learner, *after, 10)
        errors[half_life] = float((learner.predict(W).mean + torch.sin(W.squeeze(-1))).square().mean().sqrt())
    assert errors[30.0] < 0.2 * errors[None]


def test_a_reset_keeps_hyperparameters_and_forgets_the_rows(rng):
    X, y = _wave(rng, 60)
    learner, _ = _stream(StreamLearner(StreamSettings(num_inducing=10, warmup=30, refit="never")), X, y, 10)
    cleared = learner.reset()
    bank = cleared.model.bank
    expected = bank.process.prior.variance(X).numpy()
    assert_close(bank.see(X.numpy()).variance[0, 0], expected, **rounding(X.dtype))
    assert cleared.model.units is learner.model.units
    assert cleared.num_seen == 60
    assert cleared.buffer is None


def test_a_new_warm_up_learns_other_units(rng):
    X, y = _wave(rng, 60)
    learner, _ = _stream(StreamLearner(StreamSettings(num_inducing=10, warmup=30, refit="never")), X, y, 10)
    learner, _ = _stream(learner.rewarm(), 100.0 * X, y + 50.0, 10)
    assert float(learner.model.units.target_shift) > 40.0
    assert learner.num_seen == 120
    assert learner.num_since_start == 60


def test_inputs_far_outside_the_warm_up_are_counted(rng):
    X, y = _wave(rng, 40)
    learner, _ = StreamLearner(StreamSettings(num_inducing=10, warmup=30, refit="never")).learn(X, y)
    learner, info = learner.learn(torch.tensor([[5.0], [25.0], [-15.0]], dtype=torch.float64), y[:3])
    assert info.num_outside == 2
    assert learner.num_outside == 2


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (torch.ones(3), torch.ones(3), ShapeError, r"X must have shape \(n, d\)"),
        (torch.ones(3, 2), torch.ones(3), ShapeError, "X has 2 columns, but the stream so far had 1"),
        (torch.ones(3, 1), torch.ones(2), ShapeError, r"y must have shape \(3,\)"),
        (torch.tensor([[float("nan")]]), torch.ones(1), ValueRangeError, "X"),
        (torch.ones(1, 1), torch.tensor([float("inf")]), ValueRangeError, "y"),
    ],
)
def test_bad_rows_are_refused_with_a_sentence_and_change_nothing(rng, X, y, error, message):
    learner, _ = StreamLearner(StreamSettings(num_inducing=5, warmup=10, half_life=None)).learn(*_wave(rng, 9))
    before = learner.predict(torch.ones(1, 1)).mean
    with pytest.raises(error, match=message):
        learner.learn(X, y)
    assert learner.num_seen == 9
    assert torch.equal(learner.predict(torch.ones(1, 1)).mean, before)


def test_there_is_nothing_to_predict_from_before_the_first_row():
    with pytest.raises(UnsupportedError, match="nothing to predict from before the first row"):
        StreamLearner(StreamSettings()).predict(torch.ones(1, 1))


def test_targets_outside_the_support_are_refused(rng):
    X, _ = _wave(rng, 5)
    with pytest.raises(SupportError, match="Poisson"):
        StreamLearner(StreamSettings("poisson")).learn(X, torch.tensor([1.0, 2.0, -1.0, 0.0, 3.0]))


def test_binomial_rows_need_a_total_count_and_others_must_not_have_one(rng):
    X, y = _wave(rng, 5)
    with pytest.raises(OptionError, match="there is no total_count"):
        StreamLearner(StreamSettings("binomial")).learn(X, y.round().abs())
    with pytest.raises(OptionError, match="total_count holds numbers of trials, but the likelihood is 'gaussian'"):
        StreamLearner(StreamSettings()).learn(X, y, torch.full((5,), 3.0))


@pytest.mark.slow
def test_binomial_rows_may_each_have_their_own_total_count(rng):
    X = torch.rand(300, 1, generator=rng, dtype=torch.float64) * 10.0
    totals = torch.randint(1, 40, (300,), generator=rng).double()
    p = torch.sigmoid(2.0 * torch.sin(X.squeeze(-1)))
    y = torch.binomial(totals, p, generator=rng)
    settings = StreamSettings("binomial", num_inducing=12, warmup=60, refit="never", half_life=None)
    learner = StreamLearner(settings)
    for start in range(0, 300, 100):
        part = slice(start, start + 100)
        learner, _ = learner.learn(X[part], y[part], totals[part])
    predicted = learner.predict(X, torch.ones(300, dtype=torch.float64)).mean
    assert float((predicted - p).square().mean().sqrt()) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "most"), [(-1.0, 0.26), (1.0, 0.2)])
def test_the_default_follows_a_flipped_sign_and_loses_little_where_nothing_moves(sign, most):
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(480, 3, generator=rng, dtype=torch.float64)
    f = X @ torch.tensor([1.0, -0.5, 0.5], dtype=torch.float64)
    signs = torch.where(torch.arange(480) < 240, 1.0, sign)
    y = signs * f + 0.2 * torch.randn(480, generator=rng, dtype=torch.float64)
    learner, errors = StreamLearner(StreamSettings(num_inducing=20, warmup=120)), []
    for i in range(0, 480, 5):
        if i >= 360:
            errors.append((learner.predict(X[i : i + 5]).mean - y[i : i + 5]).abs().mean())
        learner, _ = learner.learn(X[i : i + 5], y[i : i + 5])
    assert float(torch.stack(errors).mean()) < most  # the noise alone is 0.16


def test_several_outputs_are_learned_side_by_side(rng):
    X, y = _wave(rng, 60)
    Y = torch.stack([y, 5.0 - 2.0 * y], -1)
    settings = StreamSettings(num_inducing=20, warmup=30)
    learner, _ = StreamLearner(settings).learn(X, Y)
    prediction = learner.predict(X[:4])
    assert prediction.mean.shape == (4, 2)
    same = rounding(X.dtype, condition=regression_condition(60, 0.04))
    assert prediction.quantiles([0.1, 0.9]).shape == (4, 2, 2)
    assert_close(prediction.mean[:, 1], 5.0 - 2.0 * prediction.mean[:, 0], **same)
    with pytest.raises(ShapeError, match=r"y must have shape \(60, 2\)"):
        learner.learn(X, y)


def test_small_steps_use_one_thread_and_give_the_others_back(rng, monkeypatch):
    X, y = _wave(rng, 30)
    settings = StreamSettings(kernel=_frozen_kernel(), num_inducing=10, warmup=20, refit="never")
    num_before, seen = torch.get_num_threads(), []
    predict, learned = StreamModel.predict, StreamModel.learned
    for name, function in (("predict", predict), ("learned", learned)):
        counted = lambda *a, function=function, **k: (seen.append(torch.get_num_threads()), function(*a, **k))[1]  # noqa: E731
        monkeypatch.setattr(StreamModel, name, counted)
    torch.set_num_threads(2)
    try:
        learner, _ = _stream(StreamLearner(settings), X, y, 10)
        learner.predict(X[:1])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(num_before)
    assert len(seen) > 1
    assert set(seen) == {1}


def test_where_the_stream_has_left_experts_count_by_the_long_run(rng):
    X = torch.rand(500, 2, generator=rng, dtype=torch.float64)
    X = X[X[:, 0].argsort()]
    f = 3.0 * torch.sin(9.0 * X[:, 0]) + X[:, 1]
    y = f + 0.05 * torch.randn(500, generator=rng, dtype=torch.float64)
    y[450:] += 8.0  # a level that has come late
    learner, _ = StreamLearner(StreamSettings(num_inducing=40)).learn(X, y)
    before, now = learner.predict(X[:300]), learner.predict(X[480:])
    as_now = learner.model.predict(X[:300].numpy())
    assert float((before.mean - f[:300]).abs().mean()) < 0.5 * float((as_now.mean - f[:300]).abs().mean())
    assert float((now.mean - y[480:]).abs().mean()) < 0.5
    # Both kinds of inputs in one call, and draws, say the same.
    both = learner.predict(torch.cat([X[:3], X[480:483]]))
    assert_close(both.mean, torch.cat([before.mean[:3], now.mean[:3]]), **tolerance(torch.float64))
    draws, _, prediction = learner.model.sample_latent(
        X[:3].numpy(), 500, torch.Generator().manual_seed(0), latest=learner.latest
    )
    error = float(prediction.latent(draws).std(0).max()) / 500**0.5
    assert_close(prediction.latent(draws).mean(0), before.mean[:3], **sampling(error))


def test_few_rows_and_single_experts_do_not_tell_where_the_stream_is(rng):
    X = torch.rand(70, 2, generator=rng, dtype=torch.float64)
    few, _ = StreamLearner(StreamSettings(num_inducing=5)).learn(X[:20], X[:20, 0])
    single, _ = StreamLearner(StreamSettings(num_inducing=5, half_life=None)).learn(X, X[:, 0])
    many, _ = StreamLearner(StreamSettings(num_inducing=5)).learn(X, X[:, 0])
    assert few.latest is None
    assert single.latest is None
    assert np.array_equal(many.latest.inputs, X[-64:])


@pytest.mark.slow
def test_refits_wait_while_the_stream_stands_still(rng):
    X = torch.rand(5700, 1, generator=rng, dtype=torch.float64)
    y = torch.sin(6.0 * X[:, 0]) + 0.1 * torch.randn(5700, generator=rng, dtype=torch.float64)
    settings = StreamSettings(num_inducing=12, buffer_size=1500)
    still, _ = StreamLearner(settings).learn(X, y)
    assert [each.num_seen for each in still.refits] == [400, 800, 1600, 2600, 3600, 5600]
    moved, _ = StreamLearner(settings).learn(X[:4700], torch.cat([y[:4000], -y[4000:4700]]))
    assert [each.num_seen for each in moved.refits] == [400, 800, 1600, 2600, 3600, 4600]
    stated, _ = StreamLearner(StreamSettings(num_inducing=12, refit=500)).learn(X[:1300], y[:1300])
    assert [each.num_seen for each in stated.refits] == [700, 1200]
