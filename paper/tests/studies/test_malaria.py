import json
import math

import pytest
import torch

from paper.datasets import Malaria
from paper.schema.configuration import SCALES, read_configuration
from paper.studies import malaria
from paper.studies.malaria import STUDY, MalariaSettings

MICRO = MalariaSettings(
    num_initial=6,
    num_steps=2,
    batch_size=2,
    num_test=20,
    num_pool=40,
    num_targets=15,
    num_candidates=10,
    num_inducing=8,
    grid_size=6,
    refit_interval=1,
    noise="standin",
    num_pixels=7,
)


def small_country(seed: int, *, num_test: int, noise: str) -> Malaria:
    X = torch.rand(60, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    y = 0.3 + 0.2 * torch.sin(5.0 * X[:, 0]) * X[:, 1]
    pool, test = slice(num_test, None), slice(num_test)
    return Malaria(X[pool], y[pool], (0.2 * y[pool]).square() + 1e-6, X[test], y[test], 10.0 * X[pool], 10.0 * X[test])


@pytest.mark.slow
@pytest.mark.parametrize("method", STUDY.methods)
def test_each_method_returns_errors_of_every_step_and_a_map_of_the_first_seed(monkeypatch, method):
    monkeypatch.setattr(malaria, "load_malaria", small_country)
    outcome = STUDY.run("nigeria", method, 0, MICRO)
    json.dumps(outcome, allow_nan=False)
    assert outcome["num_points"] == [6, 8, 10]
    assert len(outcome["rmse"]) == 3
    assert all(math.isfinite(error) for error in outcome["rmse"])
    assert len({tuple(place) for place in outcome["chosen"]}) == 10
    assert {len(values) for values in outcome["map"].values()} == {7}


@pytest.mark.slow
def test_random_choices_are_the_same_for_all_models(monkeypatch):
    monkeypatch.setattr(malaria, "load_malaria", small_country)
    chosen = [STUDY.run("nigeria", f"{model}-random", 0, MICRO)["chosen"] for model in ("svgp", "exact")]
    assert chosen[0] == chosen[1]


def test_later_seeds_keep_no_map(monkeypatch):
    monkeypatch.setattr(malaria, "load_malaria", small_country)
    assert set(STUDY.run("nigeria", "exact-random", 1, MICRO)) == {"num_points", "rmse"}


@pytest.mark.parametrize("scale", SCALES)
def test_the_settings_that_come_with_it_can_be_read(scale):
    assert isinstance(read_configuration(STUDY, scale).settings, MalariaSettings)
