import pytest
import torch

from streamgp.cli.demo.conditioning import Belief, distance, make_problem, play_conditioning
from streamgp.testing.tolerances import judgement, within


def test_a_seed_makes_the_same_data_again():
    first, second, other = make_problem(3), make_problem(3), make_problem(4)
    assert torch.equal(first.inputs, second.inputs)
    assert torch.equal(first.new_targets, second.new_targets)
    assert not torch.equal(first.inputs, other.inputs)


def test_new_inputs_lie_beyond_the_first_ones():
    problem = make_problem(0)
    assert problem.inputs.shape == (100, 1)
    assert problem.new_inputs.shape == (25, 1)
    assert 2.5 <= problem.new_inputs.min() <= problem.new_inputs.max() <= 5.5


def test_targets_are_the_function_with_noise_of_variance_one_hundredth():
    problems = [make_problem(seed) for seed in range(20)]
    errors = torch.cat([p.targets - torch.sin(2 * p.inputs[:, 0].abs() + p.inputs[:, 0] ** 2 / 2) for p in problems])
    # Two thousand of them: the standard error of the variance is 3 %.
    assert errors.square().mean().item() == pytest.approx(0.01, **within(judgement(relative=0.15)))


def test_the_distance_follows_its_definition():
    ones = torch.ones(4, dtype=torch.float64)
    reference = Belief(mean=0 * ones, variance=4 * ones)
    belief = Belief(mean=torch.tensor([0.0, 0.0, 0.0, -6.0], dtype=torch.float64), variance=ones)
    assert distance(belief, reference) == 3.0


@pytest.mark.slow
def test_the_sparse_gp_stays_close_to_the_exact_one_through_conditioning():
    scene = play_conditioning(seed=1, track=list)
    for sparse, exact in zip(scene.sparse, scene.exact, strict=True):
        assert distance(sparse, exact) < 0.05
        assert torch.allclose(sparse.variance.sqrt(), exact.variance.sqrt(), **judgement(relative=0.05, absolute=0.005))
    assert "25 inducing points learned 100 observations" in scene.sentences()
    assert "conditioned on 25 new ones" in scene.sentences()
