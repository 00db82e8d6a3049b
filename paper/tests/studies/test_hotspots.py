import json
from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from paper.datasets import Hotspots
from paper.schema.configuration import SCALES, read_configuration
from paper.studies import hotspots
from paper.studies.hotspots import STUDY, HotspotSettings, scale_inputs, village_kernel
from streamgp.errors import OptionError
from streamgp.testing.tolerances import rounding

MICRO = HotspotSettings(
    total_count=20,
    num_initial=10,
    num_queries=2,
    kernel="matern32",
    has_spatial_part=False,
    scaling="initial_range",
    priors="paper",
    beta=1.0,
    num_starts=1,
    max_iterations=5,
    refit_interval=2,
    is_clipped=True,
    predictor="mean",
    num_trees=5,
    num_folds=3,
    least_leaf=2,
    forest_smoothness=0.5,
    forest_interval=2,
)
NAMES = tuple("abcdefgh")


def small_country(country: str) -> Hotspots:
    rng = torch.Generator().manual_seed(5)
    inputs = torch.rand(30, 8, generator=rng, dtype=torch.float64)
    return Hotspots(country, NAMES, inputs, torch.sigmoid(4.0 * inputs[:, 0] - 4.0), 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["svgp-entropy", "forest-adaptive"])
def test_a_method_returns_scores_of_every_step_and_a_map_of_the_first_seed(monkeypatch, method):
    monkeypatch.setattr(hotspots, "load_hotspots", small_country)
    outcome = STUDY.run("civ", method, 0, MICRO)
    json.dumps(outcome, allow_nan=False)
    assert outcome["num_villages"] == [10, 11, 12]
    assert [len(outcome[name]) for name in ("accuracy", "error", "fit_seconds", "choice_seconds")] == [3, 3, 3, 2]
    assert all(0.0 <= accuracy <= 1.0 for accuracy in outcome["accuracy"])
    assert all(0.0 < error < 1.0 for error in outcome["error"])
    assert len(set(outcome["visited"])) == 12
    assert {len(values) for values in outcome["map"].values()} == {30}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["svgp-response", "svgp-exceedance", "svgp-variance"])
def test_other_rules_choose_a_village(monkeypatch, method):
    monkeypatch.setattr(hotspots, "load_hotspots", small_country)
    outcome = STUDY.run("civ", method, 1, replace(MICRO, num_queries=1, priors="none", max_iterations=2))
    assert len(set(outcome["visited"])) == 11


@pytest.mark.slow
def test_models_share_the_first_and_the_random_villages(monkeypatch):
    monkeypatch.setattr(hotspots, "load_hotspots", small_country)
    settings = replace(MICRO, num_queries=1)
    first, second = (STUDY.run("civ", f"{model}-random", 1, settings) for model in ("svgp", "forest"))
    assert first["visited"] == second["visited"]
    assert "map" not in first


def test_scalings_have_the_range_that_they_promise(rng):
    inputs = 50.0 + 9.0 * torch.randn(20, 3, generator=rng, dtype=torch.float64)
    initial = torch.arange(6)
    first = scale_inputs(inputs, initial, "initial_range")[initial]
    assert_close(first.amin(0), torch.zeros(3, dtype=torch.float64))
    assert_close(first.amax(0), torch.ones(3, dtype=torch.float64))
    for scaling in ("pool_range", "pool_ranks"):
        scaled = scale_inputs(inputs, initial, scaling)
        assert_close(scaled.amin(0), torch.zeros(3, dtype=torch.float64))
        assert_close(scaled.amax(0), torch.ones(3, dtype=torch.float64))
        assert (scaled.argsort(0) == inputs.argsort(0)).all()
    deviations = scale_inputs(inputs, initial, "pool_deviation")
    assert_close(deviations.std(0), torch.ones(3, dtype=torch.float64))
    with pytest.raises(OptionError, match="scaling must be one of"):
        scale_inputs(inputs, initial, "no")


def test_the_spatial_part_adds_a_kernel_of_the_coordinates(rng):
    X = torch.rand(5, 8, generator=rng, dtype=torch.float64)
    moved = X.clone()
    moved[:, 2:] += 100.0
    alone, both = (village_kernel(replace(MICRO, has_spatial_part=part), 8) for part in (False, True))
    assert_close(
        alone(X, moved).to_dense(), torch.zeros(5, 5, dtype=torch.float64), **rounding(torch.float64, condition=1e4)
    )
    assert (both(X, moved).to_dense().diagonal() > 0.5).all()
    with pytest.raises(OptionError, match="kernel must be one of"):
        village_kernel(replace(MICRO, kernel="cosine"), 8)


@pytest.mark.parametrize("scale", SCALES)
def test_the_settings_that_come_with_it_can_be_read(scale):
    assert isinstance(read_configuration(STUDY, scale).settings, HotspotSettings)
