import matplotlib as mpl
import numpy as np
import torch

from paper.analysis.drawing import draw_trials, ink, new_picture
from streamgp.testing.tolerances import rounding


def test_ink_is_the_color_of_text_where_it_is_asked_for():
    with mpl.rc_context({"text.color": "#123456"}):
        assert ink() == "#123456"


def test_trials_are_drawn_as_their_mean_with_its_interval():
    values = [[1.0, 2.0, 3.0], [3.0, 4.0, 7.0]]
    (axes,) = new_picture().axes
    draw_trials(axes, [0, 1, 2], values, label="two", index=0)
    (line,) = axes.lines
    np.testing.assert_allclose(line.get_ydata(), [2.0, 3.0, 5.0])
    # Of two values, the standard error of the mean is half their distance; t with one degree of freedom is 12.706.
    (band,) = axes.collections
    extents = [0.0, 5.0 - 2.0 * 12.7062, 2.0, 5.0 + 2.0 * 12.7062]
    np.testing.assert_allclose(band.get_datalim(axes.transData).extents, extents, **rounding(torch.float32))


def test_one_trial_has_no_band():
    (axes,) = new_picture().axes
    draw_trials(axes, [0, 1], [[1.0, 2.0]], label="one", index=9)
    assert len(axes.lines) == 1
    assert len(axes.collections) == 0
