"""Where is it above? Learners with goals, over spaces and pools."""

import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import ExpectedVolumeChange, GlobalMutualInformation, Search, StepwiseUncertaintyReduction
from streamgp.acquisition.pool import Pool
from streamgp.errors import ArgumentTypeError, OptionError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Bernoulli
from streamgp.loops.suggest import make_context
from streamgp.testing.tolerances import judgement, tolerance

BOX = [(0.0, 2.0), (-1.0, 1.0)]
QUICK = Search(num_restarts=2, raw_samples=64, max_iterations=5)
YES_NO = Bernoulli("probit")


def latent(X):
    return 4.0 * (X[..., 0] - 1.0 - 0.5 * X[..., 1])


def answers(X, generator):
    chance = torch.special.ndtr(latent(X))
    return (torch.rand(len(X), generator=generator, dtype=torch.float64) < chance).double()


def observer(num_told=24, **options):
    learner = sg.Learner(BOX, **{"likelihood": YES_NO, "goal": sg.LevelSet(0.75), "search": QUICK} | options)
    generator = torch.Generator().manual_seed(5)
    X = torch.tensor([0.0, -1.0]) + 2.0 * torch.rand(num_told, 2, generator=generator, dtype=torch.float64)
    learner.tell(X, answers(X, generator))
    return learner


@pytest.fixture(scope="module")
def asked():
    return observer()


def test_a_map_of_yes_and_no_is_learned_and_saved(tmp_path):
    learner, generator = observer(10, num_initial=10), torch.Generator().manual_seed(3)
    for _ in range(4):
        X = learner.ask()
        learner.tell(X, answers(X, generator))
    learner.save(tmp_path / "learner")
    again = sg.Learner.load(tmp_path / "learner")
    assert torch.equal(again.ask(), learner.ask())
    assert learner.inspect(refit=False).why == ("stepwise uncertainty reduction",)
    region = learner.region()
    assert 0.1 < region.volume < 0.7
    assert region.expected_error < 0.3
    assert "are expected to be on the wrong side" in learner.report()


def test_the_model_learns_in_tell_and_never_in_ask(asked):
    told = asked.inspect(refit=False).surrogate
    assert told is not None
    asked.ask()
    assert asked.inspect(refit=False).surrogate is told
    asked.cancel()


def test_what_is_prepared_is_what_would_have_been_asked():
    learners = [observer(), observer()]
    question, _ = (learner.ask() for learner in learners)
    learners[0].prepare()
    for learner in learners:
        learner.tell(question, [1.0])
    state = learners[0].to_parts()["state"]
    assert torch.equal(learners[0].ask(), learners[1].ask())
    assert learners[0].inspect(refit=False).num_fitted == learners[1].inspect(refit=False).num_fitted
    assert learners[0].to_parts()["state"].surrogate is state.surrogate
    with pytest.raises(UnsupportedError, match="One question at a time"):
        observer().prepare()
    counts = sg.Learner(BOX, likelihood="poisson", search=QUICK)
    counts.ask()
    with pytest.raises(OptionError, match="Pass those that are likely"):
        counts.prepare()


@pytest.mark.parametrize("rule", [StepwiseUncertaintyReduction, GlobalMutualInformation, ExpectedVolumeChange])
def test_a_pool_of_the_targets_has_the_scores_of_the_space(asked, rule):
    """The same targets, candidates and belief: matrix products over members equal the function of the space."""
    parts = asked.to_parts()
    context = make_context(parts["state"], parts["settings"])
    function = rule(sg.LevelSet(0.75), num_targets=50).function(context, seed=1)
    candidates = context.space.inputs(context.space.scatter(20, num_before=0, seed=9, ask=0))
    members = torch.cat([function.targets, candidates])
    pool = Pool.read(function.gp, members, likelihood=YES_NO, targets=range(50), weights=None, pending=None)
    scores = rule(sg.LevelSet(0.75)).score(pool, torch.arange(50, 70))
    assert_close(function(candidates.unsqueeze(-2)), scores / 50.0, **judgement(absolute=1e-9, relative=1e-6))
    single = torch.cat([function(one.reshape(1, 1, 2)) for one in candidates])
    assert_close(function(candidates.unsqueeze(-2)), single, **tolerance(torch.float64, scale=10.0))


@pytest.mark.slow
def test_points_asked_for_together_are_apart_and_count_on_each_other(asked):
    X = asked.ask(4)
    asked.cancel()
    assert torch.cdist(X, X).add(10.0 * torch.eye(4)).min() > 0.02


