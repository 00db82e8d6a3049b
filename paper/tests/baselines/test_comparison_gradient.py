"""The knowledge gradient of a comparison against quadrature over what the difference may be."""

import math

import pytest
import torch
from botorch.models import SingleTaskGP
from torch.testing import assert_close

from paper.baselines.comparison_gradient import ComparisonKnowledgeGradient, comparison_gain
from streamgp.testing.tolerances import tolerance

NOISE = 0.3


def moments(rng, num_points, batch_shape=()):
    A = torch.randn(*batch_shape, num_points, num_points, generator=rng, dtype=torch.float64)
    mean = torch.randn(*batch_shape, num_points, generator=rng, dtype=torch.float64)
    return mean, A @ A.mT / num_points


def by_quadrature(mean, covariance):
    """Means given either outcome, from the distribution of the difference of the first two utilities."""
    shift = covariance[:, 0] - covariance[:, 1]
    m, v = mean[0] - mean[1], shift[0] - shift[1]
    g = m + v.sqrt() * torch.linspace(-10, 10, 100_001, dtype=torch.float64)
    density = (-0.5 * (g - m).square() / v).exp() / (2.0 * math.pi * v).sqrt()
    total = -mean.max()
    for sign in (1.0, -1.0):
        weight = density * torch.special.ndtr(sign * g / (math.sqrt(2.0) * NOISE))
        probability = torch.trapezoid(weight, g)
        difference = torch.trapezoid(weight * g, g) / probability
        total = total + probability * (mean + shift / v * (difference - m)).max()
    return total


@pytest.mark.parametrize("num_points", [2, 5])
def test_it_is_the_expected_rise_of_the_largest_mean(rng, num_points):
    mean, covariance = moments(rng, num_points)
    expected = by_quadrature(mean, covariance)
    assert_close(comparison_gain(mean, covariance, NOISE), expected, **tolerance(torch.float64, scale=1e4))


def test_it_is_never_negative_and_zero_for_a_point_against_itself(rng):
    mean, covariance = moments(rng, 4, (50,))
    assert (comparison_gain(mean, covariance, NOISE) >= -1e-12).all()
    same = torch.tensor([0, 0, 2, 3])
    gain = comparison_gain(mean[..., same], covariance[..., same, :][..., same], NOISE)
    assert_close(gain, torch.zeros(50, dtype=torch.float64), **tolerance(torch.float64))


def test_batches_and_gradients_reach_the_pair(rng):
    X = torch.rand(6, 2, generator=rng, dtype=torch.float64)
    model = SingleTaskGP(X, X.sum(-1, keepdim=True))
    function = ComparisonKnowledgeGradient(model, X, NOISE)
    pairs = torch.rand(3, 2, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    values = function(pairs)
    assert values.shape == (3,)
    assert_close(values[1], function(pairs[1]).squeeze(), **tolerance(torch.float64, scale=1e4))
    (gradient,) = torch.autograd.grad(values.sum(), pairs)
    assert gradient.isfinite().all()
