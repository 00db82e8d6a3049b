from dataclasses import replace

import pytest
import torch

from streamgp.cli.pictures import save_figure
from streamgp.cli.survey.map import draw_survey
from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import Measurement, SurveyPlace
from streamgp.cli.survey.pool import make_pool
from streamgp.pools import ResponsePrediction

NUM_PLACES = 6


def options(**given):
    return SurveyOptions(source="v.csv", coordinates=("east", "north"), positives="k", tested="n", **given)


def pool_of(stretch=1.0, num_surveyed=2):
    outcomes = [Measurement(1.0, 4.0)] * num_surveyed + [Measurement()] * (NUM_PLACES - num_surveyed)
    places = [SurveyPlace(i, str(i), (float(i), stretch * i**2 / 5)) for i in range(NUM_PLACES)]
    return make_pool(
        [place._replace(outcome=outcome) for place, outcome in zip(places, outcomes, strict=True)], "prevalence"
    )


def predict(is_thresholded=False):
    mean = torch.linspace(0.1, 0.4, NUM_PLACES, dtype=torch.float64)
    return ResponsePrediction(mean, mean, mean - 0.05, mean + mean, mean, mean, 2.0 * mean if is_thresholded else None)


def draw(pool, prediction, chosen=(5, 3), **given):
    return draw_survey(pool, prediction, chosen=torch.tensor(chosen), options=options(**given))


def panels_of(figure):
    return [axes for axes in figure.axes if axes.get_title()]


def test_a_map_has_three_panels_with_the_numbers_of_all_places():
    prediction = predict(is_thresholded=True)
    panels = panels_of(draw(pool_of(), prediction, threshold=0.2))
    assert [panel.get_title() for panel in panels] == [
        "predicted prevalence",
        "width of the 95 % interval",
        "next places, and probability above 0.2",
    ]
    expected = (prediction.mean, prediction.upper - prediction.lower, prediction.exceedance)
    for panel, values in zip(panels, expected, strict=True):
        shown = torch.as_tensor(panel.collections[0].get_array())
        assert torch.equal(shown.sort().values, values.sort().values)
    assert {panel.get_xlabel() for panel in panels} == {"east"}


def test_chosen_and_surveyed_places_are_marked_where_they_are():
    pool = pool_of()
    panel = panels_of(draw(pool, predict()))[-1]
    assert panel.get_title() == "next places"
    marked = {each.get_label(): each.get_offsets().tolist() for each in panel.collections[1:]}
    assert marked == {"surveyed": pool.inputs[:2].tolist(), "next": pool.inputs[[5, 3]].tolist()}
    assert [text.get_text() for text in panel.texts] == ["1", "2"]


def test_before_any_survey_only_the_chosen_places_are_drawn():
    (panel,) = panels_of(draw(pool_of(num_surveyed=0), None, threshold=0.2))
    assert [each.get_label() for each in panel.collections][1:] == ["next"]


@pytest.mark.parametrize(("stretch", "aspect"), [(1.0, 1.0), (1000.0, "auto"), (0.0, "auto")])
def test_coordinates_of_one_unit_are_drawn_to_scale(stretch, aspect):
    assert {panel.get_aspect() for panel in panels_of(draw(pool_of(stretch), predict()))} == {aspect}


def test_names_of_columns_are_not_taken_for_formulas(tmp_path):
    named = replace(options(), coordinates=(r"$\frac{1$", "lat"))
    figure = draw_survey(pool_of(), None, chosen=torch.tensor([0]), options=named)
    save_figure(figure, tmp_path / "map.png")
    assert figure.axes[0].get_xlabel() == r"$\frac{1$"
