"""Ten thousand problems that no user should have; see `tests.support.hostile`."""

import jaxtyping
import pytest
from tests.support.hostile import run_case

_CHUNK = 50
# Enforcing annotations more than doubles the time (3.1 s instead of 1.4 s for 40 problems), and finds nothing new after
# a thousand problems.
_LAST_ANNOTATED = 1500


def _starts(first, last):
    return range(first, last, _CHUNK)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "start",
    [*_starts(0, 100), *(pytest.param(start, marks=pytest.mark.thorough) for start in _starts(100, 10_000))],
)
def test_answers_are_right_and_finite_or_refused_with_a_sentence(start):
    if start >= _LAST_ANNOTATED:
        jaxtyping.config.update("jaxtyping_disable", True)  # each test sets it anew, in conftest.py
    outcomes = [run_case(seed) for seed in range(start, start + _CHUNK)]
    failed = [outcome for outcome in outcomes if outcome.failures]
    report = [f"run_case({each.seed}): {each.description}: {each.failures[0]}" for each in failed]
    assert not failed, "\n".join(report)
    # Were all refused, nothing would have been tried.
    assert sum(bool(outcome.refusal) for outcome in outcomes) < _CHUNK / 2
    assert sum(outcome.num_compared for outcome in outcomes) > _CHUNK / 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [1535, 2107])
def test_jitter_that_follows_prior_variances_is_what_is_reported(seed):
    assert not run_case(seed).failures
