import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from streamgp.errors import ShapeError
from streamgp.shapes import broadcast_shapes, is_broadcastable

shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(st.lists(shapes, max_size=3))
def test_shapes_broadcast_as_in_torch(several):
    try:
        expected = torch.broadcast_shapes(*several)
    except RuntimeError:
        with pytest.raises(ShapeError, match="equal"):
            broadcast_shapes(*several)
    else:
        assert broadcast_shapes(*several) == expected


@given(shapes, shapes)
def test_pairs_are_told_apart_as_in_torch(first, second):
    try:
        torch.broadcast_shapes(first, second)
    except RuntimeError:
        assert not is_broadcastable(first, second)
    else:
        assert is_broadcastable(first, second)
