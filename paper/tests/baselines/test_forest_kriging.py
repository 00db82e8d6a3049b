import pytest
import torch
from torch.testing import assert_close

from paper.baselines.forest_kriging import ForestKriging, ForestSettings, Villages, forest_logits

SETTINGS = ForestSettings(num_trees=10, num_folds=4, least_leaf=2, smoothness=0.5)
TOTAL = 50


@pytest.fixture
def survey(rng) -> tuple[Villages, torch.Tensor, torch.Tensor]:
    coordinates = 3.0 * torch.rand(40, 2, generator=rng, dtype=torch.float64)
    covariates = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    logit = 4.0 * (covariates[:, 0] > 0.5).double() - 2.0
    counts = torch.binomial(torch.full_like(logit, TOTAL), logit.sigmoid(), generator=rng)
    visited = torch.arange(24)
    return Villages(coordinates, covariates, TOTAL), visited, counts[visited]


def test_a_forest_that_has_not_seen_a_village_does_not_know_its_count(survey):
    villages, visited, counts = survey
    unseen, fitted = forest_logits(villages, visited, counts, settings=SETTINGS, seed=0)
    changed = counts.clone()
    changed[0] = TOTAL - counts[0]
    unseen_after, fitted_after = forest_logits(villages, visited, changed, settings=SETTINGS, seed=0)
    assert_close(unseen_after[0], unseen[0])
    assert (fitted_after[0] - fitted[0]).abs() > 0.1
    assert unseen.shape == (24,)
    assert fitted.shape == (40,)


def test_forests_learn_what_the_covariates_say_and_not_where_a_village_lies(survey):
    villages, visited, counts = survey
    elsewhere = Villages(villages.coordinates + 5.0, villages.covariates, TOTAL)
    unseen, fitted = forest_logits(villages, visited, counts, settings=SETTINGS, seed=0)
    assert_close(forest_logits(elsewhere, visited, counts, settings=SETTINGS, seed=0), (unseen, fitted))
    is_high = villages.covariates[:, 0] > 0.5
    assert fitted[is_high].mean() > fitted[~is_high].mean() + 1.0


@pytest.mark.slow
def test_the_kriging_separates_high_from_low_prevalence_and_learns_in_closed_form(survey):
    villages, visited, counts = survey
    model = ForestKriging.fit(villages, visited, counts, settings=SETTINGS, seed=0)
    mean, variance = model.predict()
    is_high = villages.covariates[24:, 0] > 0.5
    assert ((mean[24:] > 0.0) == is_high).double().mean() > 0.8
    new = torch.tensor([30])
    after_mean, after_variance = model.observe(new, torch.tensor([float(TOTAL)], dtype=torch.float64)).predict()
    assert after_mean[30] > mean[30]
    assert after_variance[30] < variance[30]
    assert_close(model.predict()[0], mean)
