import re

import pytest

from paper.report.forest import draw_part
from paper.schema.figure import Part


def place(svg: str, kind: str, name: str) -> float:
    return float(re.search(rf'class="{kind}"[^>]* {name}="([-0-9.]+)"', svg)[1])


def test_the_interval_and_the_bound_stand_where_their_numbers_say():
    svg = draw_part(Part("a above b", "holds", "holds", effect=0.2, low=-0.1, high=0.5, bound=-0.25, num_trials=5))
    middle = place(svg, "zero", "x1")
    assert place(svg, "interval", "x1") < middle < place(svg, "interval", "x2")
    assert place(svg, "bound", "x1") < place(svg, "interval", "x1")
    # All on one scale: half an interval of 0.5 is twice the bound of 0.25.
    assert place(svg, "interval", "x2") - middle == pytest.approx(2.0 * (middle - place(svg, "bound", "x1")), abs=0.2)


def test_a_part_without_numbers_has_no_picture_and_one_without_an_interval_a_dot():
    assert draw_part(Part("a", "not run", "missing")) == ""
    assert "<circle" in draw_part(Part("a", "open", "open", effect=1.0, num_trials=1))


def test_texts_are_escaped():
    assert "<script>" not in draw_part(Part("<script>", "holds", "holds", effect=0.0))
