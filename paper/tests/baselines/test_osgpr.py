import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.means import ZeroMean
from tests.support.reference import sgpr
from torch.testing import assert_close

from paper.baselines.osgpr import StreamBlocks, stream_osgpr
from streamgp.testing.tolerances import tolerance


@pytest.fixture
def rows(rng):
    X = 2.0 * torch.rand(14, 1, generator=rng, dtype=torch.float64) - 1.0
    return X, torch.sin(6.0 * X).squeeze(-1) + 0.1 * torch.randn(14, generator=rng, dtype=torch.float64)


def test_the_first_fit_predicts_as_sparse_regression_with_its_parameters(rows):
    X, y = rows
    state = next(stream_osgpr(X[:8], y[:8], StreamBlocks(8, 5, 1, 30), jitter=1e-6))
    kernel = RBFKernel().double()
    kernel.lengthscale = state.parameters.log_lengthscale.exp()
    noise = state.parameters.log_noise.exp() * torch.eye(8, dtype=torch.float64)
    grid = torch.linspace(-1.0, 1.0, 7, dtype=torch.float64).unsqueeze(-1)
    expected = sgpr(kernel, ZeroMean(), state.site.points, X[:8], y[:8], noise, grid, jitter=1e-6)
    mean, variance = state.predict(grid)
    assert_close(mean, expected.mean, **tolerance(torch.float64, scale=1e3))
    assert_close(variance, expected.covariance.diagonal(), **tolerance(torch.float64, scale=1e3))


@pytest.mark.parametrize("block", [1, 4])
def test_states_come_after_the_first_fit_and_after_every_block(rows, block):
    X, y = rows
    states = list(stream_osgpr(X, y, StreamBlocks(8, 5, block, 10), jitter=1e-6))
    assert [state.num_seen for state in states] == [0, *(min(end, 6) for end in range(block, 6 + block, block))]
    assert states[0].lost_trace == 0.0


def test_earlier_states_are_untouched_by_later_rows(rows):
    X, y = rows
    grid = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64).unsqueeze(-1)
    stream = stream_osgpr(X, y, StreamBlocks(8, 5, 1, 10), jitter=1e-6)
    first = next(stream)
    before, _ = first.predict(grid)
    later = list(stream)[-1]
    assert_close(first.predict(grid)[0], before)
    assert not torch.equal(first.site.points, later.site.points)
