import pytest
import torch
from tests.support.conditioning_laws import condition
from tests.support.problems import random_observations, random_sparse_gp
from torch.testing import assert_close

import streamgp as sg
from streamgp.likelihoods import Poisson
from streamgp.sites import DenseBelief, SiteRule, find_sites
from streamgp.testing.tolerances import tolerance


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


@pytest.mark.parametrize("rows", ["values", "averages"])
def test_the_rule_of_the_paper_finds_sites_under_the_prior_whatever_is_believed(rng, rows):
    gp = random_sparse_gp(rng).gp
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    told = X if rows == "values" else sg.evidence.average(X, [0, 0, 1, 1, 2, 3])
    y = torch.tensor([0.0, 3.0, 1.0, 2.0, 0.0, 1.0], dtype=torch.float64)[: 6 if rows == "values" else 4]
    prior = gp.process.prior
    sites, _ = find_sites(DenseBelief(prior.mean(told), prior.covariance(told, told)), Poisson(), y, SiteRule("paper"))
    found = gp.condition(told, y, likelihood=Poisson(), sites="paper").predict(X)
    same = gp.condition(told, sites.targets, noise_variance=sites.variance).predict(X)
    assert_close(found.mean, same.mean, **tolerance(torch.float64))
    assert_close(found.variance, same.variance, **tolerance(torch.float64))
