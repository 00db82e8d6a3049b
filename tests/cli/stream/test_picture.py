import pytest

from streamgp.cli.stream.picture import draw_metrics, save_picture
from streamgp.streaming.metrics import CLASS_MEASURES, VALUE_MEASURES, StreamMetrics


@pytest.mark.parametrize(("measures", "num_panels"), [(VALUE_MEASURES, 3), (CLASS_MEASURES, 3)])
@pytest.mark.parametrize("num_rows", [0, 1, 40])
def test_each_metric_has_a_panel_with_all_rows_and_recent_ones(tmp_path, measures, num_panels, num_rows):
    metrics = StreamMetrics(measures).add({name: [0.5] * num_rows for name in measures})
    panels = draw_metrics(metrics).axes
    assert len(panels) == num_panels
    for axes in panels:
        lines = {line.get_label(): line for line in axes.lines}
        assert len(lines["all rows so far"].get_xdata()) == num_rows
    save_picture(metrics, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == [tmp_path / "a.png"]
