import pytest
import torch
from torch.testing import assert_close

from paper.active_learning.pixels import ExactSurveyor, PixelPool, SparseSurveyor, WiskiSurveyor
from streamgp.testing.tolerances import judgement

FIRST = torch.arange(8)


@pytest.fixture
def pool(rng) -> PixelPool:
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    y = 0.3 + 0.2 * torch.sin(5.0 * X[:, 0])
    return PixelPool(X, y, (0.1 * y).square() + 1e-4, torch.arange(30), refit_every=6, seed=0)


def test_the_pixels_that_are_left_are_those_not_measured(pool):
    assert pool.left(torch.arange(38)).tolist() == [38, 39]


@pytest.mark.slow
@pytest.mark.parametrize(
    "start",
    [
        lambda pool: SparseSurveyor.start(pool, FIRST, num_inducing=40),
        lambda pool: ExactSurveyor.start(pool, FIRST, num_candidates=40),
        lambda pool: WiskiSurveyor.start(pool, FIRST, grid_size=8),
    ],
    ids=["sparse", "exact", "wiski"],
)
def test_choices_are_new_pixels_and_lower_the_uncertainty(pool, start):
    surveyor = start(pool)
    before = surveyor.predict(pool.X)[1].mean()
    chosen = surveyor.choose(3)
    assert len(set(chosen.tolist()) - set(FIRST.tolist())) == 3
    after = surveyor.measure(chosen).predict(pool.X)[1].mean()
    assert after < before


@pytest.mark.slow
def test_a_sparse_gp_with_all_points_and_an_exact_gp_agree(pool):
    sparse = SparseSurveyor.start(pool, FIRST, num_inducing=40)
    exact = ExactSurveyor.start(pool, FIRST, num_candidates=40)
    # Both maximize the same objective, each with its own optimizer.
    assert_close(sparse.predict(pool.X)[0], exact.predict(pool.X)[0], **judgement(absolute=0.02))
