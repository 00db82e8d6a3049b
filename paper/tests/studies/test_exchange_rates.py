import pytest
import torch

from paper.schema.results import as_json
from paper.studies.exchange_rates import STUDY, ExchangeRatesSettings

SETTINGS = ExchangeRatesSettings(
    num_first=8, num_days=12, num_inducing=5, num_mixtures=1, refit_every=4, marks=(8, 12), grid_size=7
)
pytestmark = pytest.mark.usefixtures("data_directory")


@pytest.mark.slow
def test_outcomes_follow_the_errors_by_day():
    outcomes = {method: as_json(STUDY.run("cad", method, 0, SETTINGS)) for method in STUDY.methods}
    for outcome in outcomes.values():
        assert outcome["days"] == list(range(8, 13))
        assert outcome["marks"] == [8, 12]
        assert torch.tensor(outcome["mean"]).shape == torch.tensor(outcome["deviation"]).shape == (2, 7)
        for name in ("rmse_first", "nll_first", "rmse_all"):
            assert len(outcome[name]) == 5
        assert outcome["rmse_first"][0] == outcome["rmse_all"][0]
    assert outcomes["fixed"]["points"][0] == outcomes["fixed"]["points"][-1]
    # The latest day has just replaced a point.
    assert outcomes["resample"]["points"][-1][-1] == outcomes["resample"]["inputs"][-1]
