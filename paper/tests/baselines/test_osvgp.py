"""The uncollapsed streaming bound: its best q is that of the collapsed one, which it then equals."""

import pytest
import torch
from torch.testing import assert_close

from paper.baselines.osgpr import StreamBlocks
from paper.baselines.osvgp import ValueBelief, stream_osvgp, uncollapsed_bound
from paper.baselines.streaming_bound import CarriedSite, StreamParameters, streaming_bound
from streamgp.testing.tolerances import tolerance

JITTER = 1e-6


@pytest.fixture
def rows(rng):
    X = 2.0 * torch.rand(14, 1, generator=rng, dtype=torch.float64) - 1.0
    return X, torch.sin(6.0 * X).squeeze(-1) + 0.1 * torch.randn(14, generator=rng, dtype=torch.float64)


def parameters_of(points, lengthscale=0.4, noise=0.05):
    logs = (torch.tensor(value, dtype=torch.float64).log() for value in (lengthscale, noise))
    return StreamParameters(*logs, points)


def belief_of(site: CarriedSite) -> ValueBelief:
    """The belief that is the prior times a site."""
    whitened = torch.linalg.inv(torch.eye(len(site.pull), dtype=torch.float64) + site.precision)
    covariance = site.factor @ whitened @ site.factor.mT
    root = torch.linalg.cholesky(0.5 * (covariance + covariance.mT))
    return ValueBelief(site.points, site.factor @ whitened @ site.pull, root, site.factor @ site.factor.mT)


@pytest.mark.parametrize("has_old", [False, True])
def test_at_the_collapsed_optimum_it_is_flat_in_q_and_equal_to_the_collapsed_bound(rows, has_old):
    X, y = rows
    carried = streaming_bound(parameters_of(X[:4]), None, X[:8], y=y[:8], jitter=JITTER).site if has_old else None
    values, gaps = [], []
    for lengthscale in (0.4, 0.6):
        new = parameters_of(X[3:9] + 0.05, lengthscale)
        collapsed = streaming_bound(new, carried, X[8:], y=y[8:], jitter=JITTER)
        best, old = belief_of(collapsed.site), None if carried is None else belief_of(carried)
        mean, root = best.mean.clone().requires_grad_(), best.root.clone().requires_grad_()
        value = uncollapsed_bound(new, (mean, root.tril()), old, X=X[8:], y=y[8:], jitter=JITTER)
        for gradient in torch.autograd.grad(value, (mean, root)):
            assert gradient.abs().max() < 1e-4 * (1.0 + value.abs())
        values.append(value.detach())
        gaps.append(value.detach() - collapsed.value)
    # They differ by a constant of what was believed before, whatever the parameters; there is none without it. Rounding
    # is that of kernel matrices whose condition number the jitter of 1e-6 bounds.
    scale = 1e6 * float(values[0].abs())
    assert_close(gaps[0], gaps[1] if has_old else torch.zeros_like(gaps[0]), **tolerance(torch.float64, scale=scale))


def test_other_beliefs_have_smaller_bounds(rows, rng):
    X, y = rows
    new = parameters_of(X[:6])
    best = belief_of(streaming_bound(new, None, X, y=y, jitter=JITTER).site)
    top = uncollapsed_bound(new, (best.mean, best.root), None, X=X, y=y, jitter=JITTER)
    for _ in range(5):
        mean = best.mean + 0.1 * torch.randn(6, generator=rng, dtype=torch.float64)
        assert uncollapsed_bound(new, (mean, best.root), None, X=X, y=y, jitter=JITTER) < top
        assert uncollapsed_bound(new, (best.mean, 1.2 * best.root), None, X=X, y=y, jitter=JITTER) < top


@pytest.mark.parametrize("block", [1, 4])
@pytest.mark.parametrize("beta", [1.0, 1e-3])
def test_states_come_after_every_block_and_stay_as_they_are(rows, block, beta):
    X, y = rows
    stream = stream_osvgp(X, y, StreamBlocks(8, 5, block, 10), jitter=1e-3, beta=beta)
    grid = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64).unsqueeze(-1)
    first = next(stream)
    before = first.predict(grid)
    later = list(stream)
    assert [state.num_seen for state in later] == [min(end, 6) for end in range(block, 6 + block, block)]
    assert_close(first.predict(grid), before)
    mean, variance = later[-1].predict(grid)
    assert mean.isfinite().all()
    assert (variance >= 0.0).all()
