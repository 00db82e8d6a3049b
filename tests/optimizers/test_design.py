import torch

from streamgp.optimizers.design import apart, candidates_around, derived_seed, sobol_points


def nearest(points, others):
    return (points.unsqueeze(1) - others).abs().amax(-1).min()


def test_a_sequence_goes_on_where_it_was_left():
    whole = sobol_points(10, 3, seed=5)
    parts = torch.cat([sobol_points(4, 3, seed=5), sobol_points(6, 3, seed=5, skip=4)])
    assert torch.equal(parts, whole)
    assert not torch.equal(sobol_points(10, 3, seed=6), whole)


def test_seeds_differ_by_any_counter_and_repeat():
    seeds = {derived_seed(seed, ask, use) for seed in range(5) for ask in range(5) for use in range(5)}
    assert len(seeds) == 125
    assert derived_seed(3, 4) == derived_seed(3, 4)


def test_candidates_are_in_the_cube_and_crowd_around_the_centres(rng):
    centres = torch.tensor([[0.9, 0.1, 0.5]], dtype=torch.float64)
    drawn = candidates_around(centres, 400, generator=rng)
    assert drawn.shape == (400, 3)
    assert ((drawn >= 0) & (drawn <= 1)).all()
    near = ((drawn - centres).abs().amax(-1) < 0.05).double().mean()
    assert near > 0.1  # a uniform draw has 0.1 ** 3


def test_points_that_are_new_stay(rng):
    points = torch.tensor([[0.1, 0.1], [0.9, 0.9]], dtype=torch.float64)
    assert torch.equal(apart(points, points[:0], seed=0), points)
    assert torch.equal(apart(points, points + 0.05, seed=0), points)


def test_points_that_repeat_are_replaced():
    taken = torch.tensor([[0.5, 0.5]], dtype=torch.float64)
    points = torch.cat([taken + 1e-4, taken, taken - 0.3, taken - 0.3])
    new = apart(points, taken, seed=0)
    assert torch.equal(new[2], points[2])
    everything = torch.cat([taken, new])
    for i, point in enumerate(everything):
        others = torch.cat([everything[:i], everything[i + 1 :]])
        assert nearest(point.unsqueeze(0), others) >= 5e-3


def test_a_cube_that_is_full_gives_the_loneliest_point():
    taken = torch.linspace(0, 1, 300, dtype=torch.float64).unsqueeze(-1)
    new = apart(taken[:1], taken, seed=0)
    assert nearest(new, taken) > 0
