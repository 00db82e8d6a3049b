from dataclasses import dataclass

import gpytorch
import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import streamgp as sg
from streamgp import acquisition, loops
from streamgp.acquisition import AbstractRule, Search
from streamgp.acquisition.rules.source_rule import KnowledgePerCost
from streamgp.errors import FileFormatError, StreamGPWarning, UnsupportedError
from streamgp.likelihoods import Gaussian, from_gpytorch
from streamgp.loops.exact_surrogate import ExactSurrogate
from streamgp.loops.model_selection import Comparison
from streamgp.loops.observations import Observations
from streamgp.loops.outcomes import OutcomeUnits
from streamgp.loops.source_surrogate import SourceSurrogate
from streamgp.loops.state import LoopState
from streamgp.loops.surrogate import SparseSurrogate
from streamgp.loops.units import NormalScores
from streamgp.storage import register, save
from streamgp.storage.registry import registered

SMALL = Search(num_restarts=1, raw_samples=16, max_iterations=3)
BOX = [(-5.0, 10.0), (0.0, 15.0)]


def wave(X):
    return torch.sin(0.3 * X).sum(-1)


def told(num=6, **options):
    optimizer = sg.Optimizer(BOX, search=SMALL, num_initial=4, **options)
    X = optimizer.ask(num)
    columns = [wave(X), (X[:, 0] > 0).double()][: 1 + len(options.get("constraints", ()))]
    optimizer.tell(X[:-1], torch.stack(columns, dim=-1)[:-1])  # the last one stays pending
    return optimizer


def goes_on(optimizer, loaded):
    """Whether both give the same suggestions, before and after more outcomes."""
    X, Y = optimizer.ask(), loaded.ask()
    assert torch.equal(X, Y)
    for one in (optimizer, loaded):
        one.tell(X, wave(X).unsqueeze(-1).expand(-1, optimizer.y.shape[-1]))
    return torch.equal(optimizer.ask(), loaded.ask()) and torch.equal(optimizer.pending, loaded.pending)


