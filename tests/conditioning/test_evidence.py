"""Evidence of all kinds against its definition, and the laws that it obeys."""

import numpy as np
import pytest
import torch
from gpytorch.kernels import (
    ConstantKernel,
    LinearKernel,
    MaternKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    RBFKernel,
)
from gpytorch.means import LinearMean
from tests.support.dense_evidence import KERNELS, Row, dense_belief
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import UnsupportedError, ValueRangeError
from streamgp.gp import Prior, SparseProcess
from streamgp.testing.tolerances import approximation, rounding, tolerance

D, LENGTHSCALE, SLOPE, CONSTANT = 2, (0.6, 0.9), (0.7, -0.4), 0.3


def make_kernel(name, dtype):
    def stationary(kernel):
        kernel = kernel.to(dtype)
        kernel.lengthscale = torch.tensor(LENGTHSCALE, dtype=dtype)
        return kernel

    linear, constant = LinearKernel().to(dtype), ConstantKernel().to(dtype)
    linear.variance, constant.constant = torch.full((1, 1), 0.5, dtype=dtype), torch.ones(1, dtype=dtype)
    rbf = stationary(RBFKernel(ard_num_dims=D))
    rough, smooth = (stationary(MaternKernel(nu, ard_num_dims=D)) for nu in (1.5, 2.5))
    return {
        "rbf": rbf,
        "matern 3/2": rough,
        "matern 5/2": smooth,
        "rbf + linear": rbf + linear,
        "matern 5/2 x linear": smooth * (linear + constant),
    }[name]


def make_gp(name, dtype=torch.float64, num_inducing=7):
    """A belief that is wider than the prior in some directions, as training leaves it."""
    rng = torch.Generator().manual_seed(1)
    Z = torch.rand(num_inducing, D, generator=rng, dtype=torch.float64).to(dtype)
    mean = LinearMean(D).to(dtype)
    mean.initialize(weights=torch.tensor(SLOPE, dtype=dtype).unsqueeze(-1), bias=torch.tensor([CONSTANT], dtype=dtype))
    prior = Prior.snapshot(make_kernel(name, dtype), mean, like=Z)
    m = torch.randn(num_inducing, generator=rng, dtype=torch.float64).to(dtype)
    root = torch.randn(num_inducing, num_inducing, generator=rng, dtype=torch.float64).to(dtype) / num_inducing**0.5
    return sg.SparseGP(SparseProcess(prior, Z, m, 1.1 * root, 1e-6))


def unit(j):
    return np.eye(D)[j]


def kinds(rng, dtype):
    """Evidence of each kind and the same rows as lists of atoms."""
    X = torch.rand(6, D, generator=rng, dtype=torch.float64).to(dtype)
    A, B = torch.rand(2, 3, D, generator=rng, dtype=torch.float64).to(dtype)
    w = torch.rand(6, generator=rng, dtype=torch.float64).to(dtype)
    v = torch.randn(3, D, generator=rng, dtype=torch.float64).to(dtype)
    groups = ["b", "a", "b", "b", "a", "c"]
    x, a, b, along = (each.double().numpy() for each in (X, A, B, v))
    weights = w.double().numpy()
    members: dict[str, list[int]] = {"a": [1, 4], "b": [0, 2, 3], "c": [5]}
    share = {g: weights[i] / weights[i].sum() for g, i in members.items()}
    rows: dict[str, list[Row]] = {
        "values": [[(1.0, each, None)] for each in x],
        "average": [[(float(s), x[i], None) for s, i in zip(share[g], members[g], strict=True)] for g in "abc"],
        "total": [[(float(weights[i]), x[i], None) for i in members[g]] for g in "abc"],
        "difference": [[(1.0, one, None), (-1.0, two, None)] for one, two in zip(a, b, strict=True)],
        "gradient": [[(1.0, each, unit(j))] for each in a for j in range(D)],
        "derivative": [[(1.0, each, direction)] for each, direction in zip(b, along, strict=True)],
    }
    evidence = {
        "values": sg.evidence.values(X),
        "average": sg.evidence.average(X, groups, w),
        "total": sg.evidence.total(X, groups, w),
        "difference": sg.evidence.difference(A, B),
        "gradient": sg.evidence.gradient(A),
        "derivative": sg.evidence.derivative(B, v),
    }
    return evidence, rows


KINDS = ["values", "average", "total", "difference", "gradient", "derivative"]


