import pytest
import torch

from streamgp.errors import ValueRangeError
from streamgp.seeds import derived_seed, seeded


def test_a_seed_below_zero_is_refused_with_a_sentence():
    with pytest.raises(ValueRangeError, match="seed"):
        seeded(-1, 3)


def test_seeds_differ_by_any_counter_and_repeat():
    seeds = {derived_seed(seed, ask, use) for seed in range(5) for ask in range(5) for use in range(5)}
    assert len(seeds) == 125
    assert derived_seed(3, 4) == derived_seed(3, 4)


def test_generators_start_from_derived_seeds():
    expected = torch.rand(3, generator=torch.Generator().manual_seed(derived_seed(1, 2)))
    assert torch.equal(torch.rand(3, generator=seeded(1, 2)), expected)
