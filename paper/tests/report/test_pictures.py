import base64
import io

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from paper.report.pictures import draw_pictures
from paper.report.themes import DARK, LIGHT


def read_image(address: str) -> Image.Image:
    kind, content = address.split(",", 1)
    assert kind == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")


@pytest.mark.slow
def test_a_picture_has_the_colors_of_its_theme_and_twice_the_pixels_of_its_place(detailed_figure, records):
    pictures = draw_pictures(detailed_figure, records)
    for address, theme in ((pictures.light, LIGHT), (pictures.dark, DARK)):
        image = read_image(address)
        assert image.size == (2 * pictures.width, 2 * pictures.height)
        pixels = np.asarray(image)
        assert "#{:02x}{:02x}{:02x}".format(*pixels[0, 0]) == theme.colors["surface"]
        assert pixels.std() > 5.0
    assert (pictures.width, pictures.height) == (768, 307)


def test_settings_of_the_user_neither_matter_nor_change(figure, records):
    expected = draw_pictures(figure, records)
    with mpl.rc_context({"savefig.facecolor": "red", "font.size": 30.0, "figure.facecolor": "red"}):
        before = dict(mpl.rcParams)
        assert draw_pictures(figure, records) == expected
        assert dict(mpl.rcParams) == before
