import itertools

import gpytorch
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES, assert_same_prediction
from tests.support.problems import SparseProblem, random_observations, random_sparse_gp
from tests.support.reference import assert_predicts, assert_within, condition_precisely, exact_gp, predict_dense, sgpr
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import NumericalError, OptionError, ValueRangeError
from streamgp.testing.tolerances import approximation, rounding


def absorb(gp, observations, **options):
    return gp.absorb(observations.inputs, observations.targets, noise_variance=observations.noise_variance, **options)


def from_prior(problem):
    return sg.SparseGP.from_prior(problem.gp.kernel, problem.inducing_points, mean=problem.gp.mean)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@pytest.mark.parametrize("n", [1, 4, 30])
def test_absorbing_into_kept_points_equals_sgpr_on_the_union(rng, batch_shape, dtype, n):
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype)
    first = random_observations(rng, num_observations=n, batch_shape=batch_shape, dtype=dtype)
    second = random_observations(rng, num_observations=7, batch_shape=batch_shape, dtype=dtype)
    gp, _ = absorb(from_prior(problem), first, inducing="keep")
    gp, info = absorb(gp, second, inducing="keep")
    assert info.num_swapped == 0
    W = torch.rand(*batch_shape, 4, 2, generator=rng, dtype=torch.float64).to(dtype)
    X, y = torch.cat([first.inputs, second.inputs], dim=-2), torch.cat([first.targets, second.targets], dim=-1)
    noise = torch.diag_embed(torch.cat([first.noise_variance, second.noise_variance], dim=-1))
    expected = sgpr(gp.kernel, gp.mean, gp.inducing_points, X, y, noise, W, jitter=gp.process.jitter)
    assert_predicts(gp.predict(W), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_with_inducing_points_at_all_inputs_it_equals_the_exact_gp(rng, dtype):
    problem = random_sparse_gp(rng, dtype=dtype)
    new = random_observations(rng, num_observations=12, dtype=dtype)
    gp, _ = absorb(from_prior(problem), new, inducing=new.inputs)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    expected = exact_gp(problem.gp.kernel, problem.gp.mean, new.inputs, new.targets, new.noise_variance.diag(), W)
    # Beside rounding, the jitter of the inducing points' kernel matrix stands between the two: as noise at each point,
    # it counts by as much as it adds to the noise there.
    added = 12 * gp.process.jitter / new.noise_variance.min().item()
    assert_predicts(gp.predict(W), expected, offset=added * new.targets.abs().max().item())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
@given(seed=st.integers(0, 2**31), n=st.integers(0, 9), cut=st.integers(0, 9))
def test_absorbing_in_two_parts_equals_absorbing_at_once(batch_shape, dtype, seed, n, cut):
    rng = torch.Generator().manual_seed(seed)
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype, width=1.2)
    new = random_observations(rng, num_observations=n, batch_shape=batch_shape, dtype=dtype)
    once, _ = absorb(problem.gp, new, inducing="keep")
    first, _ = absorb(problem.gp, new.part(slice(0, cut)), inducing="keep")
    twice, _ = absorb(first, new.part(slice(cut, None)), inducing="keep")
    W = torch.rand(*batch_shape, 4, 2, generator=rng, dtype=torch.float64).to(dtype)
    assert_same_prediction(twice, once, W, like=predict_dense(once, W, is_derived=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch_shape", BATCH_SHAPES)
def test_moved_inducing_points_equal_the_information_form(rng, batch_shape, dtype):
    problem = random_sparse_gp(rng, batch_shape=batch_shape, dtype=dtype, width=1.1)
    new = random_observations(rng, num_observations=9, batch_shape=batch_shape, dtype=dtype)
    # Some old points stay, the others are replaced.
    Z = torch.cat([problem.inducing_points[..., :4, :], new.inputs[..., :3, :]], dim=-2)
    gp, info = absorb(problem.gp, new, inducing=Z)
    assert info.num_swapped == 3 * max(1, torch.Size(batch_shape).numel())
    for index in itertools.product(*map(range, batch_shape)):
        S, m, condition = information_form(problem.member(index), new.member(index), Z[index])
        assert_close(gp.whitened_covariance[index].double(), S, **rounding(dtype, condition=condition))
        assert_close(gp.whitened_mean[index].double(), m, **rounding(dtype, condition=condition))


def information_form(problem, new, Z):
    """The streaming update with inverses, as it is written in the paper."""
    gp, j = problem.gp, problem.jitter
    kernel = gp.kernel.double()
    Z, Z_old, X = (t.double() for t in (Z, gp.inducing_points, new.inputs))
    same = (Z.unsqueeze(-2) == Z_old).all(-1).double()
    L = torch.linalg.cholesky(kernel(Z).to_dense() + j * torch.eye(len(Z)))
    L_old = torch.linalg.cholesky(kernel(Z_old).to_dense() + j * torch.eye(len(Z_old)))
    T = L.inverse() @ (kernel(Z, Z_old).to_dense() + j * same) @ L_old.inverse().T
    S_old = gp.whitened_covariance.double()
    site = S_old.inverse() - torch.eye(len(Z_old))
    phi = L.inverse() @ kernel(Z, X).to_dense()
    weighted = phi / new.noise_variance.double()
    S = (torch.eye(len(Z)) + T @ site @ T.T + weighted @ phi.T).inverse()
    residual = new.targets.double() - gp.mean(new.inputs).double()
    # Errors of the features are magnified by L, and those of the site by S_old, before S makes them small again.
    condition = torch.linalg.cond(L) * torch.linalg.cond(S_old) * torch.linalg.cond(S)
    return S, S @ (T @ S_old.inverse() @ gp.whitened_mean.double() + weighted @ residual), condition.item()


def test_a_changed_prior_is_carried_as_the_dense_algebra_says(rng):
    problem, other = random_sparse_gp(rng), random_sparse_gp(rng)
    new = random_observations(rng, num_observations=5)
    gp, info = absorb(problem.gp, new, inducing="keep", kernel=other.gp.kernel, mean=other.gp.mean)
    old, Z = problem.gp, problem.inducing_points
    K, K_old = (k(Z).to_dense() + problem.jitter * torch.eye(len(Z)) for k in (other.gp.kernel, old.kernel))
    L_old = torch.linalg.cholesky(K_old)
    S_old = L_old @ old.whitened_covariance @ L_old.T
    m_old = old.mean(Z) + L_old @ old.whitened_mean
    # The site as pseudo-data: precision and precision-weighted mean of the old belief relative to the old prior.
    precision = S_old.inverse() - K_old.inverse()
    pull = S_old.inverse() @ m_old - K_old.inverse() @ old.mean(Z)
    A = other.gp.kernel(new.inputs, Z).to_dense() @ K.inverse()
    residual = new.targets - other.gp.mean(new.inputs) + A @ other.gp.mean(Z)
    S = (K.inverse() + precision + A.T @ (A / new.noise_variance.unsqueeze(-1))).inverse()
    m = S @ (K.inverse() @ other.gp.mean(Z) + pull + A.T @ (residual / new.noise_variance))
    L = torch.linalg.cholesky(K)
    limits = rounding(Z.dtype, condition=(torch.linalg.cond(K_old) + torch.linalg.cond(S_old)).item())
    assert_close(L @ gp.whitened_covariance @ L.T, S, **limits)
    assert_close(other.gp.mean(Z) + L @ gp.whitened_mean, m, **limits)
    assert info.num_clipped == 0


def test_a_prior_change_that_would_leave_negative_precision_is_bounded_and_reported(rng):
    problem = random_sparse_gp(rng, width=1.8)
    wide = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5)).double()
    wide.outputscale = 50.0
    new = random_observations(rng, num_observations=2)
    gp, info = absorb(problem.gp, new, inducing="keep", kernel=wide)
    assert info.num_clipped > 0
    assert torch.linalg.eigvalsh(gp.whitened_covariance).max() <= 10.0 + 1e-6


