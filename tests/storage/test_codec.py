import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from streamgp.errors import FileFormatError, OptionError, UnsupportedError, ValueRangeError
from streamgp.storage import load, register, save


@register
class Pair(NamedTuple):
    first: int
    second: Any = None


def check(box):
    if box.limit < 0:
        raise ValueRangeError("limit is negative.")


@register(check=check)
@dataclass(frozen=True, eq=False)
class Box:
    points: Float[Tensor, "n d"]
    counts: Int[Tensor, " n"]
    limit: float = 1.0
    content: Any = None
    names: tuple[str, ...] = ()
    table: Mapping[str, int] = dataclasses.field(default_factory=dict)
    maybe: int | None = None


class Plain:
    def __init__(self, value: int) -> None:
        self.value = value


register(Plain, to_fields=vars, from_fields=Plain, name="own.Plain")


def box(**fields):
    return Box(torch.rand(3, 2), torch.arange(3), **fields)


def same(first, second):
    if type(first) is not type(second):
        return False
    if isinstance(first, Tensor):
        return first.dtype == second.dtype and first.stride() == second.stride() and torch.equal(first, second)
    if isinstance(first, np.ndarray | np.generic):
        return first.dtype == second.dtype and first.shape == second.shape and bool(np.all(first == second))
    if dataclasses.is_dataclass(first):
        return all(same(getattr(first, f.name), getattr(second, f.name)) for f in dataclasses.fields(first))
    if isinstance(first, Plain):
        return vars(first) == vars(second)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict):
        return same(list(first.items()), list(second.items()))
    return first == second or (first != first and second != second)


@pytest.mark.parametrize(
    "content",
    [
        None,
        True,
        2**80,
        -0.1,
        math.inf,
        -math.inf,
        math.nan,
        "Matérn \ud800 =\n",
        (1, 2.5, ("a", None)),
        [1, [2], ()],
        {"a": 1, 2: (3,), None: [], (1, "b"): {}},
        tuple(i / 7 for i in range(200)),
        torch.Size((2, 3)),
        torch.float32,
        torch.rand(2, 3).mT,
        torch.zeros(0, 4),
        torch.tensor([True, False]),
        np.arange(6.0).reshape(2, 3),
        np.array(["a", "longer"]),
        np.array([1, "a", None], dtype=object),
        np.float64(1.5),
        np.int64(3),
        np.str_("text"),
        np.bool_(True),
        datetime(2024, 2, 29, 13, 5, 7, 250_001),
        Pair(1, Pair(2)),
        Plain(4),
        box(),
    ],
)
def test_what_is_saved_comes_back(tmp_path, content):
    original = box(content=content, names=("a", "b"), table={"x": 1})
    save(original, tmp_path / "a")
    assert same(original, load(tmp_path / "a"))


def test_gradients_and_parameters_are_not_part_of_a_file(tmp_path):
    save(box(content=torch.nn.Parameter(torch.ones(2))), tmp_path / "a")
    assert not load(tmp_path / "a").content.requires_grad


@pytest.mark.parametrize(
    "content",
    [object(), {1, 2}, len, 1j, np.datetime64("2020-01-01"), datetime(2020, 1, 1, tzinfo=UTC), [box, (Pair,)]],
)
def test_what_is_not_known_is_refused_when_saved_and_its_place_is_named(tmp_path, content):
    with pytest.raises(UnsupportedError, match=r"content\.content"):
        save(box(content=content), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_deep_is_refused(tmp_path, rewrite):
    content: Any = ()
    for _ in range(100):
        content = (content,)
    with pytest.raises(UnsupportedError, match="too deep"):
        save(box(content=content), tmp_path / "a")
    save(box(), tmp_path / "a")
    rewrite(tmp_path / "a", lambda d, _: d["content"]["fields"].update(content=content))
    with pytest.raises(FileFormatError, match="more than 60 others"):
        load(tmp_path / "a")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", "a"),
        ("limit", True),
        ("limit", None),
        ("limit", -1),
        ("names", "ab"),
        ("names", [1, 2]),
        ("table", {"$": "dict", "items": [["a", 0.5]]}),
        ("table", {"$": "dict", "items": [[{"$": "list", "items": []}, 1]]}),
        ("table", {"$": "dict", "items": 3}),
        ("maybe", 1.5),
        ("counts", {"$": "tensor", "at": "content.points"}),
        ("content", {"$": "tensor", "at": "content.nothing"}),
        ("content", {"$": "tensor", "at": ["a"]}),
        ("content", {"$": "unknown"}),
        ("content", {}),
        ("content", {"$": []}),
        ("content", {"$": "float", "value": "1e5"}),
        ("content", {"$": "dtype", "value": "load"}),
        ("content", {"$": "size", "items": [-1]}),
        ("content", {"$": "objects", "items": [1], "shape": [10**9]}),
        ("content", {"$": "object", "class": "own.Plain", "fields": {}}),
        ("content", {"$": "object", "class": "own.Plain", "fields": {"value": "a"}}),
        ("content", {"$": "object", "class": 3, "fields": {}}),
        ("content", {"$": "object", "class": "builtins.eval", "fields": {"a": 1}}),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_a_sentence(tmp_path, rewrite, field, value):
    save(box(), tmp_path / "a")
    rewrite(tmp_path / "a", lambda d, _: d["content"]["fields"].update({field: value}))
    with pytest.raises(FileFormatError):
        load(tmp_path / "a")


def test_a_field_that_is_absent_gets_its_default(tmp_path, rewrite):
    save(box(limit=3.0), tmp_path / "a")
    rewrite(tmp_path / "a", lambda d, _: d["content"]["fields"].pop("limit"))
    assert load(tmp_path / "a").limit == 1.0


def test_a_name_is_taken_once_and_a_class_without_fields_says_how(tmp_path):
    class Other:
        pass

    with pytest.raises(OptionError, match="dataclass"):
        register(Other)
    with pytest.raises(OptionError, match="Plain"):
        register(Other, name="own.Plain", to_fields=vars, from_fields=Other)