def all_rows(of_kinds):
    return [row for kind in KINDS for row in of_kinds[kind]]


def errors(prediction, expected):
    mean, covariance = expected
    return max(
        float((prediction.mean.flatten().double() - torch.from_numpy(mean)).abs().max()),
        float((prediction.covariance.double() - torch.from_numpy(covariance)).abs().max()),
    )


@pytest.mark.parametrize("name", KERNELS)
def test_all_kinds_at_once_equal_the_dense_definition(rng, name):
    gp = make_gp(name)
    evidence, rows = kinds(rng, torch.float64)
    tests, test_rows = kinds(rng, torch.float64)
    dense = dense_belief(gp, name)
    held, test = (all_rows(each) for each in (rows, test_rows))
    y = torch.randn(len(held), generator=rng, dtype=torch.float64)
    noise = 0.01 + 0.1 * torch.rand(len(held), generator=rng, dtype=torch.float64)
    every, of_tests = (sg.evidence.combine(*each.values()) for each in (evidence, tests))
    assert errors(gp.predict(every), dense.moments(held)) < 1e-11
    after = gp.condition(every, y, noise_variance=noise)
    expected = dense.condition(held, y.numpy(), noise.numpy(), test)
    assert errors(after.predict(of_tests), expected) < 1e-10


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_kinds_in_two_parts_equal_both_at_once(rng, first, second, dtype):
    gp = make_gp("matern 5/2", dtype)
    evidence, _ = kinds(rng, dtype)
    one, two = evidence[first], evidence[second]
    y, z = (torch.randn(each.num_rows, generator=rng, dtype=torch.float64).to(dtype) for each in (one, two))
    once = gp.condition(sg.evidence.combine(one, two), (y, z), noise_variance=0.1)
    chained = gp.condition(one, y, noise_variance=0.1).condition(two, z, noise_variance=0.1)
    other_way = gp.condition(two, z, noise_variance=0.1).condition(one, y, noise_variance=0.1)
    W = torch.rand(5, D, generator=rng, dtype=torch.float64).to(dtype)
    test = sg.evidence.combine(W, sg.evidence.gradient(W))
    limits = rounding(dtype, condition=1e3, scale=10.0)
    for each in (chained, other_way):
        assert_close(each.predict(test).mean, once.predict(test).mean, **limits)
        assert_close(each.predict(test).covariance, once.predict(test).covariance, **limits)


@pytest.mark.parametrize("name", KERNELS)
def test_single_precision_loses_no_more_than_before_any_evidence(rng, name):
    """All kinds at once; what the belief itself loses to rounding is the measure."""
    gp, rng2 = make_gp(name, torch.float32), torch.Generator().manual_seed(3)
    evidence, rows = kinds(rng2, torch.float32)
    tests, test_rows = kinds(rng2, torch.float32)
    dense = dense_belief(gp, name)
    held, test = (all_rows(each) for each in (rows, test_rows))
    every, of_tests = (sg.evidence.combine(*each.values()) for each in (evidence, tests))
    before = errors(gp.predict(of_tests), dense.moments(test))
    y = torch.randn(len(held), generator=rng2).float()
    noise = torch.full((len(held),), 0.05)
    after = errors(
        gp.condition(every, y, noise_variance=noise).predict(of_tests),
        dense.condition(held, y.double().numpy(), noise.double().numpy(), test),
    )
    assert after <= 10.0 * before


def test_rows_of_one_atom_are_values(rng):
    gp, X = make_gp("rbf"), torch.rand(4, D, generator=rng, dtype=torch.float64)
    y = torch.randn(4, generator=rng, dtype=torch.float64)
    W = torch.rand(3, D, generator=rng, dtype=torch.float64)
    plain = gp.condition(X, y, noise_variance=0.1).predict(W, covariance=True)
    for rows in (sg.evidence.values(X), sg.evidence.average(X, range(4)), sg.evidence.total(X, range(4))):
        prediction = gp.condition(rows, y, noise_variance=0.1).predict(W, covariance=True)
        assert_close(prediction.mean, plain.mean, **tolerance(torch.float64))
        assert_close(prediction.covariance, plain.covariance, **tolerance(torch.float64))
    # With columns for directions, values are values still.
    both = sg.evidence.combine(X, sg.evidence.gradient(X[:1])).select(torch.arange(4))
    assert both.has_slopes
    assert_close(gp.condition(both, y, noise_variance=0.1).predict(W).mean, plain.mean, **tolerance(torch.float64))


