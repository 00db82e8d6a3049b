import torch
from torch.testing import assert_close

from streamgp.experiments.baselines.resampling import resample_points


def test_one_point_gives_way_to_the_new_input(rng):
    points, x = torch.arange(5.0).unsqueeze(-1), torch.tensor([[9.0]])
    found = resample_points(points, x, rng)
    assert found.shape == points.shape
    assert_close(found[-1:], x)
    assert set(found.flatten().tolist()) - {9.0} < set(points.flatten().tolist())


def test_every_point_gives_way_at_some_time(rng):
    points, x = torch.arange(3.0).unsqueeze(-1), torch.tensor([[9.0]])
    left = {tuple(sorted(resample_points(points, x, rng).flatten().tolist())) for _ in range(40)}
    assert left == {(1.0, 2.0, 9.0), (0.0, 2.0, 9.0), (0.0, 1.0, 9.0)}
