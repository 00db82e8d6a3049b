"""Tolerances are derived: the functions that derive them keep what they promise, and no test has numbers of its own."""

import ast
import re
from pathlib import Path

import pytest
import torch

from streamgp.testing.tolerances import (
    convergence,
    evidence_jitter,
    prediction_jitter,
    regression_condition,
    rounding,
    within,
)

TESTS = Path(__file__).parent
NAMES = {"atol", "rtol", "abs", "rel"}
KEYWORD = re.compile(rf"\b(?:{'|'.join(NAMES)})\s*=")  # only files with one are parsed, which takes longer


def literals(tree):
    """Keywords of calls that are tolerances and numbers, in this place or for some of the cases, and not zero."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                values = [keyword.value]
                if isinstance(keyword.value, ast.IfExp):
                    values = [keyword.value.body, keyword.value.orelse]
                is_number = [isinstance(value, ast.Constant) and bool(value.value) for value in values]
                if keyword.arg in NAMES and any(is_number):
                    yield keyword.value.lineno


def test_no_test_has_a_tolerance_of_its_own():
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("test_*.py"))
        if KEYWORD.search(text := path.read_text())
        for line in literals(ast.parse(text))
    ]
    assert not found, (
        f"{found} compare with literal tolerances. Derive them by a function of streamgp.testing.tolerances, or call "
        "them a judgement."
    )


def test_literal_tolerances_are_found():
    source = "f(a, rtol=0, atol=1e-3)\ng(b, **rounding(x))\nh(c, abs=1e-8 if d else e)\nk(0.0, atol=0.0)"
    assert list(literals(ast.parse(source))) == [1, 3]


def dense_problem(rng, n=12, noise=0.1):
    X = torch.rand(n, 1, generator=rng, dtype=torch.float64)
    K = torch.exp(-0.5 * (X - X.mT).square() / 0.3**2)
    return K, noise * torch.eye(n, dtype=torch.float64), torch.randn(n, generator=rng, dtype=torch.float64)


def test_the_condition_number_of_a_regression_is_below_its_bound(rng):
    K, noise, _ = dense_problem(rng)
    assert 1.0 < float(torch.linalg.cond(K + noise)) <= regression_condition(12, 0.1)


@pytest.mark.parametrize("jitter", [1e-8, 1e-5])
def test_jitter_moves_evidence_and_predictions_by_no_more_than_their_tolerances(rng, jitter):
    K, noise, y = dense_problem(rng)

    def both(K):
        law = torch.distributions.MultivariateNormal(torch.zeros_like(y), K + noise)
        return law.log_prob(y), K @ torch.linalg.solve(K + noise, y)

    (evidence, mean), (moved, other) = both(K), both(K + jitter * torch.eye(12))
    of_evidence, of_mean = evidence_jitter(K + noise, y, jitter), prediction_jitter(K + noise, y, jitter)
    assert 0.01 * of_evidence["atol"] < float((moved - evidence).abs()) <= of_evidence["atol"]
    assert 0.01 * of_mean["atol"] < float((other - mean).abs().max()) <= of_mean["atol"]


def test_a_search_that_stops_near_the_optimum_is_as_near_as_its_tolerance_says():
    # At 1e-3 from the optimum of 2 x^2, the value is 2e-6 from the best.
    assert convergence(2e-6, curvature=4.0) == {
        "rtol": 0.0,
        "atol": pytest.approx(1e-3, **within(rounding(torch.float64))),
    }
