import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch.testing import assert_close

from streamgp.streaming.experts import (
    CLASS_EXPERTS,
    COUNT_EXPERTS,
    MANY_CLASS_EXPERTS,
    REAL_EXPERTS,
    Expert,
    Experts,
    count_experts,
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


def test_elsewhere_only_what_forgets_nothing_counts_if_it_is_trusted():
    experts = Experts((Expert(), Expert(100.0), Expert(level_gain=0.5), Expert(slope=1.0)))
    weights, expected = np.array([0.5, 0.1, 0.15, 0.25]), np.array([2 / 3, 0.0, 0.0, 1 / 3])
    assert_close(experts.remembering(np.log(weights)), expected, **tolerance(torch.float64))
    ahead, far_ahead = (np.array([0.0, more, 0.0, 0.0]) for more in (15.0, 25.0))
    assert experts.remembering(ahead).tolist() == [0.5, 0.0, 0.0, 0.5]  # of some rows in another place, maybe
    assert_close(experts.remembering(far_ahead), softmax(far_ahead), **tolerance(torch.float64))
    for each in (np.log(weights), ahead, far_ahead):
        assert experts.best_remembering(each) == experts.remembering(each).argmax()


@pytest.mark.parametrize(("expert", "is_trusted"), [(Expert(), True), (Expert(30.0), False)])
def test_experts_of_one_kind_are_trusted_if_they_forget_nothing(expert, is_trusted):
    log_weights = np.array([-1.0, -3.0])
    experts = Experts((expert, expert))
    assert experts.is_trusted(log_weights) is is_trusted
    assert_close(experts.remembering(log_weights), softmax(log_weights), **tolerance(torch.float64))


def test_a_stream_stands_still_if_half_of_the_weight_expects_it():
    experts = Experts((Expert(), Expert(100.0), Expert(level_gain=0.5), Expert(slope=1.0)))
    assert experts.are_still(np.array([0.2, 0.3, 0.1, 0.4]))
    assert not experts.are_still(np.array([0.1, 0.3, 0.3, 0.3]))


def test_trends_of_counts_have_the_same_variance_for_many_columns():
    few, many = count_experts(3), count_experts(40)
    assert few == COUNT_EXPERTS
    for one, other in zip(few, many, strict=True):
        assert math.isclose(40 * other.slope**2, 4 * one.slope**2)
        assert replace(other, slope=one.slope) == one


def test_experts_that_forget_nothing_are_trusted_unless_others_were_clearly_better():
    experts = Experts((Expert(), Expert(100.0)))
    assert experts.is_trusted(np.array([-19.0, 0.0]))
    assert not experts.is_trusted(np.array([-21.0, 0.0]))
    assert Experts((Expert(),)).is_trusted(np.array([0.0]))
    assert not Experts((Expert(100.0),)).is_trusted(np.array([0.0]))
