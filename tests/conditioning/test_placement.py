import pytest
import torch
from tests.support.problems import random_feature_gp, random_observations, random_sparse_gp

from streamgp.conditioning.placement import check_inducing_points, place
from streamgp.errors import OptionError, ShapeError


def placed(gp, new, inducing, *, num_inducing=None):
    observation = new.read_for(gp).detach_and_expand(gp.process.batch_shape)
    return place(gp.process, observation, inducing, num_inducing=num_inducing, prior=None, retention=1.0)


def test_a_belief_that_keeps_its_points_stays_as_it_is(rng):
    gp, new = random_sparse_gp(rng).gp, random_observations(rng, num_observations=3)
    process, _, carried = placed(gp, new, "keep")
    assert process is gp.process
    assert carried == (0, 0.0, 0)


@pytest.mark.parametrize("batch_shape", [(), (2, 1)])
def test_points_that_are_given_are_where_the_belief_goes(rng, batch_shape):
    gp = random_sparse_gp(rng, batch_shape=batch_shape).gp
    new = random_observations(rng, num_observations=3, batch_shape=batch_shape)
    points = torch.rand(4, 2, generator=rng, dtype=torch.float64)
    process, _, _ = placed(gp, new, points)
    assert torch.equal(process.inducing_points, points.expand(*batch_shape, 4, 2))


@pytest.mark.parametrize("num_observations", [1, 3])
def test_as_many_points_are_chosen_as_were_asked_for(rng, num_observations):
    gp, new = random_sparse_gp(rng).gp, random_observations(rng, num_observations=num_observations)
    process, _, _ = placed(gp, new, "pivoted", num_inducing=7)
    assert process.num_inducing == 7


def test_a_number_of_points_is_refused_where_there_are_features(rng):
    gp, new = random_feature_gp(rng).gp, random_observations(rng, num_observations=3)
    with pytest.raises(OptionError, match="num_inducing=7 was asked for, but the belief is about the weights of 3 fe"):
        placed(gp, new, "pivoted", num_inducing=7)


def test_points_have_a_row_each(rng):
    with pytest.raises(ShapeError, match=r"inducing must have shape \(\.\.\., m, d\) with at least one point"):
        check_inducing_points(torch.rand(3), "inducing")
