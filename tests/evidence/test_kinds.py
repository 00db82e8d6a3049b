"""The kinds of evidence: labels, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel

import streamgp as sg
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, ValueRangeError

X = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("make", [list, np.asarray, pd.Series])
def test_labels_are_in_sorted_order(make):
    evidence = sg.evidence.average(X, make(["north", "east", "north", "east"]))
    assert evidence.labels == ("east", "north")
    assert torch.equal(evidence.points[:2], X[[1, 3]])
    assert sg.evidence.total(X, torch.tensor([3, 1, 1, 1])).labels == (1, 3)


def test_groups_that_are_no_groups_are_refused():
    with pytest.raises(
        ShapeError, match=r"groups must have shape \(4,\), one label for each row of X, but has .*\(3,\)"
    ):
        sg.evidence.average(X, [0, 1, 2])
    with pytest.raises(ValueRangeError, match=r"labels that are missing"):
        sg.evidence.average(X, np.array(["a", None, "b", "b"], dtype=object))
    with pytest.raises(ArgumentTypeError, match=r"mixes kinds, such as numbers and text"):
        sg.evidence.average(X, np.array(["a", 1, "b", "b"], dtype=object))


def test_weights_that_add_up_to_nothing_are_refused_by_name():
    with pytest.raises(
        ValueRangeError, match=r"those of group 'b' add up to 0. Leave the group out, or use evidence.to"
    ):
        sg.evidence.average(X, list("aabb"), [1.0, 1.0, 1.0, -1.0])
    with pytest.raises(ValueRangeError, match=r"weights of group 'a' are all zero"):
        sg.evidence.total(X, list("aabb"), [0.0, 0.0, 1.0, -1.0])
    with pytest.raises(ShapeError, match=r"weights must have shape \(4,\)"):
        sg.evidence.total(X, list("aabb"), [1.0])
    with pytest.raises(ValueRangeError, match=r"weights must be finite"):
        sg.evidence.total(X, list("aabb"), [1.0, np.nan, 1.0, 1.0])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"A and B must have the same shape"):
        sg.evidence.difference(X, X[:2])
    with pytest.raises(ShapeError, match=r"along must have shape \(2,\), one direction for all inputs, or \(4, 2\)"):
        sg.evidence.derivative(X, torch.ones(3, dtype=torch.float64))
    with pytest.raises(ValueRangeError, match=r"along has a direction of length zero"):
        sg.evidence.derivative(X, [0.0, 0.0])
    with pytest.raises(ShapeError, match=r"X must have shape \(..., n, d\)"):
        sg.evidence.gradient(X[0])
    with pytest.raises(ShapeError, match=r"functions of as many inputs, but have \[1, 2\]"):
        sg.evidence.combine(X, X[:, :1])
    with pytest.raises(OptionError, match=r"combine was called without evidence"):
        sg.evidence.combine()
    with pytest.raises(ArgumentTypeError, match=r"X must be inputs, but is evidence already"):
        sg.evidence.gradient(sg.evidence.values(X))


def test_targets_of_the_wrong_shape_are_refused_with_the_one_they_need():
    gp = sg.SparseGP.from_prior(RBFKernel(), X)
    with pytest.raises(ShapeError, match=r"y must have shape \(4, 2\), one number for each row of the evidence"):
        gp.condition(sg.evidence.gradient(X), torch.ones(4, dtype=torch.float64), noise_variance=0.1)
    both = sg.evidence.combine(X, sg.evidence.gradient(X))
    with pytest.raises(ShapeError, match=r"y\[1\] must have shape \(4, 2\)"):
        gp.condition(both, (torch.ones(4).double(), torch.ones(4).double()), noise_variance=0.1)
    with pytest.raises(ValueRangeError, match=r"y must be finite, but is NaN in row 1 of the evidence"):
        gp.condition(sg.evidence.values(X), [0.0, np.nan, 0.0, 0.0], noise_variance=0.1)
    with pytest.raises(ShapeError, match=r"noise_variance must have shape"):
        gp.condition(sg.evidence.values(X), [0.0] * 4, noise_variance=[0.1, 0.2])
