import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

from streamgp.errors import OptionError, ShapeError, SupportError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Gaussian
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.refitting import absorb_rows
from streamgp.testing.reference import exact_gp


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
        likelihood, kernel=_frozen_kernel(), num_inducing=60, warmup=20, refit="never", buffer_size=15
    )
    learner, _ = _stream(StreamLearner(settings), X, y, block)
    model, W = learner.model, torch.linspace(0.0, 10.0, 9, dtype=torch.float64).unsqueeze(-1)
    exact = exact_gp(
        model.gp.kernel,
        model.gp.mean,
        model.scaling.inputs(X),
        y,
        0.01 * torch.eye(60, dtype=torch.float64),
        model.scaling.inputs(W),
    )
    prediction = learner.predict(W)
    # Room for all points is not a point for each: copies, as near as rounding, are left out.
    assert_close(prediction.mean, exact.mean, rtol=1e-4, atol=1e-4)
    assert_close(prediction.variance, exact.covariance.diagonal() + 0.01, rtol=1e-3, atol=1e-5)


def test_anchor_and_buffer_together_hold_the_belief(rng):
    X, y = _wave(rng, 80)
    settings = StreamSettings(
        Gaussian(0.04, is_learned=False), kernel=_frozen_kernel(), num_inducing=80, warmup=20, refit="never",
        buffer_size=20,
    )  # fmt: skip
    learner, _ = _stream(StreamLearner(settings), X, y, 5)
    model = learner.model
    assert learner.anchor is not None
    assert learner.buffer.num_rows < 20
    rebuilt, _ = absorb_rows(
        learner.anchor,
        model.scaled(learner.buffer),
        model,
        inducing=model.gp.inducing_points,
        kernel=model.gp.kernel,
    )
    W = model.scaling.inputs(X[::7])
    assert_close(rebuilt.predict(W).mean, model.gp.predict(W).mean, rtol=1e-4, atol=1e-4)
    assert_close(rebuilt.predict(W).variance, model.gp.predict(W).variance, rtol=1e-3, atol=1e-5)


def test_everything_is_learned_anew_at_doubling_counts_until_the_warm_up_ends(rng):
    X, y = _wave(rng, 30)
    learner = StreamLearner(StreamSettings(num_inducing=10, warmup=24, refit="never"))
    learned_at, model = [], None
    for n in range(30):
        learner, _ = learner.learn(X[n : n + 1], y[n : n + 1])
        if model is None or learner.model.scaling is not model.scaling:
            learned_at.append(n + 1)
        model = learner.model
    assert learned_at == [1, 2, 4, 8, 16, 24]
    assert learner.next_refit is None


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "expected"), [("doubling", [80, 160]), (50, [90, 140, 190])])
def test_refits_follow_the_policy(rng, policy, expected):
    X, y = _wave(rng, 200)
    settings = StreamSettings(num_inducing=10, warmup=40, refit=policy, buffer_size=60)
    learner, infos = _stream(StreamLearner(settings), X, y, 23)
    assert [report.num_seen for info in infos for report in info.refits] == expected
    assert [report.num_seen for report in learner.refits] == expected


@pytest.mark.slow
def test_the_state_does_not_grow(rng):
    settings = StreamSettings(num_inducing=12, warmup=50, buffer_size=64)
    sizes, learner = [], StreamLearner(settings)
    for _ in range(6):
        X, y = _wave(rng, 200)
        learner, _ = learner.learn(X, y)
        gps = [learner.model.gp, learner.anchor]
        assert all(gp.num_inducing <= 12 for gp in gps)
        # A view of a larger tensor would keep all of it in memory.
        assert all(len(part.untyped_storage()) == part.nbytes for part in learner.buffer[:2])
        sizes.append(learner.buffer.num_rows)
    assert max(sizes) <= 64 + 256


@pytest.mark.slow
def test_learning_rows_singly_is_as_good_as_in_blocks(rng):
    X, y = _wave(rng, 600)
    W = torch.linspace(0.5, 9.5, 50, dtype=torch.float64).unsqueeze(-1)
    for block in (1, 64):
        learner, _ = _stream(StreamLearner(StreamSettings(num_inducing=16, warmup=100)), X, y, block)
        assert float((learner.predict(W).mean - torch.sin(W.squeeze(-1))).square().mean().sqrt()) < 0.05


