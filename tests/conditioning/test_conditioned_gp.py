import torch
from tests.support.conditioning_laws import condition
from tests.support.problems import random_observations, random_sparse_gp

import streamgp as sg
from streamgp.likelihoods import Poisson


def test_observations_are_counted_along_a_chain(rng):
    gp, new = random_sparse_gp(rng).gp, random_observations(rng, num_observations=4)
    once = condition(gp, new)
    assert once.num_observations == 4
    assert condition(once, new).num_observations == 8
    assert repr(once).startswith("ConditionedGP(num_observations=4, num_inducing=6")


def test_sites_are_told_of_where_there_are_some(rng):
    gp, new = random_sparse_gp(rng).gp, random_observations(rng, num_observations=4)
    assert condition(gp, new).site_info is None
    assert gp.condition(new.inputs, new.targets.abs().round(), likelihood=Poisson()).site_info.is_converged.all()


def test_what_was_saved_predicts_the_same_bits_and_can_be_conditioned_again(rng, tmp_path):
    gp, new = random_sparse_gp(rng).gp, random_observations(rng, num_observations=4)
    conditioned = condition(gp, new)
    conditioned.save(tmp_path / "gp")
    loaded = sg.load(tmp_path / "gp")
    W = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    for one, other in ((loaded, conditioned), (condition(loaded, new), condition(conditioned, new))):
        assert torch.equal(one.predict(W).mean, other.predict(W).mean)
        assert torch.equal(one.predict(W).covariance, other.predict(W).covariance)
