import torch
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

from streamgp.conditioning.selection import choose_inducing_points, site_information
from streamgp.testing.tolerances import rounding


def test_points_are_chosen_among_old_ones_and_inputs_without_repetition(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=9)
    chosen = choose_inducing_points(gp.process, new.read_for(gp), num_inducing=8, prior=gp.process.prior)
    candidates = torch.cat([gp.inducing_points, new.inputs])
    assert (chosen.unsqueeze(1) == candidates).all(-1).any(-1).all()
    assert len(chosen.unique(dim=0)) == 8


def test_old_points_that_are_retained_at_any_price_are_chosen_again(rng):
    gp = random_sparse_gp(rng).gp
    new = random_observations(rng, num_observations=2)
    assert (
        choose_inducing_points(gp.process, new.read_for(gp), num_inducing=6, prior=gp.process.prior, retention=1e12)
        is None
    )


def test_the_information_is_the_diagonal_of_the_site(rng):
    gp = random_sparse_gp(rng).gp
    L = gp.process.factor
    S, K = L @ gp.whitened_covariance @ L.T, L @ L.T
    condition = torch.linalg.cond(S).item()
    scale = S.inverse().abs().max().item()
    expected = (S.inverse() - K.inverse()).diagonal()
    assert_close(site_information(gp.process), expected, **rounding(L.dtype, condition=condition, scale=scale))
