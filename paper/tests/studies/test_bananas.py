import numpy as np
import pytest

from paper.schema.results import as_json
from paper.studies.bananas import STUDY, BananasSettings
from streamgp.testing.tolerances import approximation, within

SETTINGS = BananasSettings(num_batches=2, num_inducing=4, grid_size=5)
pytestmark = pytest.mark.usefixtures("data_directory")


@pytest.mark.slow
@pytest.mark.parametrize("method", [*STUDY.methods])
def test_outcomes_have_maps_and_scores_after_every_batch(method):
    outcome = as_json(STUDY.run("bananas", method, 0, SETTINGS))
    assert outcome["num_rows"] == [200, 400]
    probability, variance = (np.array(outcome[name]) for name in ("probability", "variance"))
    assert probability.shape == variance.shape == (2, 5, 5)
    assert probability.min() >= 0 < probability.max() <= 1
    assert sum(outcome["strip_sizes"]) == 4900
    accuracy = np.array(outcome["strip_accuracy"]) @ np.array(outcome["strip_sizes"]) / 4900
    assert accuracy == pytest.approx(outcome["accuracy"], **within(approximation(1e-3, "printed")))
    assert outcome["accuracy"][-1] > outcome["accuracy"][0]
    assert len(outcome["classes"]) == len(outcome["inputs"]) == 400
