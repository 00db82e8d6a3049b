from dataclasses import replace

import pytest

from streamgp.pools import state
from streamgp.pools.model import is_refit_due


@pytest.mark.parametrize(
    ("refit", "outcomes", "num_fits"),
    [("always", 2, 2), ("never", 2, 1), (2, 3, 2)],
    ids=["always", "never", "two"],
)
def test_hyperparameters_are_learned_when_that_is_due(country, refit, outcomes, num_fits, monkeypatch):
    fits, fit = [], state.fit_surrogate
    monkeypatch.setattr(state, "fit_surrogate", lambda *arguments: fits.append(1) or fit(*arguments))
    learner = country.survey(likelihood="gaussian", refit=refit)
    learner.tell(range(8), country.y[:8])
    for member in range(10, 10 + outcomes):
        learner.predict()
        learner.predict()
        learner.tell([member], country.y[[member]])
    assert len(fits) == num_fits


def test_fits_become_rarer_with_many_outcomes(surveyed):
    surrogate, settings = surveyed._state.surrogate, replace(surveyed._settings, refit="auto")
    assert is_refit_due(None, 0, settings)
    assert not is_refit_due(surrogate, 8, settings)
    assert is_refit_due(surrogate, 500, settings)
    large = replace(surrogate, num_fitted=1000)
    assert not is_refit_due(large, 1049, settings)
    assert is_refit_due(large, 1050, settings)
