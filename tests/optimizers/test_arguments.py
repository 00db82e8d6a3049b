import pytest
import torch
from gpytorch.kernels import MaternKernel

import streamgp as sg
from streamgp.acquisition import KnowledgeGradient, Thompson
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.loops import Box, ParameterSpace
from streamgp.optimizers.optimizer import check_combination, read_kernel, read_objectives, read_space

ONE = sg.Objective()
SUM = sg.LinearConstraint({"a": 1.0}, upper=1.0)


def test_a_space_is_a_box_named_parameters_or_one_of_the_users_own():
    box = read_space([(0.0, 1.0)], ())
    assert isinstance(box, Box)
    assert read_space(box, ()) is box
    named = read_space({"a": sg.Real(0.0, 1.0)}, [SUM])
    assert isinstance(named, ParameterSpace)
    assert named.constraints == (SUM,)
    with pytest.raises(OptionError, match="input_constraints are between parameters with names"):
        read_space([(0.0, 1.0)], [SUM])


def test_a_kernel_may_have_a_name():
    kernel = MaternKernel(2.5)
    assert read_kernel(kernel, 2) is kernel
    assert read_kernel(None, 2) is None
    assert read_kernel("rbf", 2) is not None


@pytest.mark.parametrize(
    ("error", "sentence", "objectives", "default"),
    [
        (OptionError, "Give maximize and likelihood to each", [ONE], sg.Objective(maximize=False)),
        (OptionError, "Give maximize and likelihood to each", [ONE], sg.Objective(likelihood="poisson")),
        (TypeError, "must be a list of streamgp.Objective", [], ONE),
        (TypeError, "must be a list of streamgp.Objective", ["yield"], ONE),
        (OptionError, "Objectives need different names", [ONE, ONE], ONE),
        (
            UnsupportedError,
            "Comparisons cannot be one of several",
            [ONE, sg.Objective("taste", likelihood="preference")],
            ONE,
        ),
    ],
)
def test_objectives_that_make_no_sense_are_refused(error, sentence, objectives, default):
    with pytest.raises(error, match=sentence):
        read_objectives(objectives, default)


def test_without_a_list_there_is_one_objective():
    counts = sg.Objective(likelihood="poisson", maximize=False)
    assert read_objectives(None, counts) == (counts,)


def test_rules_are_only_given_what_they_know():
    preference = sg.Objective(likelihood="preference")
    bound = sg.Constraint(upper=1.0)
    check_combination((ONE,), (), Thompson())
    for objectives, constraints, rule, sentence in [
        ((ONE, sg.Objective("other")), (), KnowledgeGradient(), "knows one objective, but there are 2"),
        ((preference,), (bound,), Thompson(), "Comparisons cannot be combined with constraints"),
        ((sg.Objective(likelihood="preference", maximize=False),), (), Thompson(), "cannot be minimized"),
    ]:
        with pytest.raises(UnsupportedError, match=sentence):
            check_combination(objectives, constraints, rule)


@pytest.mark.parametrize("given", [["a<0.5"], "a<0.5", [("a", 0.5)]])
def test_constraints_in_words_are_refused(given):
    with pytest.raises(ArgumentTypeError, match="must be a list of streamgp"):
        read_space({"a": sg.Real(0, 1)}, given)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: sg.Optimizer([(0.0, 1.0)], seed=seed),
        lambda seed: sg.TurboOptimizer([(0.0, 1.0)], seed=seed),
        lambda seed: sg.PoolLearner(torch.rand(5, 1), seed=seed),
    ],
)
def test_a_seed_that_generators_refuse_is_refused_at_once(make):
    with pytest.raises(ValueRangeError, match="seed must be below 2"):
        make(2**70)
    assert len(make(2**63 - 1).ask(2)) == 2
