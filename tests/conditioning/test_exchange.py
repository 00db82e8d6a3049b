"""One new row against the weakest inducing point: nothing lost but what must be, and the same bits after a restart."""

import copy
import pickle
import weakref

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from tests.support.conditioning_laws import DTYPES, assert_same_prediction
from tests.support.problems import SparseProblem, random_observations, random_sparse_gp
from tests.support.reference import predict_dense
from torch.testing import assert_close

import streamgp as sg
from streamgp.conditioning.selection import site_information
from streamgp.errors import ValueRangeError
from streamgp.likelihoods import Bernoulli, Poisson, Preference
from streamgp.testing.tolerances import approximation, rounding

NOISE = 0.05


def from_prior(problem):
    return sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)


def one_row(rng, dtype=torch.float64, num_dims=2):
    new = random_observations(rng, num_observations=1, dtype=dtype, num_dims=num_dims)
    return new.inputs, new.targets


def elsewhere(rng, dtype=torch.float64):
    """An input outside the unit square, which no inducing point explains."""
    X, y = one_row(rng, dtype)
    return X + 3.0, y


def dense_sites(gp):
    """Precision and pull of the site on u - mean(Z), with inverses."""
    Z, j = gp.inducing_points.double(), gp.process.jitter
    K = gp.process.prior.covariance(gp.inducing_points, gp.inducing_points).double() + j * torch.eye(len(Z))
    L = torch.linalg.cholesky(K)
    S = L @ gp.whitened_covariance.double() @ L.T
    return K, S.inverse() - K.inverse(), S.inverse() @ L @ gp.whitened_mean.double()


def dense_exchange(gp, Z, X, y):
    """Carry the site to other points, then add an observation, as the streaming update is written."""
    kernel, j = gp.process.prior.covariance, gp.process.jitter
    same = (Z.unsqueeze(-2) == gp.inducing_points).all(-1).double()
    _, precision, pull = dense_sites(gp)
    K = kernel(Z, Z).double() + j * torch.eye(len(Z))
    A = (kernel(gp.inducing_points, Z).double() + j * same.T) @ K.inverse()
    a = (kernel(X, Z).double() @ K.inverse()).squeeze(0)
    S = (K.inverse() + A.T @ precision @ A + torch.outer(a, a) / NOISE).inverse()
    residual = (y - gp.mean(X)).double()
    return S, S @ (A.T @ pull + a * residual / NOISE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0.9, 1.3])
def test_an_exchange_equals_the_dense_update_at_the_same_points(rng, dtype, width):
    before = random_sparse_gp(rng, dtype=dtype, width=width, num_inducing=8).gp
    X, y = elsewhere(rng, dtype)
    gp, info = before.absorb(X, y, noise_variance=NOISE)
    assert info.num_swapped == 1
    assert gp.num_inducing == 8
    S, m = dense_exchange(before, gp.inducing_points, X, y)
    L = gp.process.factor.double()
    limits = rounding(dtype, condition=sum(torch.linalg.cond(each).item() for each in (L @ L.T, S)))
    assert_close(L @ gp.whitened_covariance.double() @ L.T, S, **limits)
    assert_close(L @ gp.whitened_mean.double(), m, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [0.9, 1.3])
