from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from streamgp.checks import check_choice, check_count, check_generator, check_inputs, keep_count, to_double, to_tensor
from streamgp.errors import ArgumentTypeError, DTypeError, OptionError, ShapeError, ValueRangeError

VALUES = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "value",
    [VALUES, tuple(VALUES), np.array(VALUES), pd.DataFrame(VALUES), [torch.tensor(row) for row in VALUES]],
    ids=lambda value: type(value).__name__,
)
def test_arrays_tables_and_lists_become_tensors(value):
    assert torch.equal(to_tensor(value, "X").double(), torch.tensor(VALUES, dtype=torch.float64))


@pytest.mark.parametrize(
    "value",
    [
        np.array(VALUES[::-1])[::-1],
        pd.DataFrame({"b": [2.0, 4.0], "a": [1.0, 3.0]})[["a", "b"]],
        np.array(VALUES, dtype=">f8"),
        np.array(VALUES, dtype=">f4"),
        np.array(VALUES, dtype=">i2"),
        np.array(VALUES, dtype=np.longdouble),
        np.asfortranarray(VALUES),
    ],
    ids=["reversed", "columns in another order", "big-endian", "single", "whole", "long", "by columns"],
)
def test_arrays_are_read_whatever_their_order_of_rows_columns_or_bytes(value):
    tensor = to_tensor(value, "X")
    assert tensor.dtype == (torch.float32 if np.asarray(value).dtype == ">f4" else torch.float64)
    assert torch.equal(tensor.double(), torch.tensor(VALUES, dtype=torch.float64))


def test_a_number_and_an_array_are_copied_and_keep_their_shape():
    array = np.array(VALUES)
    tensor = to_tensor(array, "X")
    array[0, 0] = 9.0
    assert float(tensor[0, 0]) == 1.0
    assert to_tensor(2.0, "X").shape == to_tensor(np.float64(2.0), "X").shape == ()


def test_dtype_and_device_follow_the_model_where_the_value_has_none():
    assert to_tensor(VALUES, "X", like=torch.zeros(1)).dtype == torch.float32
    assert to_tensor(np.array(VALUES, dtype=np.float32), "X").dtype == torch.float32
    assert to_tensor([[1, 2]], "X").dtype == torch.float64
    tensor = torch.tensor(VALUES)
    assert to_tensor(tensor, "X", like=torch.zeros(1, dtype=torch.float64)) is tensor


@pytest.mark.parametrize(
    ("value", "error", "sentence"),
    [
        (None, DTypeError, "NoneType"),
        ({"a": 1}, DTypeError, "dict"),
        (np.array([1j]), DTypeError, "numbers"),
        (["a"], DTypeError, "text"),
        (np.array([["a", 1.0]], dtype=object), DTypeError, "StreamingGPClassifier learns labels"),
        ([10**400], DTypeError, "list"),
        ([torch.zeros(1), torch.zeros(2)], ShapeError, "stack"),
        (np.ma.masked_equal([1.0, 2.0], 2.0), ValueRangeError, "masked"),
    ],
)
def test_what_is_no_number_gets_a_sentence(value, error, sentence):
    with pytest.raises(error, match=sentence):
        to_tensor(value, "X")


@pytest.mark.parametrize(
    "form",
    [
        np.array(VALUES[::-1])[::-1],
        np.array(VALUES).astype(">f8"),
        np.array(VALUES).astype(">f4"),
        np.array(VALUES).astype(">i4"),
        np.array(VALUES).astype(np.longdouble),
    ],
    ids=["backwards", "foreign doubles", "foreign floats", "foreign integers", "long doubles"],
)
def test_arrays_are_read_whatever_their_layout_in_memory(form):
    tensor = to_tensor(form, "X")
    assert torch.equal(tensor.double(), torch.tensor(VALUES, dtype=torch.float64))
    assert tensor.dtype == (torch.float32 if form.dtype.itemsize == 4 and form.dtype.kind == "f" else torch.float64)


def test_a_tensor_shares_no_memory_with_the_array_it_was_read_from():
    array = np.array(VALUES)
    to_tensor(array, "X")[0, 0] = 9.0
    assert array[0, 0] == 1.0


def test_a_double_is_a_copy():
    value = torch.ones(2, dtype=torch.float64)
    copy = to_double(value, "y")
    copy[0] = 2.0
    assert value[0] == 1.0


def test_choices_and_generators_are_checked():
    with pytest.raises(OptionError, match="rule"):
        check_choice(3, ("a",), "rule")
    with pytest.raises(ArgumentTypeError, match="generator"):
        check_generator(3)


@pytest.mark.parametrize("num_dims", [1, 2])
def test_the_advice_for_inputs_without_rows_works_when_it_is_followed(num_dims):
    like, X = torch.zeros(4, num_dims), torch.zeros(2)
    with pytest.raises(ShapeError) as caught:
        check_inputs(X, num_dims=num_dims, like=like)
    shape = {1: (-1, 1), 2: (1, -1)}[num_dims]
    assert f"X.reshape({shape[0]}, {shape[1]})" in str(caught.value)
    assert check_inputs(X.reshape(*shape), num_dims=num_dims, like=like).shape[-1] == num_dims


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_whole_numbers_of_numpy_are_whole_numbers(kind):
    value = check_count(kind(3), "count")
    assert (type(value), value) == (int, 3)
    for wrong in (kind(0), np.float64(3.0), np.bool_(True)):
        with pytest.raises(ValueRangeError, match="count"):
            check_count(wrong, "count")


def test_frozen_values_keep_whole_numbers_as_pythons_own():
    @dataclass(frozen=True)
    class Settings:
        size: Any

        def __post_init__(self):
            keep_count(self, "size", minimum=2)

    assert type(Settings(np.int64(20)).size) is int
    with pytest.raises(ValueRangeError, match="size"):
        Settings(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whole_numbers_are_converted_as_the_error_says(dtype):
    like, X = torch.zeros(2, dtype=dtype), torch.ones(3, 2, dtype=torch.int64)
    with pytest.raises(DTypeError, match=rf"Convert it with X.to\({dtype}\)"):
        check_inputs(X, num_dims=2, like=like)
    assert check_inputs(X.to(dtype), num_dims=2, like=like).dtype == dtype
