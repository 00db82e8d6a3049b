import pytest

from paper.analysis.drawing import PALETTE
from paper.report.themes import DARK, LIGHT, TEXT_PAIRS, contrast
from streamgp.testing.tolerances import approximation, within

# WCAG 2.2, level AA: of text, and of the parts of pictures and of controls that carry meaning.
TEXT, GRAPHICS = 4.5, 3.0


@pytest.mark.parametrize(
    ("first", "second", "ratio"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#777777", "#777777", 1.0),
        ("#767676", "#ffffff", 4.54),
        ("#ff0000", "#ffffff", 4.0),
    ],
)
def test_contrast_is_the_ratio_of_wcag(first, second, ratio):
    assert contrast(first, second) == pytest.approx(ratio, **within(approximation(0.005, "printed") | {"rtol": 0.0}))
    assert contrast(second, first) == contrast(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("pair", TEXT_PAIRS, ids="-on-".join)
def test_texts_are_legible_in_both_themes(theme, pair):
    text, back = (theme.colors[name] for name in pair)
    assert contrast(text, back) >= TEXT


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_lines_of_pictures_and_marks_of_verdicts_are_visible_in_both_themes(theme):
    marks = [theme.colors[name] for name in ("reproduced", "partly", "not", "none")]
    for back in (theme.colors["surface"], theme.colors["page"]):
        assert all(contrast(color, back) >= GRAPHICS for color in marks)
    assert all(contrast(color, theme.colors["surface"]) >= GRAPHICS for color in PALETTE)


def test_both_themes_have_the_same_names():
    assert LIGHT.colors.keys() == DARK.colors.keys()
