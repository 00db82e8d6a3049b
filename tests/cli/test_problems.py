import torch

from streamgp.cli.problems import make_problem


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


def test_targets_are_the_function_without_noise():
    problem = make_problem(0)
    x = problem.inputs[:, 0]
    torch.testing.assert_close(problem.targets, torch.sin(2 * x.abs() + x**2 / 2))