def test_named_parameters_bands_and_latent_levels(rng):
    space = {"x": sg.Real(0.01, 1.0, log=True), "kind": sg.Categorical(["a", "b"])}
    learner = sg.Learner(space, likelihood="bernoulli", goal=sg.Band(-0.5, 0.5, of="latent"), search=QUICK)
    points = learner.ask(10)
    learner.tell(points, [float(point["x"] > 0.1) for point in points])
    (point,) = learner.ask()
    assert point.keys() == {"x", "kind"}
    inside = learner.probability_above(points)
    prediction = learner.predict(points)
    edges = [(e - prediction.latent_mean) / prediction.latent_variance.sqrt() for e in (-0.5, 0.5)]
    expected = torch.special.ndtr(edges[1]) - torch.special.ndtr(edges[0])
    assert_close(inside, expected, **tolerance(torch.float64))


def test_values_have_level_sets_in_any_units():
    X = torch.rand(30, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    asked = []
    for scale in (1.0, 1e4):
        learner = sg.Learner([(0.0, 1.0), (0.0, 1.0)], goal=sg.LevelSet(0.5 * scale), search=QUICK)
        learner.tell(X, scale * X.sum(-1))
        asked.append(learner.probability_above(X))
    assert_close(*asked, **judgement(absolute=0.02))


def test_a_map_needs_no_level():
    learner = observer(goal=sg.Map())
    assert len(learner.ask(2)) == 2
    with pytest.raises(UnsupportedError, match="looks for no region"):
        learner.region()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"goal": 0.75}, ArgumentTypeError, "goal must be a goal such as"),
        ({"goal": sg.LevelSet(1.5)}, ValueRangeError, "must be"),
        ({"goal": sg.Map(), "acquisition": "uncertainty_reduction"}, OptionError, "needs a goal that is a region"),
        ({"weights": [1.0]}, OptionError, "weights belongs to the members of a pool"),
    ],
)
def test_what_does_not_fit_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        observer(0, **options)


@pytest.mark.parametrize("make", [lambda: sg.LevelSet(float("nan")), lambda: sg.Band(0.5, 0.5), lambda: sg.Map(of=1)])
def test_wrong_goals_are_refused(make):
    with pytest.raises((ValueRangeError, TypeError)):
        make()


@pytest.mark.slow
def test_hotspots_of_a_pool_are_those_of_before(rng):
    X = torch.rand(40, 2, generator=rng, dtype=torch.float64)
    likelihood = sg.likelihoods.Binomial(20)
    learners = [
        sg.Learner(X, likelihood=likelihood, goal=sg.Hotspots(0.1)),
        sg.PoolLearner(X, likelihood=likelihood, acquisition="hotspot_entropy", threshold=0.1),
    ]
    for _ in range(2):
        asked = [learner.ask(5) for learner in learners]
        assert torch.equal(*asked)
        for learner in learners:
            learner.tell(asked[0], (20 * X[asked[0], 0].square()).round())
    assert_close(learners[0].probability_above(), learners[1].predict().exceedance)


def test_comparisons_are_answers_too():
    learner = sg.Learner([(0.0, 1.0)], likelihood=Bernoulli("probit"), goal=sg.LevelSet(0.5), num_initial=2)
    X = torch.linspace(0, 1, 6, dtype=torch.float64).unsqueeze(-1)
    learner.tell(X[[1, 4]], [0.0, 1.0])
    before = learner.predict(X[[0, 5]]).latent_mean
    learner.tell_comparison(X[[5, 4, 5, 3, 5, 2, 5, 5]], X[[0, 1, 1, 0, 2, 0, 3, 4]])
    after = learner.predict(X[[0, 5]]).latent_mean
    assert after.diff() > before.diff() + 0.5
    assert learner.ask().shape == (1, 1)
    with pytest.raises(UnsupportedError, match="with a probit"):
        sg.Learner([(0.0, 1.0)], likelihood="poisson").tell_comparison([[0.1]], [[0.2]])


@pytest.mark.slow
def test_grades_are_answers_too():
    grades = sg.likelihoods.Ordinal.of(4)
    options = {"num_initial": 6, "refit": 4, "search": QUICK}
    learner = sg.Learner([(0.0, 1.0)], likelihood=grades, goal=sg.LevelSet(1.5), **options)
    for _ in range(9):
        X = learner.ask()
        learner.tell(X, (4.0 * X[:, 0]).floor().clamp(0, 3))
    assert learner.probability_above([[0.05], [0.95]])[1] > 0.9
    assert learner.probability_above([[0.05], [0.95]])[0] < 0.1
