import torch

from streamgp.seeds import sobol_points


def test_a_sequence_goes_on_where_it_was_left():
    whole = sobol_points(10, 3, seed=5)
    parts = torch.cat([sobol_points(4, 3, seed=5), sobol_points(6, 3, seed=5, skip=4)])
    assert torch.equal(parts, whole)
    assert not torch.equal(sobol_points(10, 3, seed=6), whole)