CASES = {
    "before data": lambda: sg.Optimizer(BOX, search=SMALL, num_initial=4, seed=2),
    "before the first fit": lambda: told(acquisition="thompson", maximize=False),
    "constraint": lambda: told(constraints=[sg.Constraint(upper=0.5)], acquisition="thompson"),
    "kernel and noise": lambda: told(
        likelihood=Gaussian(0.1, is_learned=False), kernel=ScaleKernel(RBFKernel(ard_num_dims=2))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_loaded_optimizer_goes_on_with_the_same_suggestions(tmp_path, name):
    optimizer = CASES[name]()
    if name not in ("before data", "before the first fit"):
        optimizer.ask()
        optimizer.tell_failure([[1.0, 1.0]])
        optimizer.tell([[2.0, 2.0]], torch.zeros(1, optimizer.y.shape[-1]))
    optimizer.save(tmp_path / "run.sgo")
    torch.manual_seed(7)
    loaded = sg.Optimizer.load(tmp_path / "run.sgo")
    assert repr(loaded) == repr(optimizer)
    assert goes_on(optimizer, loaded)
    assert list(tmp_path.iterdir()) == [tmp_path / "run.sgo"]


@pytest.mark.slow
def test_comparisons_are_saved(tmp_path):
    optimizer = sg.Optimizer(BOX, likelihood="preference", search=SMALL, num_initial=4, acquisition="thompson")
    X = optimizer.ask(8)
    optimizer.tell_comparison(X[:4], X[4:])
    optimizer.ask(2)
    optimizer.save(tmp_path / "run.sgo")
    assert torch.equal(sg.Optimizer.load(tmp_path / "run.sgo").ask(2), optimizer.ask(2))


def test_saving_changes_nothing_and_names_and_bounds_come_back(tmp_path):
    optimizer = told(
        constraints=[sg.Constraint(lower=0.5, likelihood="bernoulli", name="works")], refit=7, maximize=False
    )
    before = optimizer._state
    optimizer.save(tmp_path / "run.sgo")
    assert optimizer._state is before
    settings = sg.Optimizer.load(tmp_path / "run.sgo")._settings
    (constraint,) = settings.constraints
    assert (constraint.lower, constraint.upper, constraint.name) == (0.5, None, "works")
    assert constraint.likelihood == "bernoulli"
    assert (settings.surrogate.refit, settings.objectives[0].maximize, settings.search) == (7, False, SMALL)


def test_a_likelihood_that_is_not_known_by_name_cannot_be_saved(tmp_path):
    class OwnLikelihood(gpytorch.likelihoods._OneDimensionalLikelihood):
        def forward(self, function_samples, *args, **kwargs):
            return torch.distributions.Laplace(function_samples, 0.2)

    with pytest.warns(StreamGPWarning, match="cannot be saved"):
        optimizer = sg.Optimizer(BOX, likelihood=from_gpytorch(OwnLikelihood()))
    with pytest.raises(UnsupportedError, match="register_module"):
        optimizer.save(tmp_path / "run.sgo")
    assert not list(tmp_path.iterdir())


@register
@dataclass(frozen=True)
class Corner(AbstractRule):
    """A rule of the user's: the corner of the cube that has a given value in all coordinates."""

    value: float = 1.0

    def propose(self, context, q, *, seed):
        return torch.full((q, context.space.num_dims), self.value, dtype=torch.float64)


def test_a_rule_of_the_users_is_used_and_saved(tmp_path):
    optimizer = told(acquisition=Corner(0.0))
    optimizer.save(tmp_path / "run.sgo")
    loaded = sg.load(tmp_path / "run.sgo")
    assert loaded.inspect(refit=False).rule.innermost == Corner(0.0)
    assert loaded.ask().tolist() == [[-5.0, 0.0]]


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "run.sgo"
    told().save(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError, match="damaged"):
        sg.Optimizer.load(path)
    with pytest.raises(FileFormatError, match="There is no file"):
        sg.Optimizer.load(tmp_path / "other.sgo")


def test_one_kind_of_loop_is_not_taken_for_another(tmp_path):
    told().save(tmp_path / "run.sgo")
    with pytest.raises(FileFormatError, match="does not hold a Learner, but a Optimizer"):
        sg.PoolLearner.load(tmp_path / "run.sgo")


RULES = [
    rule()
    for rule in vars(acquisition).values()
    if isinstance(rule, type) and issubclass(rule, AbstractRule) and not rule.__name__.startswith("Abstract")
]
PARTS = [
    *RULES,
    loops.SpaceFilling(acquisition.Thompson(), every=4),
    loops.NeighborOfBest(acquisition.Thompson(), every=4),
    loops.RepeatBest(acquisition.Thompson()),
    sg.LevelSet(0.75),
    sg.Band(0.2, 0.4, of="latent"),
    sg.Map(),
    sg.Hotspots(0.1, is_clipped=False),
    acquisition.StepwiseUncertaintyReduction(sg.LevelSet(0.75)),
    Search(2, 3, 4),
    acquisition.RegionRules(min_length=0.1),
    acquisition.TrustRegion().start(),
    acquisition.TrustRegion().start().region,
    sg.Real(0.5, 2.0, log=True),
    sg.Integer(1, 9, step=2),
    sg.Ordinal(["a", 2]),
    sg.Categorical([None, True, "x"]),
    sg.LinearConstraint({"a": 1.0}, upper=0.5),
    sg.Objective("yield", maximize=False, likelihood="poisson"),
    sg.Constraint(lower=0.5, name="heat"),
    loops.Training(beta=0.5),
    loops.SurrogateSettings(refit=3, is_exact=True),
    NormalScores((1.0, 4.0), (-0.5, 0.5)),
    OutcomeUnits(scale=-1.0, ranks=NormalScores((1.0, 4.0), (-0.5, 0.5))),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_every_part_of_a_loop_survives_a_file(tmp_path, part):
    save(part, tmp_path / "part")
    found = sg.load(tmp_path / "part")
    assert type(found) is type(part)
    assert repr(vars(found)) == repr(vars(part))


def test_every_registered_class_of_loops_and_rules_has_an_example():
    made = {type(part) for part in PARTS}
    made |= {loops.Box, loops.PoolSpace, loops.ParameterSpace, loops.LoopSettings}  # of whole loops, as the rest
    made |= {LoopState, Observations, SparseSurrogate, ExactSurrogate, OutcomeUnits}
    made |= {sg.Optimizer, sg.TurboOptimizer, sg.PoolLearner}
    made |= {Comparison, KnowledgePerCost, SourceSurrogate}  # of tests/optimizers/test_sources.py, and of all loops
    names = ("acquisition.", "loops.", "optimizers.", "pools.")
    assert {each.cls for each in registered() if each.name.startswith(names)} <= made