def test_pivoted_points_come_from_old_points_and_new_inputs_and_keep_their_number(rng):
    problem = random_sparse_gp(rng, num_inducing=8)
    new = random_observations(rng, num_observations=20)
    gp, info = absorb(problem.gp, new)
    candidates = torch.cat([problem.inducing_points, new.inputs])
    assert gp.num_inducing == 8
    assert (gp.inducing_points.unsqueeze(-2) == candidates).all(-1).any(-1).all()
    assert 0 < info.num_swapped <= 8
    assert info.residual_trace >= 0
    grown, _ = absorb(problem.gp, new, num_inducing=15)
    assert grown.num_inducing == 15


@pytest.mark.parametrize("n", [1, 4, 9])
def test_the_traces_are_those_of_what_the_points_leave_of_new_observations_and_of_the_belief(rng, n):
    problem = random_sparse_gp(rng)
    new = random_observations(rng, num_observations=n)
    Z, kernel, eye = problem.inducing_points, problem.gp.kernel, problem.jitter * torch.eye(6)

    def left(X, points, same=0.0):
        cross = kernel(X, points).to_dense() + same
        return kernel(X).to_dense() - cross @ torch.linalg.solve(kernel(points).to_dense() + eye, cross.T)

    limits = rounding(Z.dtype, condition=torch.linalg.cond(kernel(Z).to_dense() + eye).item(), scale=n / 0.05)
    _, info = absorb(problem.gp, new, inducing="keep")
    assert_close(info.residual_trace, (left(new.inputs, Z).diagonal() / new.noise_variance).sum(), **limits)
    assert info.lost_trace == 0
    moved = Z.clone()
    moved[2] += 0.2
    _, info = absorb(problem.gp, new, inducing=moved)
    L = torch.linalg.cholesky(kernel(Z).to_dense() + eye)
    site = torch.linalg.inv(L @ problem.gp.whitened_covariance @ L.T) - torch.linalg.inv(L @ L.T)
    stays = eye.clone()  # jitter is shared by points that stay
    stays[2] = 0.0
    lost = left(Z, moved, stays) + eye
    limits = rounding(Z.dtype, condition=torch.linalg.cond(site).item() * torch.linalg.cond(L).item() ** 2)
    assert_close(info.lost_trace, (site @ lost).trace(), **limits)


