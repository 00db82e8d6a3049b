"""The laws of conditioning for several outputs, in both precisions and with leading axes."""

import copy

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from tests.support.conditioning_laws import BATCH_SHAPES, DTYPES
from torch.testing import assert_close

import streamgp as sg
from streamgp.errors import ValueRangeError
from streamgp.testing.tolerances import regression_condition, rounding

NOISE = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
MIXING = torch.tensor([[1.0, 0.2], [-0.5, 0.8], [0.3, 1.1]], dtype=torch.float64)
MEAN = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
NAN = float("nan")
NUM_ROWS = 5


class Laws:
    """A belief of some leading axes and outcomes to condition it on, some of them missing."""

    def __init__(self, rng, batch_shape, dtype):
        def numbers(*shape, draw=torch.rand):
            return draw(*batch_shape, *shape, generator=rng, dtype=torch.float64).to(dtype)

        self.kernels = [ScaleKernel(MaternKernel(2.5)).to(dtype), RBFKernel().to(dtype)]
        self.points, self.W = numbers(4, 2), numbers(3, 2)
        self.prior = sg.MultiOutputGP.from_prior(
            self.kernels, self.points, mixing=MIXING.to(dtype), mean=MEAN.to(dtype)
        )
        self.noise = NOISE.to(dtype)
        self.gp, _ = self.prior.absorb(
            numbers(6, 2), numbers(6, 3, draw=torch.randn), noise_variance=self.noise, inducing="keep"
        )
        self.X, self.Y = numbers(NUM_ROWS, 2), numbers(NUM_ROWS, 3, draw=torch.randn)
        self.Y[..., 1, 0] = self.Y[..., 2, :] = NAN
        variance = float(self.gp.sparse_gp.process.prior_variance(self.gp.predict(self.X).rows.inputs).max())
        condition = regression_condition(3 * NUM_ROWS, float(NOISE.min()), prior_variance=variance)
        self.limits = rounding(dtype, condition=condition, scale=3.0)

    def condition(self, gp, rows):
        return gp.condition(self.X[..., rows, :], self.Y[..., rows, :], noise_variance=self.noise)

    def assert_same(self, one, other):
        ours, theirs = one.predict(self.W), other.predict(self.W)
        assert_close(ours.mean, theirs.mean, **self.limits)
        assert_close(ours.covariance, theirs.covariance, **self.limits)
        assert_close(ours.variance, theirs.variance, **self.limits)


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=BATCH_SHAPES, ids=str)
def laws(request, rng, dtype):
    return Laws(rng, request.param, dtype)


def test_conditioning_equals_dense_algebra_on_the_joint_covariance(laws):
    after = laws.condition(laws.gp, slice(None)).predict(laws.W)
    joint = laws.gp.predict(torch.cat([laws.X, laws.W], dim=-2))
    seen, k = (~torch.isnan(laws.Y)).flatten(-2), 3 * NUM_ROWS
    for index in np.ndindex(*laws.gp.batch_shape):
        C, mean = joint.covariance[index].double(), joint.mean[index].double().flatten()
        rows = seen[index].nonzero().squeeze(-1)
        A = C[rows][:, rows] + NOISE.repeat(NUM_ROWS)[rows].diag()
        cross = C[k:, rows]
        residual = laws.Y[index].double().flatten()[rows] - mean[rows]
        expected = mean[k:] + cross @ torch.linalg.solve(A, residual)
        covariance = C[k:, k:] - cross @ torch.linalg.solve(A, cross.mT)
        assert_close(after.mean[index].double().flatten(), expected, **laws.limits)
        assert_close(after.covariance[index].double(), covariance, **laws.limits)


def test_conditioning_on_nothing_changes_nothing(laws):
    laws.assert_same(laws.condition(laws.gp, slice(0, 0)), laws.gp)


def test_a_row_without_outcomes_says_nothing(laws):
    laws.assert_same(laws.condition(laws.gp, [0, 1, 2, 3]), laws.condition(laws.gp, [0, 1, 3]))


def test_missing_outputs_equal_left_out_rows(laws):
    left_out = laws.Y.clone()
    left_out[..., 0, :] = NAN
    given = laws.gp.condition(laws.X, left_out, noise_variance=laws.noise)
    laws.assert_same(given, laws.condition(laws.gp, [1, 2, 3, 4]))


def test_in_two_parts_equals_at_once_in_any_order(laws):
    once = laws.condition(laws.gp, slice(None))
    laws.assert_same(laws.condition(laws.condition(laws.gp, [0, 1]), [2, 3, 4]), once)
    laws.assert_same(laws.condition(laws.condition(laws.gp, [4, 3]), [1, 2, 0]), once)


def test_absorbing_in_two_parts_equals_at_once_in_any_order(laws):
    def absorbed(*parts):
        gp = laws.gp
        for rows in parts:
            X, Y = laws.X[..., rows, :], laws.Y[..., rows, :]
            gp, _ = gp.absorb(X, Y, noise_variance=laws.noise, inducing="keep")
        return gp

    once = absorbed([0, 1, 2, 3, 4])
    laws.assert_same(absorbed([0, 1], [2, 3, 4]), once)
    laws.assert_same(absorbed([4, 3], [1, 2, 0]), once)


def test_the_variance_never_grows_and_the_original_is_untouched(laws):
    before, original = laws.gp.predict(laws.W), copy.deepcopy(laws.gp)
    after = laws.condition(laws.gp, slice(None)).predict(laws.W).variance
    absorbed, _ = laws.gp.absorb(laws.X, laws.Y, noise_variance=laws.noise, inducing="keep")
    assert (after <= before.variance + laws.limits["atol"]).all()
    assert (absorbed.predict(laws.W).variance <= before.variance + laws.limits["atol"]).all()
    assert torch.equal(original.predict(laws.W).covariance, laws.gp.predict(laws.W).covariance)


def test_merging_and_unlearning_are_exact(laws):
    def learned(gp, rows):
        X, Y = laws.X[..., rows, :], laws.Y[..., rows, :]
        return gp.absorb(X, Y, noise_variance=laws.noise, inducing="keep")[0]

    a, b = learned(laws.prior, [0, 1]), learned(laws.prior, [2, 3, 4])
    both = learned(a, [2, 3, 4])
    laws.assert_same(sg.merge([a, b]), both)
    laws.assert_same(sg.merge([b, a]), both)
    X, Y = laws.X[..., 2:, :], laws.Y[..., 2:, :]
    laws.assert_same(both.unlearn(X, Y, noise_variance=laws.noise)[0], a)
    with pytest.raises(ValueRangeError, match="Unlearn what was absorbed, with the same noise variances"):
        laws.prior.unlearn(X, Y, noise_variance=laws.noise)


def test_a_long_stream_stays_as_large_as_it_was(laws, rng):
    gp = laws.gp
    for _ in range(10):
        X = torch.rand(*laws.gp.batch_shape, 2, 2, generator=rng, dtype=torch.float64).to(laws.X.dtype)
        gp, _ = gp.absorb(X, laws.Y[..., :2, :], noise_variance=laws.noise)
        assert gp.sparse_gp.num_inducing == laws.gp.sparse_gp.num_inducing == 8
    assert torch.isfinite(gp.predict(laws.W).mean).all()
