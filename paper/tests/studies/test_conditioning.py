import numpy as np
import pytest

from paper.schema.results import as_json
from paper.studies.conditioning import STUDY, ConditioningSettings
from streamgp.testing.tolerances import judgement, within

SETTINGS = ConditioningSettings(
    num_first=30,
    num_new=8,
    num_inducing=20,
    grid_size=15,
    num_first_returns=30,
    num_new_returns=10,
    num_inducing_returns=8,
    max_iterations=3,
    volatility_of_volatility=1.5,
)


def test_a_conditioned_sparse_gp_is_close_to_an_exact_one_before_and_after():
    exact, sparse = (as_json(STUDY.run("function", method, 0, SETTINGS)) for method in ("reference", "conditioned"))
    assert np.array(exact["mean"]).shape == np.array(exact["deviation"]).shape == (2, 15)
    assert np.array(sparse["mean"]) == pytest.approx(np.array(exact["mean"]), **within(judgement(absolute=0.05)))
    assert np.array(sparse["deviation"]) == pytest.approx(
        np.array(exact["deviation"]), **within(judgement(absolute=0.05))
    )
    assert len(exact["inputs"]) == len(exact["targets"]) == 38
    assert exact["inputs"] == sparse["inputs"]


def test_jitters_of_the_papers_code_move_the_mean():
    ours, paper = (as_json(STUDY.run("function", method, 0, SETTINGS)) for method in ("conditioned", "paper"))
    difference = np.abs(np.subtract(ours["mean"], paper["mean"])).max()
    assert 1e-3 < difference < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("method", [*STUDY.methods])
def test_volatility_is_predicted_before_and_after(method):
    outcome = as_json(STUDY.run("volatility", method, 0, SETTINGS))
    assert np.array(outcome["mean"]).shape == np.array(outcome["deviation"]).shape == (2, 40)
    assert np.array(outcome["mean"]).min() > 0
    errors = np.subtract(outcome["mean"][1], outcome["truth"])
    assert outcome["rmse"][1] == pytest.approx(
        [np.sqrt(np.mean(errors[:30] ** 2)), np.sqrt(np.mean(errors[30:] ** 2))], **within(judgement(relative=1e-2))
    )
    assert np.shape(outcome["nll"]) == (2, 2)
