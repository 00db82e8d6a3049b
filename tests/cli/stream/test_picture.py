import pytest

from streamgp.cli.stream.checkpoints import Progress
from streamgp.cli.stream.picture import draw_progress, save_picture
from streamgp.cli.stream.scoring import Recent
from streamgp.streaming import StreamLearner, StreamSettings
from streamgp.streaming.metrics import StreamMetrics
from streamgp.streaming.scoring import ClassScore, ValueScore
from streamgp.tables.columns import Preprocessing


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ValueScore, ClassScore])
@pytest.mark.parametrize("num_rows", [0, 1, 40])
def test_predictions_and_each_metric_have_a_panel(tmp_path, kind, num_rows):
    measures = kind().metrics.measures
    metrics = StreamMetrics(measures).add({name: [0.5] * num_rows for name in measures})
    is_value = kind is ValueScore
    recent = tuple(Recent(i, 0.5, *((0.4, 0.2, 0.8) if is_value else (None,) * 3)) for i in range(num_rows))
    learner = StreamLearner(StreamSettings())
    progress = Progress(learner, kind(metrics), Preprocessing(()), num_rows=num_rows, recent=recent)
    top, *panels = draw_progress(progress).axes
    assert len(panels) == (4 if is_value else 3)
    names = ("last value", "running mean") if is_value else ("most frequent class", "last class")
    drawn = [{line.get_label(): line for line in axes.lines} for axes in panels]
    assert all(len(lines["all rows so far"].get_xdata()) == num_rows for lines in drawn)
    assert all(any(name in lines for lines in drawn) for name in names)
    assert len(top.collections) == int(is_value and num_rows > 0)
    if num_rows == 1:
        save_picture(progress, tmp_path / "a.png")
        assert list(tmp_path.iterdir()) == [tmp_path / "a.png"]