def test_the_mean_of_averages_by_size_is_the_average_over_all(rng):
    gp, X = make_gp("matern 5/2"), torch.rand(9, D, generator=rng, dtype=torch.float64)
    sizes = torch.tensor([2.0, 3.0, 4.0], dtype=torch.float64)
    each = gp.predict(sg.evidence.average(X, [0, 0, 1, 1, 1, 2, 2, 2, 2]), covariance=True)
    whole = gp.predict(sg.evidence.average(X, [0] * 9), covariance=True)
    share = sizes / 9
    assert_close(share @ each.mean, whole.mean.squeeze(), **tolerance(torch.float64))
    assert_close(share @ each.covariance @ share, whole.covariance.squeeze(), **tolerance(torch.float64))


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_the_limit_of_differences_of_values(rng, name):
    gp, x = make_gp(name), torch.rand(1, D, generator=rng, dtype=torch.float64)
    gp = gp.condition(x + 0.1, torch.ones(1, dtype=torch.float64), noise_variance=0.1)
    step = 1e-5
    slopes = gp.predict(sg.evidence.gradient(x))
    for j in range(D):
        shift = step * torch.eye(D, dtype=torch.float64)[j]
        change = gp.predict(torch.cat([x + shift, x - shift]), covariance=True)
        quotient = (change.mean[0] - change.mean[1]) / (2 * step)
        variance = change.covariance[0, 0] + change.covariance[1, 1] - 2 * change.covariance[0, 1]
        limits = approximation(1e-5 if name == "matern 3/2" else 1e-8, "finite differences")
        assert_close(slopes.mean[0, j], quotient, **limits)
        # A variance is a second difference: rounding of the kernel over the squared step.
        limits = approximation(1e-4, "finite differences")
        assert_close(slopes.variance[0, j], variance / (2 * step) ** 2, **limits)


def test_values_and_gradients_of_a_quadratic_with_a_quadratic_kernel_give_the_quadratic(rng):
    X = torch.rand(1, 3, generator=rng, dtype=torch.float64)
    kernel = PolynomialKernel(2).double()
    kernel.offset = torch.ones(1, dtype=torch.float64)
    B = torch.randn(3, 3, generator=rng, dtype=torch.float64)

    def f(x):
        return (x @ B * x).sum(-1) + x[..., 0] - 0.7

    points = torch.rand(5, 3, generator=rng, dtype=torch.float64)
    slopes = points @ (B + B.mT)
    slopes[:, 0] += 1.0
    gp = sg.SparseGP.from_features(kernel, X)
    both = sg.evidence.combine(points, sg.evidence.gradient(points))
    W = torch.randn(6, 3, generator=rng, dtype=torch.float64)
    known = gp.condition(both, (f(points), slopes), noise_variance=1e-12)
    assert_close(known.predict(W).mean, f(W), **approximation(1e-6, "model"))
    absorbed, _ = gp.absorb(both, (f(points), slopes), noise_variance=1e-8)
    assert_close(absorbed.predict(W).mean, f(W), **approximation(1e-4, "model"))


@pytest.mark.parametrize("kind", KINDS)
def test_conditioning_on_no_rows_changes_nothing(rng, kind):
    gp = make_gp("rbf")
    rows = kinds(rng, torch.float64)[0][kind].select(torch.arange(0))
    W = torch.rand(3, D, generator=rng, dtype=torch.float64)
    after = gp.condition(rows, torch.zeros(0, dtype=torch.float64), noise_variance=0.1)
    assert_close(after.predict(W).mean, gp.predict(W).mean, **rounding(torch.float64, scale=10.0))


@pytest.mark.parametrize("kind", KINDS)
def test_absorbing_at_fixed_points_equals_the_dense_definition_and_is_unlearned(rng, kind):
    """With what the inducing points leave open counted as noise that is not there."""
    gp = make_gp("matern 5/2")
    rows = kinds(rng, torch.float64)[0][kind]
    y = torch.randn(rows.num_rows, generator=rng, dtype=torch.float64)
    absorbed, info = gp.absorb(rows, y, noise_variance=0.1, inducing="keep")
    phi = gp.process.features(rows)
    residual = y - gp.process.prior.mean(rows)
    S = gp.whitened_covariance
    precision = S.inverse() + phi @ phi.mT / 0.1
    mean = precision.inverse() @ (S.inverse() @ gp.whitened_mean + phi @ residual / 0.1)
    limits = rounding(torch.float64, condition=float(torch.linalg.cond(S)) * 100)
    assert_close(absorbed.whitened_covariance, precision.inverse(), **limits)
    assert_close(absorbed.whitened_mean, mean, **limits)
    assert float(info.residual_trace) >= 0.0
    back, _ = absorbed.unlearn(rows, y, noise_variance=0.1)
    assert_close(back.whitened_mean, gp.whitened_mean, **limits)
    assert_close(back.whitened_covariance, S, **limits)


