import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

from paper.baselines.absorbing import absorb_row, printed_points, resample_points
from streamgp.conditioning import SparseGP
from streamgp.testing.tolerances import approximation

X, Y = torch.tensor([[0.4]], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)


@pytest.fixture
def gp():
    points = torch.linspace(-1.0, 1.0, 4, dtype=torch.float64).unsqueeze(-1)
    return SparseGP.from_prior(ScaleKernel(RBFKernel()), points)


@pytest.mark.parametrize(("policy", "inducing"), [("pivoted", "pivoted"), ("fixed", "keep")])
def test_policies_without_chance_are_those_of_absorb(gp, rng, policy, inducing):
    found = absorb_row(gp, X, Y, policy=policy, noise_variance=0.1, generator=rng)
    expected, _ = gp.absorb(X, Y, noise_variance=0.1, inducing=inducing)
    assert_close(found.inducing_points, expected.inducing_points)
    assert_close(found.predict(X).mean, expected.predict(X).mean)


def test_resampling_puts_a_point_at_the_row_and_learns_from_it(gp, rng):
    found = absorb_row(gp, X, Y, policy="resample", noise_variance=0.1, generator=rng)
    assert found.num_inducing == gp.num_inducing
    assert_close(found.inducing_points[-1:], X)
    # The row is at an inducing point: exact regression on one observation.
    prior = gp.predict(X).variance
    assert_close(found.predict(X).mean, prior / (prior + 0.1), **approximation(1e-6, "jitter"))


def test_one_point_gives_way_to_the_new_input(rng):
    points, x = torch.arange(5.0).unsqueeze(-1), torch.tensor([[9.0]])
    found = resample_points(points, x, rng)
    assert found.shape == points.shape
    assert_close(found[-1:], x)
    assert set(found.flatten().tolist()) - {9.0} < set(points.flatten().tolist())


def test_every_point_gives_way_at_some_time(rng):
    points, x = torch.arange(3.0).unsqueeze(-1), torch.tensor([[9.0]])
    left = {tuple(sorted(resample_points(points, x, rng).flatten().tolist())) for _ in range(40)}
    assert left == {(1.0, 2.0, 9.0), (0.0, 2.0, 9.0), (0.0, 1.0, 9.0)}


def test_points_by_the_printed_rule_are_pivots_of_the_dense_weighted_matrix(gp):
    gp, _ = gp.absorb(
        torch.linspace(-1.0, 0.1, 9, dtype=torch.float64).unsqueeze(-1),
        torch.zeros(9, dtype=torch.float64),
        noise_variance=0.1,
    )
    candidates = torch.cat([gp.inducing_points, X])
    K = gp.kernel(candidates).to_dense()
    Kzz = K[:-1, :-1]
    covariance = gp.predict(gp.inducing_points, covariance=True).covariance
    information = (torch.linalg.inv(covariance) - torch.linalg.inv(Kzz)).diagonal()
    root = torch.cat([information.clamp_min(0.0), torch.tensor([10.0], dtype=torch.float64)]).sqrt()
    left, kept = root[:, None] * K * root, []
    for _ in range(gp.num_inducing):
        kept.append(int(left.diagonal().argmax()))
        column = left[:, kept[-1]]
        left = left - column[:, None] * column / column[kept[-1]]
    found = printed_points(gp, X, 0.1)
    assert len(candidates) - 1 in kept
    assert_close(found, candidates[sorted(kept)])
