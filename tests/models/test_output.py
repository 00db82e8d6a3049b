import torch
from tests.support.problems import random_sparse_gp
from torch.testing import assert_close

from streamgp.models.output import Output, Term
from streamgp.testing.tolerances import approximation, rounding


def two_terms(rng):
    X = torch.rand(3, 2, generator=rng, dtype=torch.float64)
    first, second = (random_sparse_gp(rng).gp.predict(X) for _ in range(2))
    noise = torch.tensor([0.3], dtype=torch.float64)
    scale = torch.tensor([-2.0], dtype=torch.float64)
    return first, second, Output((Term(first, noise), Term(second, scale=scale)), torch.Size([3]))


def test_moments_are_those_of_a_sum_of_independent_values(rng):
    first, second, output = two_terms(rng)
    noise = 0.3 * torch.eye(3, dtype=torch.float64)
    assert_close(output.mean, first.mean - 2 * second.mean, **rounding(torch.float64))
    assert_close(output.variance, first.variance + 0.3 + 4 * second.variance, **rounding(torch.float64))
    assert_close(output.covariance, first.covariance + noise + 4 * second.covariance, **rounding(torch.float64))


def test_an_affine_function_scales_and_moves_all_moments(rng):
    _, _, output = two_terms(rng)
    scale, offset = (torch.tensor(value, dtype=torch.float64) for value in (3.0, 1.0))
    moved = output.affine(scale, offset)
    assert_close(moved.mean, 3 * output.mean + 1, **rounding(torch.float64, scale=10))
    assert_close(moved.covariance, 9 * output.covariance, **rounding(torch.float64, scale=10))


def test_base_samples_map_to_the_joint_distribution(rng):
    _, _, output = two_terms(rng)
    zero, unit = torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64)
    assert_close(output.sample(zero), output.mean, **rounding(torch.float64))
    root = output.sample(unit) - output.mean
    assert_close(root.T @ root, output.covariance, **rounding(torch.float64, scale=10))


def test_the_scale_of_rounding_is_that_of_the_prior_and_the_noise(rng):
    first, second, output = two_terms(rng)
    X = first.inputs
    expected = first.process.prior_variance(X) + 0.3 + 4 * second.process.prior_variance(X)
    assert_close(sum(term.prior_variance for term in output.terms), expected, **rounding(torch.float64))


def test_samples_of_copies_of_a_known_input_are_its_value(rng):
    x, y = torch.rand(1, 2, generator=rng, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    known = random_sparse_gp(rng).gp.condition(x, y, noise_variance=0.0).predict(x.expand(3, 2))
    samples = Output((Term(known),), torch.Size([3])).sample(torch.randn(5, 3, generator=rng, dtype=torch.float64))
    # The jitter of a factor is at most a millionth of the prior variance; normal numbers are below 5 here.
    most = 5e-3 * known.process.prior_variance(x).sqrt().item()
    assert_close(samples, torch.ones_like(samples), **approximation(most, "jitter"))
