import pytest

from paper.schema.results import as_json
from paper.studies.protein import STUDY, ProteinSettings

SETTINGS = ProteinSettings(num_first=30, num_streamed=12, num_test=20, num_inducing=8, num_marks=3)
pytestmark = pytest.mark.usefixtures("data_directory")


@pytest.mark.slow
def test_methods_start_alike_and_part_while_the_stream_runs():
    outcomes = {method: as_json(STUDY.run("protein", method, 0, SETTINGS)) for method in STUDY.methods}
    for outcome in outcomes.values():
        assert outcome["num_seen"] == [0, 4, 8, 12]
        assert len(outcome["rmse"]) == 4
        assert all(0.3 < error < 3.0 for error in outcome["rmse"])
    starts = {outcomes[method]["rmse"][0] for method in ("pivoted", "resample", "fixed")}
    ends = {outcomes[method]["rmse"][-1] for method in ("pivoted", "resample", "fixed")}
    assert (len(starts), len(ends)) == (1, 3)
