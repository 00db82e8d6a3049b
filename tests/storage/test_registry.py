from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from streamgp.errors import FileFormatError
from streamgp.storage.registry import StoredClass


@dataclass(frozen=True)
class Columns:
    first: Float[Tensor, " n"]
    second: Float[Tensor, " n"]
    weight: float = 1.0


STORED = StoredClass(Columns, "tests.Columns", vars, Columns)
THREE, FOUR = torch.zeros(3), torch.zeros(4)


def test_fields_that_fit_their_class_and_each_other_are_accepted():
    STORED.build({"first": THREE, "second": THREE})
    STORED.build({"first": THREE, "second": THREE, "weight": 2.0})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"first": THREE}, r"tests.Columns lacks \['second'\]"),
        ({"first": THREE, "second": THREE, "third": 3}, "known"),
        ({"first": THREE, "second": FOUR}, "second"),
        ({"first": THREE, "second": THREE, "weight": "2"}, "weight"),
    ],
    ids=["missing", "unknown", "another size", "another type"],
)
def test_fields_that_do_not_fit_are_refused(fields, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        STORED.build(fields)