def test_an_exchange_equals_the_transport_of_many_points(rng, dtype, width):
    before = random_sparse_gp(rng, dtype=dtype, width=width, num_inducing=8).gp
    X, y = elsewhere(rng, dtype)
    gp, info = before.absorb(X, y, noise_variance=NOISE)
    same, expected = before.absorb(X, y, noise_variance=NOISE, inducing=gp.inducing_points)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    assert_same_prediction(gp, same, W, like=predict_dense(same, W, is_derived=True))
    limits = rounding(dtype, condition=torch.linalg.cond(gp.process.factor.double()).item() ** 2)
    assert_close(info.lost_trace, expected.lost_trace, **limits)
    assert_close(info.residual_trace, expected.residual_trace, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_point_that_goes_is_the_one_whose_loss_weighs_least(rng, dtype):
    before = random_sparse_gp(rng, dtype=dtype, num_inducing=8).gp
    X, y = elsewhere(rng, dtype)
    gp, _ = before.absorb(X, y, noise_variance=NOISE)
    K, precision, _ = dense_sites(before)
    # Of the old points and x together, each given all others.
    k = before.process.prior.covariance(before.inducing_points, X).double()
    corner = before.process.prior.variance(X).double().unsqueeze(-1)
    alone = 1.0 / torch.cat([torch.cat([K, k], -1), torch.cat([k.T, corner], -1)]).inverse().diagonal()[:-1]
    weakest = ((precision.diagonal().clamp_min(0.0) / NOISE).sqrt() * alone).argmin()
    gone = (before.inducing_points.unsqueeze(-2) != gp.inducing_points).any(-1).all(-1)
    assert gone.nonzero().flatten().tolist() == [int(weakest)]
    assert torch.equal(gp.inducing_points[:-1], before.inducing_points[~gone])
    assert torch.equal(gp.inducing_points[-1:], X)


def test_nothing_is_lost_when_the_point_that_goes_is_redundant(rng):
    problem = random_sparse_gp(rng, num_inducing=8)
    points = problem.inducing_points.clone()
    # So close that the jitter hides what a pair of points could tell of the slope.
    points[3] = points[5] + 1e-6
    problem = SparseProblem(**(vars(problem) | {"inducing_points": points}))
    before, _ = from_prior(problem).absorb(
        torch.rand(20, 2, generator=rng, dtype=torch.float64),
        torch.randn(20, generator=rng, dtype=torch.float64),
        noise_variance=0.5,
        inducing="keep",
    )
    X, y = elsewhere(rng)
    gp, info = before.absorb(X, y, noise_variance=NOISE)
    assert info.num_swapped == 1
    assert info.lost_trace.abs() < 1e-5
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    limits = approximation(10 * (1e-6 + problem.jitter), "jitter")  # and the distance of the two points
    assert_same_prediction(gp, before.condition(X, y, noise_variance=NOISE), W, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
def test_while_there_is_room_new_rows_join_and_nothing_is_lost(rng, dtype):
    problem = random_sparse_gp(rng, dtype=dtype, width=1.2)
    before = SparseProblem(**(vars(problem) | {"jitter": 1e-11 if dtype == torch.float64 else 1e-6})).gp
    X, y = elsewhere(rng, dtype)
    gp, info = before.absorb(X, y, noise_variance=NOISE, num_inducing=7)
    assert (gp.num_inducing, info.num_swapped) == (7, 1)
    assert info.lost_trace == 0
    W = 4.0 * torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    limits = rounding(dtype, condition=torch.linalg.cond(gp.process.factor.double()).item() ** 2)
    assert_same_prediction(gp, before.condition(X, y, noise_variance=NOISE), W, **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_inducing", [6, 9])
@pytest.mark.parametrize("offset", [0.0, 1e-7])
def test_a_copy_of_an_inducing_point_never_enters(rng, dtype, num_inducing, offset):
    problem = random_sparse_gp(rng, dtype=dtype)
    y = torch.zeros(1, dtype=dtype)
    # From the prior all points are without information, and would give way to any other input.
    for start in (problem.gp, from_prior(problem)):
        for i in range(6):
            X = problem.inducing_points[i : i + 1] + offset
            gp, info = start.absorb(X, y, noise_variance=1e-4, num_inducing=num_inducing)
            assert info.num_swapped == 0
            assert torch.equal(gp.inducing_points, problem.inducing_points)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_kept_set_equals_keeping_it(rng, dtype):
    problem = random_sparse_gp(rng, dtype=dtype, num_inducing=8)
    gp, is_kept = problem.gp, []
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    for _ in range(20):
        X, y = one_row(rng, dtype)
        kept, _ = gp.absorb(X, y, noise_variance=NOISE, inducing="keep")
        gp, info = gp.absorb(X, y, noise_variance=NOISE)
        is_kept.append(info.num_swapped == 0)
        if is_kept[-1]:
            assert_same_prediction(gp, kept, W, rtol=0, atol=0)
    assert any(is_kept)


def test_the_information_carried_along_equals_the_derived_one(rng):
    gp = random_sparse_gp(rng, num_inducing=8, width=1.1).gp
    num_carried = 0
    for step in range(60):
        X, y = one_row(rng)
        gp, _ = gp.absorb(X, y, noise_variance=NOISE)
        if step % 20 == 10:
            gp = gp.forget(0.9)
        if step % 20 == 15:
            new = random_observations(rng, num_observations=5)
            gp, _ = gp.absorb(new.inputs, new.targets, noise_variance=new.noise_variance, inducing="keep")
        if gp.process.information is not None:
            num_carried += 1
            derived = site_information(gp.process.with_belief(gp.whitened_mean, gp.process.whitened_root))
            # The derived one is a difference of numbers as large as the diagonal of the inverse of K.
            size = float(gp.process.inducing_factor.leave_one_out.min())
            assert_close(gp.process.information, derived, **rounding(X.dtype, condition=1 / size, scale=1 / size))
    assert num_carried > 10


LIKELIHOODS = {
    "gaussian": (lambda f: f, {"noise_variance": NOISE}),
    "bernoulli": (lambda f: (f > 0).to(f), {"likelihood": Bernoulli()}),
    "poisson": (lambda f: f.exp().round(), {"likelihood": Poisson()}),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("likelihood", "dtype"),
    [
        ("gaussian", torch.float32),
        *((name, torch.float64) for name in LIKELIHOODS),
        *(pytest.param(name, torch.float32, marks=pytest.mark.thorough) for name in LIKELIHOODS if name != "gaussian"),
    ],
)
def test_a_stream_goes_on_with_the_same_bits_after_it_was_saved_pickled_or_copied(rng, tmp_path, dtype, likelihood):
    outcome, options = LIKELIHOODS[likelihood]
    problem = random_sparse_gp(rng, dtype=dtype, num_inducing=30, num_dims=3)
    gp = restarted = from_prior(problem)
    num_steps = 100 if likelihood == "gaussian" else 40
    num_swapped = num_restarts = 0
    for _ in range(num_steps):
        X, y = one_row(rng, dtype, num_dims=3)
        X, y = 2.0 * X, outcome(y)
        gp, info = gp.absorb(X, y, **options)
        restarted, _ = restarted.absorb(X, y, **options)
        num_swapped += info.num_swapped
        for name in ("inducing_points", "whitened_mean", "whitened_root"):
            assert torch.equal(getattr(restarted.process, name), getattr(gp.process, name))
        carried = gp.process.information, restarted.process.information
        assert carried == (None, None) or torch.equal(*carried)
        way = int(torch.randint(20, (), generator=rng))
        num_restarts += way < 3
        if way == 0:
            restarted.save(tmp_path / "gp.sgp")
            restarted = sg.load(tmp_path / "gp.sgp")
        elif way == 1:
            restarted = pickle.loads(pickle.dumps(restarted))
        elif way == 2:
            restarted = copy.deepcopy(restarted)
    assert num_swapped >= 5
    assert num_restarts >= 3
    W = torch.rand(5, 3, generator=rng, dtype=torch.float64).to(dtype)
    assert torch.equal(restarted.predict(W).mean, gp.predict(W).mean)
    assert torch.equal(restarted.predict(W).variance, gp.predict(W).variance)


def test_memory_is_constant_over_a_stream(rng):
    gp = random_sparse_gp(rng, num_inducing=8).gp
    first, sizes, num_swapped = weakref.ref(gp.process), set(), 0
    for _ in range(50):
        X, y = one_row(rng)
        gp, info = gp.absorb(4.0 * X, y, noise_variance=NOISE)
        num_swapped += info.num_swapped
        sizes.add((gp.inducing_points.shape, gp.whitened_mean.shape, gp.process.whitened_root.shape))
    assert num_swapped > 1
    assert len(sizes) == 1
    assert first() is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("noise", [1e-8, 1e-2])
@pytest.mark.parametrize("target_scale", [1.0, 1e6])
def test_streams_of_hard_rows_stay_finite_and_proper(rng, dtype, noise, target_scale):
    gp = random_sparse_gp(rng, dtype=dtype, width=1.3, num_inducing=10).gp
    for step in range(40):
        X, y = one_row(rng, dtype)
        X = X if step % 2 else gp.inducing_points[:1].clone()
        gp, _ = gp.absorb(X, target_scale * y, noise_variance=noise)
        prediction = gp.predict(torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype))
        assert torch.isfinite(prediction.mean).all()
        assert (prediction.variance >= 0).all()


def test_a_belief_without_spread_keeps_its_points(rng):
    problem = random_sparse_gp(rng)
    delta = sg.SparseGP(problem.gp.process.with_belief(problem.whitened_mean, torch.zeros_like(problem.whitened_root)))
    X, y = elsewhere(rng)
    gp, info = delta.absorb(X, y, noise_variance=NOISE)
    assert info.num_swapped == 0
    assert torch.equal(gp.whitened_mean, delta.whitened_mean)


@pytest.mark.parametrize("num_inducing", [40, 41])
def test_points_whose_kernel_matrix_needed_more_jitter_are_carried_too(rng, num_inducing):
    problem = random_sparse_gp(rng, num_inducing=40, base=RBFKernel)
    before = SparseProblem(**(vars(problem) | {"lengthscale": 9.0 * problem.lengthscale, "jitter": 0.0})).gp
    assert before.process.total_jitter > 0
    X, y = elsewhere(rng)
    gp, info = before.absorb(20.0 * X, y, noise_variance=NOISE, num_inducing=num_inducing)
    assert (gp.num_inducing, info.num_swapped) == (num_inducing, 1)
    same, _ = before.absorb(20.0 * X, y, noise_variance=NOISE, inducing=gp.inducing_points)
    assert_same_prediction(gp, same, torch.rand(5, 2, generator=rng, dtype=torch.float64), rtol=0, atol=0)


def test_a_single_inducing_point_can_be_exchanged(rng):
    before = random_sparse_gp(rng, num_inducing=1).gp
    X, y = elsewhere(rng)
    gp, info = before.absorb(X, y, noise_variance=1e-3)
    same, _ = before.absorb(X, y, noise_variance=1e-3, inducing=X)
    assert info.num_swapped == 1
    assert_same_prediction(gp, same, X, like=predict_dense(same, X, is_derived=True))


def test_pairs_of_inputs_are_chosen_from_all_points(rng):
    pair = 3.0 + torch.rand(1, 2, 2, generator=rng, dtype=torch.float64)
    gp = random_sparse_gp(rng, num_inducing=8).gp
    gp, info = gp.absorb(pair, torch.ones(1, dtype=torch.float64), likelihood=Preference())
    assert gp.num_inducing == 8
    assert info.num_swapped > 0


def test_asking_for_fewer_points_with_a_single_row_drops_some(rng):
    gp, _ = random_sparse_gp(rng, num_inducing=8).gp.absorb(*one_row(rng), noise_variance=NOISE, num_inducing=5)
    assert gp.num_inducing == 5


@pytest.mark.parametrize("num_rows", [1, 3])
def test_loyal_points_are_exchanged_less_readily(rng, num_rows):
    gp = random_sparse_gp(rng, num_inducing=6, num_dims=1).gp
    X = torch.rand(num_rows, 1, generator=rng, dtype=torch.float64) + 3.0
    swapped = [
        gp.absorb(X, X.squeeze(-1), noise_variance=0.1, retention=retention)[1].num_swapped
        for retention in (1e-6, 1.0, 1e9)
    ]
    assert swapped == sorted(swapped, reverse=True)
    assert swapped[0] == num_rows
    assert swapped[-1] == 0


def test_retention_must_be_positive(rng):
    gp = random_sparse_gp(rng, num_inducing=6, num_dims=1).gp
    X = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(ValueRangeError, match="retention must be a positive, finite number, but is 0"):
        gp.absorb(X, X.squeeze(-1), noise_variance=0.1, retention=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("likelihood", [None, Bernoulli(), Poisson()])
def test_members_of_a_batch_exchange_points_as_each_alone_does(rng, likelihood, dtype):
    num_members, m = 3, 6
    # Short enough for the dtype that no exchange hangs on rounding, which differs between a batch and one alone.
    lengthscales = torch.tensor([0.3, 0.6, 1.2], dtype=dtype) / (4 if dtype == torch.float32 else 1)

    def kernel(lengthscale):
        made = ScaleKernel(RBFKernel(batch_shape=lengthscale.shape), batch_shape=lengthscale.shape).to(dtype)
        made.base_kernel.lengthscale = lengthscale.reshape(*lengthscale.shape, 1, 1)
        return made

    X = torch.rand(25, 2, generator=rng, dtype=dtype)
    Y = torch.rand(num_members, 25, generator=rng, dtype=dtype).round()
    observed = {"noise_variance": 0.1} if likelihood is None else {"likelihood": likelihood}
    batch = sg.SparseGP.from_prior(kernel(lengthscales), X[:m])
    singles = [sg.SparseGP.from_prior(kernel(each), X[:m]) for each in lengthscales]
    num_swapped = 0
    for i in range(m, 25):
        batch, info = batch.absorb(X[i : i + 1], Y[:, i : i + 1], num_inducing=m + 1, **observed)
        infos = []
        for j in range(num_members):
            singles[j], one = singles[j].absorb(X[i : i + 1], Y[j, i : i + 1], num_inducing=m + 1, **observed)
            infos.append(one)
        assert info.num_swapped == sum(one.num_swapped for one in infos)
        assert info.lost_trace.shape == (num_members,)
        num_swapped += info.num_swapped
    prediction = batch.predict(X)
    limits = approximation(1e-5 if dtype == torch.float64 else 1e-3, "iteration")
    for j, single in enumerate(singles):
        assert_close(batch.inducing_points[j], single.inducing_points)
        assert_close(prediction.mean[j], single.predict(X).mean, **limits)
        assert_close(prediction.variance[j], single.predict(X).variance, **limits)
    assert num_swapped > 2 * num_members