@pytest.mark.slow
def test_automatic_size_grows_where_the_stream_goes_and_stops_at_the_bound(rng):
    X, y = _wave(rng, 400)
    X, order = X.sort(0)
    settings = StreamSettings(num_inducing="auto", max_inducing=40, warmup=50, refit="never")
    learner, _ = _stream(StreamLearner(settings), X[:50], y[order.squeeze(-1)][:50], 10)
    first = learner.model.gp.num_inducing
    learner, _ = _stream(learner, X[50:], y[order.squeeze(-1)][50:], 10)
    assert first < learner.model.gp.num_inducing <= 40


@pytest.mark.slow
def test_a_half_life_follows_a_changed_function(rng):
    before, after = _wave(rng, 300), _wave(rng, 300, shift=3.1416)
    W = torch.linspace(0.5, 9.5, 50, dtype=torch.float64).unsqueeze(-1)
    errors = {}
    for half_life in (None, 60.0):
        settings = StreamSettings(num_inducing=16, warmup=100, refit="never", half_life=half_life)
        learner, _ = _stream(StreamLearner(settings), *before, 10)
        learner, _ = _stream(learner, *after, 10)
        errors[half_life] = float((learner.predict(W).mean + torch.sin(W.squeeze(-1))).square().mean().sqrt())
    assert errors[60.0] < 0.2 * errors[None]


def test_a_reset_keeps_hyperparameters_and_forgets_the_rows(rng):
    X, y = _wave(rng, 60)
    learner, _ = _stream(StreamLearner(StreamSettings(num_inducing=10, warmup=30, refit="never")), X, y, 10)
    cleared = learner.reset()
    prior = cleared.model.gp.kernel(torch.zeros(1, 1, dtype=torch.float64)).to_dense()
    assert_close(cleared.model.gp.predict(X).variance, prior.squeeze(0).expand(60), rtol=1e-6, atol=1e-6)
    assert cleared.model.scaling is learner.model.scaling
    assert cleared.num_seen == 60
    assert cleared.buffer is None


def test_a_new_warm_up_learns_other_units(rng):
    X, y = _wave(rng, 60)
    learner, _ = _stream(StreamLearner(StreamSettings(num_inducing=10, warmup=30, refit="never")), X, y, 10)
    learner, _ = _stream(learner.rewarm(), 100.0 * X, y + 50.0, 10)
    assert float(learner.model.scaling.target_shift) > 40.0
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
    learner, _ = StreamLearner(StreamSettings(num_inducing=5, warmup=10)).learn(*_wave(rng, 10))
    before = learner.predict(torch.ones(1, 1)).mean
    with pytest.raises(error, match=message):
        learner.learn(X, y)
    assert learner.num_seen == 10
    assert torch.equal(learner.predict(torch.ones(1, 1)).mean, before)


def test_there_is_nothing_to_predict_from_before_the_first_row():
    with pytest.raises(UnsupportedError, match="nothing to predict from before the first row"):
        StreamLearner(StreamSettings()).predict(torch.ones(1, 1))


def test_targets_outside_the_support_are_refused(rng):
    X, _ = _wave(rng, 5)
    with pytest.raises(SupportError, match="Poisson"):
        StreamLearner(StreamSettings("poisson")).learn(X, torch.tensor([1.0, 2.0, -1.0, 0.0, 3.0]))


def test_binomial_rows_need_totals_and_others_must_not_have_them(rng):
    X, y = _wave(rng, 5)
    with pytest.raises(OptionError, match="there are no totals"):
        StreamLearner(StreamSettings("binomial")).learn(X, y.round().abs())
    with pytest.raises(OptionError, match="totals are numbers of trials, but the likelihood is 'gaussian'"):
        StreamLearner(StreamSettings()).learn(X, y, torch.full((5,), 3.0))


@pytest.mark.slow
def test_binomial_rows_may_each_have_their_own_totals(rng):
    X = torch.rand(300, 1, generator=rng, dtype=torch.float64) * 10.0
    totals = torch.randint(1, 40, (300,), generator=rng).double()
    p = torch.sigmoid(2.0 * torch.sin(X.squeeze(-1)))
    y = torch.binomial(totals, p, generator=rng)
    settings = StreamSettings("binomial", num_inducing=16, warmup=60, buffer_size=100)
    learner = StreamLearner(settings)
    for start in range(0, 300, 20):
        part = slice(start, start + 20)
        learner, _ = learner.learn(X[part], y[part], totals[part])
    predicted = learner.predict(X, torch.ones(300, dtype=torch.float64)).mean
    assert float((predicted - p).square().mean().sqrt()) < 0.05