@pytest.mark.parametrize("kind", KINDS)
def test_leaving_a_row_out_equals_learning_the_others_alone(rng, kind):
    gp = make_gp("matern 5/2")
    rows = kinds(rng, torch.float64)[0][kind]
    y = torch.randn(rows.num_rows, generator=rng, dtype=torch.float64)
    absorbed, _ = gp.absorb(rows, y, noise_variance=0.1, inducing="keep")
    left = absorbed.leave_one_out(rows, y, noise_variance=0.1)
    others = torch.arange(1, rows.num_rows)
    without, _ = gp.absorb(rows.select(others), y[others], noise_variance=0.1, inducing="keep")
    expected = without.predict(rows.select(torch.arange(1)))
    assert_close(left.mean[:1], expected.mean.flatten(), **tolerance(torch.float64))
    assert_close(left.variance[:1], expected.variance.flatten(), **tolerance(torch.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_predicts_as_the_conditioned_gp_does(rng, kind, tmp_path):
    gp = make_gp("rbf")
    rows = kinds(rng, torch.float64)[0][kind]
    after = gp.condition(rows, torch.ones(rows.num_rows, dtype=torch.float64), noise_variance=0.1)
    after.save(tmp_path / "gp.sgp")
    again = sg.load(tmp_path / "gp.sgp")
    assert torch.equal(again.predict(rows).mean, after.predict(rows).mean)
    assert again.process.inputs.labels == rows.labels


def test_samples_of_rows_have_their_moments(rng):
    gp = make_gp("rbf")
    rows = sg.evidence.combine(*kinds(rng, torch.float64)[0].values())
    samples = gp.sample(rows, 20_000, generator=rng)
    prediction = gp.predict(rows, covariance=True)
    error = (samples.mean(0) - prediction.mean) / (prediction.std / 20_000**0.5)
    assert float(error.abs().max()) < 5.0


def test_components_of_gradients_that_are_not_known_are_left_out(rng):
    gp, X = make_gp("rbf"), torch.rand(3, D, generator=rng, dtype=torch.float64)
    slopes = torch.randn(4, 3, D, generator=rng, dtype=torch.float64)  # four fantasies
    slopes[:, 1, 0] = torch.nan
    noise = 0.1 + torch.rand(3, D, generator=rng, dtype=torch.float64)
    after = gp.condition(sg.evidence.gradient(X), slopes, noise_variance=noise)
    eye = torch.eye(D, dtype=torch.float64)
    one_by_one = gp
    for i in range(3):
        for j in range(D):
            if (i, j) != (1, 0):
                along = sg.evidence.derivative(X[i : i + 1], eye[j])
                one_by_one = one_by_one.condition(along, slopes[:, i, j : j + 1], noise_variance=noise[i, j : j + 1])
    assert_close(after.predict(X).mean, one_by_one.predict(X).mean, **tolerance(torch.float64))
    assert_close(after.predict(X).variance, one_by_one.predict(X).variance, **tolerance(torch.float64))
    slopes[0, 0, 0] = torch.nan
    with pytest.raises(ValueRangeError, match=r"NaN in some of its leading axes only. All fantasies"):
        gp.condition(sg.evidence.gradient(X), slopes, noise_variance=noise)


def test_noise_may_be_one_number_or_one_for_each_part(rng):
    gp, X = make_gp("rbf"), torch.rand(4, D, generator=rng, dtype=torch.float64)
    slopes = torch.randn(2, D, generator=rng, dtype=torch.float64)
    slopes[1, 0] = torch.nan
    rows, one = sg.evidence.combine(sg.evidence.gradient(X[:2]), X[2:]), torch.tensor([0.3, -0.2]).double()
    each = torch.cat([torch.full((2 * D,), 0.2), torch.full((2,), 0.4)]).double()
    expected = gp.condition(rows, (slopes, one), noise_variance=each).predict(X)
    for noise in ((0.2, 0.4), (0.2, each[-2:]), (each[: 2 * D], 0.4), each.diag()):
        found = gp.condition(rows, (slopes, one), noise_variance=noise).predict(X)
        assert_close(found.mean, expected.mean, **tolerance(torch.float64))
        assert_close(found.variance, expected.variance, **tolerance(torch.float64))
    for noise in (0.3, torch.tensor(0.3).double()):
        found = gp.condition(rows, (slopes, one), noise_variance=noise).predict(X)
        same = gp.condition(rows, (slopes, one), noise_variance=torch.full_like(each, 0.3)).predict(X)
        assert_close(found.mean, same.mean, **tolerance(torch.float64))
    total = gp.condition(sg.evidence.total(X, [0, 0, 0, 0]), 2.0, noise_variance=0.1)
    same = gp.condition(sg.evidence.total(X, [0, 0, 0, 0]), [2.0], noise_variance=0.1)
    assert torch.equal(total.predict(X).mean, same.predict(X).mean)


@pytest.mark.parametrize("kind", ["averages", "values", "beside slopes"])
def test_values_may_not_be_left_out(rng, kind):
    gp, X = make_gp("rbf"), torch.rand(4, D, generator=rng, dtype=torch.float64)
    rows = {
        "averages": sg.evidence.average(X, [0, 0, 1, 1]),
        "values": sg.evidence.values(X),
        "beside slopes": sg.evidence.combine(sg.evidence.average(X, [0, 0, 1, 1]), sg.evidence.gradient(X[:1])),
    }[kind]
    y = torch.ones(rows.num_rows, dtype=torch.float64)
    y[1] = torch.nan
    with pytest.raises(ValueRangeError, match="NaN in row 1"):
        gp.condition(rows, y, noise_variance=0.1)
    if kind == "beside slopes":
        y[1], y[-1] = 1.0, torch.nan
        left_out = gp.condition(rows, y, noise_variance=0.1).predict(X)
        index = torch.arange(rows.num_rows - 1)
        same = gp.condition(rows.select(index), y[:-1], noise_variance=0.1).predict(X)
        assert_close(left_out.mean, same.mean, **tolerance(torch.float64))


def test_gradients_reach_inputs_weights_and_targets_of_evidence(rng):
    gp = make_gp("matern 5/2")
    X = torch.rand(4, D, generator=rng, dtype=torch.float64, requires_grad=True)
    w = (0.5 + torch.rand(4, generator=rng, dtype=torch.float64)).requires_grad_()
    v = torch.randn(2, D, generator=rng, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, generator=rng, dtype=torch.float64, requires_grad=True)

    W = torch.rand(3, D, generator=rng, dtype=torch.float64)

    def mean(X, w, v, y):
        areas = sg.evidence.average(X, [0, 1, 1, 0], w)
        rows = sg.evidence.combine(areas, sg.evidence.derivative(X[:2], v))
        after = gp.condition(rows, y, noise_variance=0.1)
        prediction = after.predict(W, covariance=True)
        return prediction.mean.sum() + prediction.covariance.sum()

    assert torch.autograd.gradcheck(mean, (X, w, v, y))


def test_areas_choose_points_among_their_inputs_and_noise_for_each_row_is_heeded(rng):
    """One noise for each row used to end in an error, and one for all weighed pixels as if each were observed."""
    X = torch.rand(200, D, generator=rng, dtype=torch.float64)
    groups = (4 * X[:, 0]).floor().long() + 4 * (4 * X[:, 1]).floor().long()
    areas = sg.evidence.average(X, groups)
    k = areas.num_rows
    gp = sg.SparseGP.from_prior(RBFKernel().double(), torch.full((1, D), 5.0, dtype=torch.float64))
    y, noise = torch.randn(k, generator=rng, dtype=torch.float64), torch.full((k,), 0.01, dtype=torch.float64)
    absorbed, info = gp.absorb(areas, y, noise_variance=noise, num_inducing=25)
    assert len(absorbed.inducing_points) == 25
    known = {tuple(x) for x in X.tolist()}
    assert sum(tuple(z) in known for z in absorbed.inducing_points.tolist()) >= 24
    assert float(info.residual_trace) < 0.01
    exact = gp.condition(areas, y, noise_variance=noise)
    assert_close(absorbed.predict(X).mean, exact.predict(X).mean, **approximation(0.05, "model"))


def test_gradients_alone_choose_points_from_which_they_are_explained(rng):
    X = torch.rand(6, D, generator=rng, dtype=torch.float64)
    gp = sg.SparseGP.from_prior(RBFKernel().double(), torch.full((1, D), 5.0, dtype=torch.float64))
    slopes = torch.randn(6, D, generator=rng, dtype=torch.float64)
    absorbed, info = gp.absorb(sg.evidence.gradient(X), slopes, noise_variance=0.1, num_inducing=25)
    exact = gp.condition(sg.evidence.gradient(X), slopes, noise_variance=0.1)
    before = float((gp.process.prior.variance(sg.evidence.gradient(X)) / 0.1).sum())
    assert float(info.residual_trace) < 0.01 * before
    assert_close(absorbed.predict(X).mean, exact.predict(X).mean, **approximation(0.1, "model"))


def test_an_average_of_near_inputs_is_judged_by_what_it_is_made_of():
    """Its variance is that of one value, and not a thousandth: two copies without noise are not told from rounding."""
    gp = make_gp("rbf")
    X = 0.5 + 1e-6 * torch.rand(1000, D, dtype=torch.float64)
    area = sg.evidence.average(X, [0] * 1000)
    prior = gp.process.prior
    assert_close(prior.magnitude(area), prior.variance(X[:1]), **tolerance(torch.float64))
    y = torch.tensor([1.0], dtype=torch.float64)
    twice = gp.condition(sg.evidence.combine(area, area), torch.cat([y, y]), noise_variance=0.0)
    assert_close(twice.predict(area).mean, y, **approximation(1e-6, "jitter"))
    assert float(twice.jitter) < 1e-11


def test_jitter_is_given_to_each_row_in_its_own_units():
    """Slopes of a short lengthscale have variances of a million; what they need must not be added to values."""
    kernel = RBFKernel().double()
    kernel.lengthscale = 1e-3
    gp = sg.SparseGP.from_prior(kernel, torch.rand(3, D, dtype=torch.float64))
    x = torch.full((1, D), 0.5, dtype=torch.float64)
    twice = sg.evidence.gradient(x.expand(2, D))
    rows = sg.evidence.combine(x, twice)
    y = torch.ones(1, dtype=torch.float64)
    after = gp.condition(rows, (y, torch.zeros(2, D, dtype=torch.float64)), noise_variance=0.0)
    assert bool((after.jitter > 0).all())
    assert_close(after.predict(x).mean, y, **approximation(1e-10, "jitter"))
    chained = gp.condition(twice, torch.zeros(2, D, dtype=torch.float64), noise_variance=0.0)
    chained = chained.condition(x, y, noise_variance=0.0)
    assert_close(chained.predict(x).mean, y, **approximation(1e-10, "jitter"))


def test_kernels_without_derivatives_are_refused_by_name():
    X = torch.linspace(0.0, 1.0, 3, dtype=torch.float64).unsqueeze(-1).expand(3, D).clone()
    rough = MaternKernel(0.5).double()
    for kernel, name in (
        (rough, "Matérn-1/2"),
        (RBFKernel().double() * rough, "Matérn-1/2"),
        (PiecewisePolynomialKernel(), "PiecewisePolynomial"),
    ):
        gp = sg.SparseGP.from_prior(kernel.double(), X)
        with pytest.raises(UnsupportedError, match=name):
            gp.predict(sg.evidence.gradient(X), covariance=True)
        gp.predict(sg.evidence.average(X, [0, 0, 1]), covariance=True)  # values need no slopes


def test_comparisons_are_differences_with_a_probit(rng):
    gp = make_gp("rbf")
    pairs = torch.rand(5, 2, D, generator=rng, dtype=torch.float64)
    won = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    likelihood = sg.likelihoods.Preference(0.5**0.5)  # of which a difference has unit noise
    compared = gp.condition(pairs, won, likelihood=likelihood)
    as_rows = sg.evidence.difference(pairs[:, 0], pairs[:, 1])
    W = torch.rand(4, D, generator=rng, dtype=torch.float64)
    for other in (likelihood, sg.likelihoods.Bernoulli("probit")):
        assert_close(
            gp.condition(as_rows, won, likelihood=other).predict(W).mean,
            compared.predict(W).mean,
            **approximation(1e-6, "iteration"),
        )
