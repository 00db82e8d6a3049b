import matplotlib
import pytest
import torch
from matplotlib.figure import Figure

from streamgp.errors import ShapeError
from streamgp.loops.prediction import predict_response
from streamgp.pools.maps import draw_map

matplotlib.use("Agg")
PLACES = torch.rand(12, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TOLD, PENDING = torch.tensor([0, 1]), torch.tensor([5])


def draw(threshold=None, *, members=PLACES, coordinates=None, axes=None):
    prediction = predict_response(PLACES[:, 0], PLACES[:, 1], None, threshold=threshold)
    return draw_map(members, prediction, told=TOLD, pending=PENDING, coordinates=coordinates, axes=axes)


def test_a_threshold_adds_a_panel():
    assert [axes.get_title() for axes in draw()] == ["prediction", "width of the interval"]
    assert [axes.get_title() for axes in draw(0.5)][2:] == ["probability above the threshold"]


def test_members_and_their_states_are_where_they_are():
    places, told, pending = (each.get_offsets() for each in draw()[0].collections)
    assert places.tolist() == PLACES.tolist()
    assert told.tolist() == PLACES[TOLD].tolist()
    assert pending.tolist() == PLACES[PENDING].tolist()


def test_maps_that_cannot_be_drawn_are_refused():
    with pytest.raises(ShapeError, match="The map has 2 panels, but 1 axes were given"):
        draw(axes=Figure().subplots())
    with pytest.raises(ShapeError, match="A map needs two coordinates, but the members have 1"):
        draw(members=PLACES[:, :1])
    with pytest.raises(ShapeError, match="coordinates must have shape"):
        draw(coordinates=PLACES[:3])
