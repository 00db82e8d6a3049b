import numpy as np
import pytest
import torch
from torch.testing import assert_close

from streamgp.streaming.bends import Bends
from streamgp.testing.tolerances import rounding


def _columns(n=400):
    """A normal, a log-normal, a mostly zero, a binary, a constant and a uniform column."""
    numbers = np.random.default_rng(0)
    z = numbers.standard_normal(n)
    rain = np.where(numbers.random(n) < 0.7, 0.0, np.exp(3.0 * numbers.standard_normal(n)))
    columns = [z, np.exp(2.0 * z), rain, numbers.random(n) < 0.1, np.full(n, 7.0), np.arange(n)]
    return torch.from_numpy(np.stack(columns, -1).astype(float))


def test_columns_with_long_tails_are_bent_and_no_others():
    assert Bends.of(_columns(), is_kept=False).columns == (1, 2)


def test_few_rows_do_not_show_long_tails():
    assert Bends.of(_columns(7), is_kept=False).columns == ()


def test_bending_spreads_a_long_tail_out():
    X = _columns()
    bent = Bends.of(X, is_kept=False).bend(X.numpy())[:, 1]
    assert np.abs(bent - bent.mean()).max() < 4.0 * bent.std()
    straight = X.numpy()[:, 1]
    assert np.abs(straight - straight.mean()).max() > 8.0 * straight.std()


@pytest.mark.parametrize("is_kept", [False, True])
def test_what_is_straightened_is_what_was_bent(is_kept):
    X = _columns()
    bends = Bends.of(X, is_kept=is_kept)
    bent = torch.from_numpy(bends.bend(X.numpy()))
    assert bent.shape[-1] == (8 if is_kept else 6)
    if is_kept:
        assert torch.equal(bent[:, 6:], X[:, [1, 2]])
    assert_close(bends.straighten(bent), X, **rounding(X.dtype, scale=float(X.abs().max())))


def test_nothing_is_copied_where_nothing_is_bent():
    x = _columns().numpy()
    assert Bends().bend(x) is x


def test_slopes_are_those_around_the_middle():
    X = _columns()
    bends = Bends.of(X, is_kept=False)
    middle = np.tile(np.median(X.numpy(), 0), (6, 1))
    step = 1e-6 * np.eye(6)
    measured = np.diag(bends.bend(middle + step) - bends.bend(middle - step)) / 2e-6
    assert_close(bends.slopes(6), torch.from_numpy(measured), **rounding(X.dtype, scale=1e6))
