import math

import pytest
import torch
from torch.testing import assert_close

from streamgp.streaming.experts import (
    CLASS_EXPERTS,
    COUNT_EXPERTS,
    MANY_CLASS_EXPERTS,
    REAL_EXPERTS,
    Expert,
    Experts,
)
from streamgp.testing.tolerances import rounding, tolerance, within

BANKS = (REAL_EXPERTS, COUNT_EXPERTS, CLASS_EXPERTS, MANY_CLASS_EXPERTS)


@pytest.mark.parametrize("bank", BANKS)
def test_every_bank_has_an_expert_that_forgets_nothing_and_one_that_follows(bank):
    assert any(math.isinf(expert.half_life) and not expert.level_gain for expert in bank)
    assert any(expert.half_life <= 100.0 for expert in bank)
    assert len(set(bank)) == len(bank)


def test_half_of_what_is_known_is_left_after_a_half_life():
    experts = Experts((Expert(), Expert(20.0)))
    assert experts.remembered(20).tolist() == [1.0, 0.5]
    assert experts.remembered(40).tolist() == [1.0, 0.25]


def test_steps_of_a_level_give_its_gain_in_the_long_run():
    gain = 0.3
    step = float(Experts((Expert(level_gain=gain),)).level_steps)
    variance = 1.0
    for _ in range(200):  # Riccati's equation under unit noise
        variance = variance + step
        found = variance / (variance + 1.0)
        variance = variance * (1.0 - found)
    assert found == pytest.approx(gain, **within(rounding(torch.float64)))
    assert torch.equal(Experts((Expert(), Expert(level_gain=gain))).has_level, torch.tensor([0.0, 1.0]).double())


def test_elsewhere_only_what_forgets_nothing_counts_if_it_is_believed():
    experts = Experts((Expert(), Expert(100.0), Expert(level_gain=0.5), Expert(slope=1.0)))
    weights = torch.tensor([0.5, 0.1, 0.15, 0.25], dtype=torch.float64)
    expected = torch.tensor([2 / 3, 0.0, 0.0, 1 / 3], dtype=torch.float64)
    assert_close(experts.remembering(weights), expected, **tolerance(torch.float64))
    doubted = torch.tensor([0.3, 0.4, 0.15, 0.15], dtype=torch.float64)
    assert torch.equal(experts.remembering(doubted), doubted)
