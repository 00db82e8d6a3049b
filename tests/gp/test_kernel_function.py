import torch
from hypothesis import given
from hypothesis import strategies as st

from streamgp.gp.kernel_function import origin_of

numbers = st.floats(-1e6, 1e6, width=32)


@given(st.lists(st.tuples(numbers, numbers), max_size=5))
def test_the_origin_is_no_further_from_zero_than_any_input(rows):
    X = torch.tensor(rows, dtype=torch.float64).reshape(-1, 2)
    origin = origin_of(X)
    assert origin.shape == (2,)
    assert (origin.abs() <= X.abs()).all()
    # It lies among the data, or is zero.
    assert (((origin == X).any(0)) | (origin == 0)).all()


def test_one_fill_value_among_offset_inputs_does_not_move_it():
    X = torch.tensor([[1e6], [1e6 + 1], [1e30]], dtype=torch.float64)
    assert origin_of(X).item() == 1e6
