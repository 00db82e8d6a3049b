"""Checks of scikit-learn for estimators."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

__all__ = ["checks_of_scikit_learn"]


def checks_of_scikit_learn(estimator: Any) -> pytest.MarkDecorator:
    """Parametrize a test with them; those that repeat another one with data mapped into memory are thorough."""
    mark = parametrize_with_checks([estimator])
    name_of, values = mark.kwargs["ids"], []
    for each, check in mark.args[1]:
        is_repeated = "memmap" in name_of(check)
        values.append(pytest.param(each, check, marks=pytest.mark.thorough if is_repeated else ()))
    return pytest.mark.parametrize(mark.args[0], values, ids=name_of)