def test_growing_to_all_points_loses_nothing_of_the_belief(rng):
    problem = SparseProblem(**(vars(random_sparse_gp(rng)) | {"jitter": 1e-11}))  # jitter is noise on new points
    new = random_observations(rng, num_observations=4)
    everything = torch.cat([problem.inducing_points, new.inputs])
    gp, info = absorb(problem.gp, new, inducing=everything)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    exact = problem.gp.condition(new.inputs, new.targets, noise_variance=new.noise_variance)
    condition = torch.linalg.cond(gp.process.factor).item() ** 2
    assert info.lost_trace.abs() < rounding(W.dtype, condition=condition)["atol"]
    assert_same_prediction(gp, exact, W, **rounding(W.dtype, condition=condition))


def test_a_batched_call_equals_a_loop_also_when_points_move(rng):
    problem = random_sparse_gp(rng, batch_shape=(3,))
    new = random_observations(rng, num_observations=9, batch_shape=(3,))
    gp, _ = absorb(problem.gp, new)
    W = torch.rand(3, 4, 2, generator=rng, dtype=torch.float64)
    for i in range(3):
        alone, _ = absorb(problem.member((i,)).gp, new.member((i,)))
        limits = predict_dense(alone, W[i], is_derived=True).limits(W.dtype)
        assert_within((gp.predict(W).mean[i] - alone.predict(W[i]).mean).abs(), limits.mean, "mean")
        assert_within((gp.predict(W).variance[i] - alone.predict(W[i]).variance).abs(), limits.variance, "variance")


