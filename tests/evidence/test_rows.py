"""Rows of evidence as values: joined, selected, matched to a model."""

from dataclasses import replace

import pytest
import torch

import streamgp as sg
from streamgp.errors import ShapeError
from streamgp.evidence import join

X = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def apply_rows(evidence, f, slope):
    """The rows of a function with known slopes, atom by atom."""
    atoms = f(evidence.points)
    if evidence.directions is not None:
        atoms = atoms * evidence.value_weights + (slope(evidence.points) * evidence.directions).sum(-1)
    return evidence.sums(atoms)


def f(x):
    return x[..., 0] * x[..., 1]


def slope(x):
    return x.flip(-1)


def test_each_kind_is_the_functional_that_it_names():
    w = torch.tensor([1.0, 3.0, 2.0, 2.0], dtype=torch.float64)
    v = torch.tensor([1.0, -2.0], dtype=torch.float64)
    expected = {
        "average": (sg.evidence.average(X, list("aabb"), w), torch.stack([f(X[:2]) @ w[:2] / 4, f(X[2:]).mean()])),
        "total": (sg.evidence.total(X, list("aabb"), w), torch.stack([f(X[:2]) @ w[:2], 2 * f(X[2:]).sum()])),
        "difference": (sg.evidence.difference(X[:2], X[2:]), f(X[:2]) - f(X[2:])),
        "gradient": (sg.evidence.gradient(X), slope(X).flatten()),
        "derivative": (sg.evidence.derivative(X, v), slope(X) @ v),
        "values": (sg.evidence.values(X), f(X)),
    }
    for evidence, rows in expected.values():
        assert torch.allclose(apply_rows(evidence, f, slope), rows)
    joined = sg.evidence.combine(*(evidence for evidence, _ in expected.values()))
    assert torch.allclose(apply_rows(joined, f, slope), torch.cat([rows for _, rows in expected.values()]))


def test_selected_rows_are_those_of_the_whole():
    evidence = sg.evidence.combine(sg.evidence.average(X, [0, 1, 1, 2]), sg.evidence.gradient(X[:2]))
    index = torch.tensor([0, 2, 4])
    whole = apply_rows(evidence, f, slope)
    assert torch.allclose(apply_rows(evidence.select(index), f, slope), whole[index])
    assert sg.evidence.average(X, list("abcc")).select(torch.tensor([0, 2])).labels == ("a", "c")


def test_inputs_stay_inputs_where_they_are_joined():
    assert isinstance(join(X, X), torch.Tensor)
    assert join(X, sg.evidence.gradient(X)).num_rows == 4 + 8


def test_rows_of_constants_and_of_changed_units():
    evidence = sg.evidence.combine(sg.evidence.total(X, [0, 0, 1, 1]), sg.evidence.gradient(X))
    assert evidence.of_constant.tolist() == [2.0, 2.0] + [0.0] * 8
    shift, scale = torch.tensor([0.1, 0.2]).double(), torch.tensor([2.0, 3.0]).double()
    inside = evidence.rescaled(shift, scale)
    # f as a function of (x - shift) / scale, whose slopes are larger by the scale.
    same = apply_rows(inside, lambda u: f(u * scale + shift), lambda u: slope(u * scale + shift) * scale)
    assert torch.allclose(same, apply_rows(evidence, f, slope))


def test_evidence_takes_the_type_of_numbers_of_a_model_and_its_dimension_must_fit():
    assert sg.evidence.average(X, [0, 0, 1, 1]).matched(torch.zeros(1, 2)).dtype == torch.float32
    with pytest.raises(ShapeError, match=r"about a function of 2 inputs, but the model has 3"):
        sg.evidence.values(X).matched(torch.zeros(1, 3))


def test_evidence_says_what_it_is():
    assert repr(sg.evidence.average(X, [0, 0, 1, 1])) == "Evidence(2 rows of 4 values, num_dims=2)"


@pytest.mark.parametrize(
    "change",
    [
        {"row_of": torch.tensor([0, 1, 1, 5])},
        {"row_of": torch.tensor([1, 0, 1, 1])},
        {"weights": torch.ones(3, dtype=torch.float64)},
        {"num_dims": 3},
        {"row_of": None},
    ],
)
def test_rows_that_do_not_fit_together_are_not_written(tmp_path, change):

    damaged = replace(sg.evidence.average(X, [0, 0, 1, 1]), **change)
    with pytest.raises(sg.errors.SaveError, match="rows of evidence do not fit together"):
        sg.storage.save(damaged, tmp_path / "rows")
    assert not list(tmp_path.iterdir())
