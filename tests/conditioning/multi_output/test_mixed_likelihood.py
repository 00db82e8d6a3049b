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


def test_all_that_sites_ask_is_answered_by_the_likelihood_of_the_row(rng):
    kinds, parts = torch.tensor([1, 0, 1, 0]), (Poisson(), Bernoulli())
    mixed = MixedLikelihood(parts, kinds)
    f, v = torch.randn(2, 4, generator=rng, dtype=torch.float64), torch.rand(4, generator=rng, dtype=torch.float64)
    y = torch.tensor([1.0, 4.0, 0.0, 2.0], dtype=torch.float64)
    asked = {
        "response": (f,),
        "derivatives": (f, y),
        "expected_log_density": (f, v, y),
        "expected_derivatives": (f, v, y),
        "log_density": (f, y),
    }
    for name, arguments in asked.items():
        found = getattr(mixed, name)(*arguments)
        for kind, part in enumerate(parts):
            rows = kinds == kind
            alone = getattr(part, name)(*(each[..., rows] for each in arguments))
            pairs = zip(found, alone, strict=True) if isinstance(alone, tuple) else [(found, alone)]
            for ours, theirs in pairs:
                assert_close(ours[..., rows], theirs, **tolerance(torch.float64))
    drawn = mixed.sample(f, generator=rng)
    assert set(drawn[:, kinds == 1].flatten().tolist()) <= {0.0, 1.0}
    high = mixed.sample(torch.full((200, 4), 3.0, dtype=torch.float64), generator=rng)
    assert abs(float(high[:, kinds == 0].mean()) - 20.1) < 5 * (20.1 / 400) ** 0.5
    for kind, part in enumerate(parts):
        one = MixedLikelihood(parts, torch.tensor([kind]))
        assert one.expected_derivatives_of_one(0.3, 0.5, 1.0) == part.expected_derivatives_of_one(0.3, 0.5, 1.0)
        assert one.expected_log_density_of_one(0.3, 0.5, 1.0) == part.expected_log_density_of_one(0.3, 0.5, 1.0)
    nothing = MixedLikelihood(parts, kinds[:0])
    assert nothing.expected_derivatives(f[:, :0], v[:0], y[:0])[0].shape == (2, 0)
