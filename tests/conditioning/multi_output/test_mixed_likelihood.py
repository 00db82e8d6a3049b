"""Rows of different likelihoods, each as if it were alone."""

import pytest
import torch
from torch.testing import assert_close

from streamgp.conditioning.multi_output.mixed_likelihood import MixedLikelihood
from streamgp.errors import SupportError
from streamgp.likelihoods import Bernoulli, Poisson
from streamgp.testing.tolerances import tolerance


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_row_is_evaluated_by_its_own_likelihood(rng, dtype):
    mixed = MixedLikelihood((Poisson(), Bernoulli()), torch.tensor([1, 0, 1]))
    f, v = torch.randn(3, generator=rng, dtype=dtype), torch.rand(3, generator=rng, dtype=dtype)
    y = torch.tensor([1.0, 4.0, 0.0], dtype=dtype)
    for row, part in enumerate((Bernoulli(), Poisson(), Bernoulli())):
        one = slice(row, row + 1)
        assert_close(mixed.log_density(f, y)[one], part.log_density(f[one], y[one]), **tolerance(dtype))
        for ours, theirs in zip(
            mixed.expected_derivatives(f, v, y), part.expected_derivatives(f[one], v[one], y[one]), strict=True
        ):
            assert_close(ours[one], theirs, **tolerance(dtype))


def test_each_row_is_held_to_the_support_of_its_likelihood():
    mixed = MixedLikelihood((Poisson(), Bernoulli()), torch.tensor([0, 1]))
    mixed.check_targets(torch.tensor([4.0, 1.0]))
    with pytest.raises(SupportError):
        mixed.check_targets(torch.tensor([1.0, 4.0]))
