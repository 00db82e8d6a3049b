import pytest
import torch

from streamgp.cli.demo.tuning import play_tuning, random_search, yield_of


def test_the_best_settings_are_on_the_narrower_hill():
    hills = torch.tensor([[180.0, 42.0], [222.0, 25.0]], dtype=torch.float64)
    broad, narrow = yield_of(hills).tolist()
    assert narrow > broad + 5
    assert narrow < 100


def test_random_search_never_loses_what_it_has_found():
    found = random_search(12, torch.Generator().manual_seed(0))
    assert (found.diff(dim=-1) >= 0).all()
    assert found[:, -1].mean() > found[:, 0].mean() + 10


@pytest.mark.slow
def test_tries_are_within_the_bounds_and_the_recommended_one_is_among_them():
    scene = play_tuning(seed=0, num_tries=8, track=list)
    assert scene.X.shape == (8, 2)
    assert 150 <= scene.X[:, 0].min() <= scene.X[:, 0].max() <= 250
    assert 10 <= scene.X[:, 1].min() <= scene.X[:, 1].max() <= 60
    assert torch.eq(scene.X, scene.best).all(-1).any()
    assert "8 settings of an oven were tried" in scene.sentences()
