import pytest
import torch

from paper.schema.results import as_json
from paper.studies.sine import STUDY, SineSettings, noisy_sine, true_sine
from streamgp.testing.tolerances import judgement, within

SETTINGS = SineSettings(
    num_first=10, num_streamed=32, num_inducing=5, num_first_steps=20, marks=(16, 32), num_traces=4, grid_size=9
)


def test_points_are_a_grid_in_random_order_with_noise_of_variance_a_hundredth():
    X, y = noisy_sine(3, 4000)
    assert torch.equal(X.squeeze(-1).sort().values, torch.linspace(-1.0, 1.0, 4000, dtype=torch.float64))
    assert float((y - true_sine(X)).var()) == pytest.approx(0.01, **within(judgement(relative=0.1)))


@pytest.mark.slow
@pytest.mark.parametrize("method", [*STUDY.methods])
def test_outcomes_have_predictions_at_the_marks(method):
    outcome = as_json(STUDY.run("sine", method, 0, SETTINGS))
    assert outcome["marks"] == [16, 32]
    assert torch.tensor(outcome["mean"]).shape == torch.tensor(outcome["deviation"]).shape == (2, 9)
    assert all(len(points) <= 5 for points in outcome["points"])
    assert all(-1.1 <= point <= 1.1 for points in outcome["points"] for point in points)
    error = (torch.tensor(outcome["mean"][-1]) - torch.sin(6.0 * torch.tensor(outcome["grid"]))).square().mean().sqrt()
    assert outcome["rmse"][-1] == pytest.approx(float(error), **within(judgement(relative=1e-2)))
    is_osgpr = method.startswith("osgpr")
    assert outcome["trace_rows"] == ([] if not is_osgpr else [16, 32] if method == "osgpr-16" else [8, 16, 24, 32])
    assert len(outcome["residual_trace"]) == len(outcome["lost_trace"]) == len(outcome["trace_rows"])