@pytest.mark.parametrize("inducing", ["keep", "pivoted"])
def test_an_empty_batch_is_the_identity(rng, inducing):
    problem = random_sparse_gp(rng)
    nothing = random_observations(rng, num_observations=0)
    gp, _ = absorb(problem.gp, nothing, inducing=inducing)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64)
    assert_same_prediction(gp, problem.gp, W, **rounding(W.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inducing", ["keep", "pivoted"])
@pytest.mark.parametrize("noise", [1e-8, 1e-2])
@pytest.mark.parametrize("target_scale", [1.0, 1e6])
def test_streams_of_hard_data_stay_finite_and_proper(rng, dtype, inducing, noise, target_scale):
    gp = random_sparse_gp(rng, dtype=dtype, width=1.3, num_inducing=10).gp
    for step in range(20):
        new = random_observations(rng, num_observations=3, dtype=dtype)
        X = new.inputs if step % 2 else gp.inducing_points[:3].clone()
        X[2] = X[1]
        gp, _ = gp.absorb(X, target_scale * new.targets, noise_variance=noise, inducing=inducing)
        prediction = gp.predict(new.inputs)
        assert torch.isfinite(prediction.mean).all()
        assert (prediction.variance >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [200, pytest.param(2000, marks=pytest.mark.thorough)])
def test_a_long_stream_does_not_drift_from_the_batch_solution(rng, dtype, length):
    problem = random_sparse_gp(rng, dtype=dtype, num_inducing=10)
    gp, X, y = from_prior(problem), [], []
    for _ in range(length):
        new = random_observations(rng, num_observations=2, dtype=dtype)
        gp, _ = gp.absorb(new.inputs, new.targets, noise_variance=0.1, inducing="keep")
        X.append(new.inputs)
        y.append(new.targets)
    W = torch.rand(5, 2, generator=rng, dtype=torch.float64).to(dtype)
    at_once, _ = from_prior(problem).absorb(torch.cat(X), torch.cat(y), noise_variance=0.1, inducing="keep")
    assert_same_prediction(gp, at_once, W, like=predict_dense(at_once, W, is_derived=True))
    assert gp.process.whitened_root.shape == (10, 10)


def test_the_original_is_untouched(rng):
    problem = random_sparse_gp(rng)
    gp, W = problem.gp, torch.rand(5, 2, generator=rng, dtype=torch.float64)
    before = gp.predict(W).covariance.clone()
    absorb(gp, random_observations(rng, num_observations=5))
    assert torch.equal(gp.predict(W).covariance, before)


def test_noise_free_observations_are_refused_with_a_remedy(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(ValueRangeError, match="must be positive to absorb observations, but is zero"):
        gp.absorb(torch.rand(2, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64), noise_variance=0.0)


def test_an_unknown_choice_of_inducing_points_is_refused(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(OptionError, match="inducing must be one of 'pivoted', 'keep', but is 'kmeans'"):
        gp.absorb(
            torch.rand(2, 2, dtype=torch.float64),
            torch.zeros(2, dtype=torch.float64),
            noise_variance=1,
            inducing="kmeans",
        )


def test_a_belief_without_spread_cannot_be_moved_but_can_be_kept(rng):
    problem = random_sparse_gp(rng)
    delta = sg.SparseGP(problem.gp.process.with_belief(problem.whitened_mean, torch.zeros_like(problem.whitened_root)))
    new = random_observations(rng, num_observations=3)
    kept, _ = absorb(delta, new, inducing="keep")
    assert torch.equal(kept.whitened_mean, delta.whitened_mean)
    with pytest.raises(NumericalError, match="has no spread in some direction"):
        absorb(delta, new, inducing=new.inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("inducing", ["pivoted", "keep"])
@pytest.mark.parametrize("noise", [1e-30, 1e-308])
def test_observations_of_almost_no_noise_are_believed(rng, dtype, inducing, noise):
    if dtype == torch.float32 and noise < 1e-30:
        noise = 1e-44
    gp = random_sparse_gp(rng, dtype=dtype).gp
    X = gp.inducing_points[:3]
    y = torch.tensor([1.0, 2.0, -1.0], dtype=dtype)
    absorbed, _ = gp.absorb(X, y, noise_variance=noise, inducing=inducing)
    # What rounding and the jitter of the inducing points leave open.
    jitter = 1e-6 if dtype == torch.float64 else 1e-4
    limits = approximation(jitter * float(torch.linalg.cond(gp.kernel(X).to_dense().detach())), "jitter")
    assert_close(absorbed.predict(X).mean, y, **limits)
    again, _ = absorbed.absorb(X[:1], y[:1], noise_variance=noise, inducing=inducing)
    assert_close(again.predict(X).mean, y, **limits)


@pytest.mark.parametrize("form", ["variances", "matrix", "batch"])
@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-12, 1e-30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_observations_of_very_different_noise_agree_with_sixty_digits(rng, form, scale, dtype):
    gp = random_sparse_gp(rng, dtype=dtype).gp
    new = random_observations(rng, num_observations=5, dtype=dtype)
    X, y, W = new.inputs.clone(), new.targets, torch.randn(3, new.inputs.shape[-1], generator=rng, dtype=dtype)
    X[1], X[2] = X[0], gp.inducing_points[0]  # two contradict each other, one is at a point
    noise = torch.tensor([scale, 4.0 * scale, 1e-2 * scale, 0.1, 0.3], dtype=dtype)
    after, _ = gp.absorb(
        X if form != "batch" else X.expand(2, -1, -1),
        y if form != "batch" else torch.stack([y, y]),
        noise_variance=noise.diag() if form == "matrix" else noise,
        inducing="keep",
    )
    prediction = after.predict(W)
    if form == "batch":
        assert torch.equal(prediction.mean[0], prediction.mean[1])
        after = sg.SparseGP(gp.process.with_belief(after.whitened_mean[1], after.process.whitened_root[1]))
        prediction = after.predict(W)
    assert_predicts(prediction, condition_precisely(gp, X, y, noise, W, mode="absorb"))


@pytest.mark.parametrize("batch_shape", [(), (2, 1)])
def test_the_noise_of_one_observation_may_be_a_matrix(rng, batch_shape):
    gp = random_sparse_gp(rng, batch_shape=batch_shape).gp
    new = random_observations(rng, num_observations=1)
    by_matrix, _ = gp.absorb(new.inputs, new.targets, noise_variance=torch.tensor([[0.3]], dtype=torch.float64))
    by_number, _ = gp.absorb(new.inputs, new.targets, noise_variance=0.3)
    assert_close(by_matrix.whitened_mean, by_number.whitened_mean, **rounding(torch.float64, condition=1e3))
    assert_close(by_matrix.whitened_covariance, by_number.whitened_covariance, **rounding(torch.float64, condition=1e3))


def test_precise_observations_beyond_what_numbers_hold_are_refused(rng):
    gp = random_sparse_gp(rng).gp
    with pytest.raises(NumericalError, match="in units of their noise"):
        gp.absorb(gp.inducing_points[:2], [1e200, 1e200], noise_variance=1e-300, inducing="keep")


@pytest.mark.parametrize("scale", [1e-9, 1e-11, 1e-13, 1e-18, 1e-22])
@pytest.mark.parametrize("inducing", ["keep", "pivoted"])
def test_precise_observations_of_one_value_are_weighed_by_their_precision(rng, scale, inducing):
    gp = random_sparse_gp(rng).gp
    X, y = gp.inducing_points[[0, 0, 1]], torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    noise = scale * torch.tensor([1.0, 4.0, 1.0], dtype=torch.float64)
    expected = torch.tensor([1.2, 1.2, -1.0], dtype=torch.float64)
    absorbed, _ = gp.absorb(X, y, noise_variance=noise, inducing=inducing)
    # The jitter of the inducing points is noise that both observations of the first value share.
    K = gp.kernel(X[1:]).to_dense().detach()
    limits = approximation(1e-6 * float(torch.linalg.cond(K)), "jitter")
    assert_close(absorbed.predict(X).mean, expected, **limits)


@pytest.mark.parametrize("batch_shape", [(), (2,)])
@pytest.mark.parametrize("scale", [1e-3, 1e-11, 1e-18])
def test_precise_observations_that_were_absorbed_apart_are_merged_without_losing_digits(rng, batch_shape, scale):
    prior = from_prior(random_sparse_gp(rng, batch_shape=batch_shape))
    x, values = prior.inducing_points[..., :1, :], torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    one, other = (
        prior.absorb(x, y, noise_variance=scale * v, inducing="keep")[0]
        for y, v in zip(values, (1.0, 4.0), strict=True)
    )
    noise = scale * torch.tensor([1.0, 4.0], dtype=torch.float64)
    union, _ = prior.absorb(torch.cat([x, x], -2), values[:, 0], noise_variance=noise, inducing="keep")
    limits = rounding(torch.float64, condition=1e5)
    assert_close(sg.merge([one, other]).predict(x).mean, union.predict(x).mean, **limits)
