import pytest
import torch

from streamgp.storage.finite import is_finite


@pytest.mark.parametrize("shape", [(), (0,), (3,), (100_000,), (1, 100_000), (3, 1, 50_000), (400, 400)])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_not_finite_is_found_anywhere(rng, shape, bad):
    value = torch.full(shape, 1e308, dtype=torch.float64)
    assert is_finite(value)
    assert is_finite(value.float().clamp(max=1e38).mT if len(shape) > 1 else value.long())
    if value.numel():
        place = int(torch.randint(value.numel(), (), generator=rng))
        value.view(-1)[place] = bad
        assert not is_finite(value)
        assert not is_finite(value.movedim(0, -1) if shape else value)
