from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import streamgp as sg
from streamgp.acquisition import AbstractGoalRule, IntegratedVariance, integrated_variance
from streamgp.acquisition.rules.names import POOL_RULES
from streamgp.acquisition.rules.pool_rules import AbstractThresholdRule
from streamgp.errors import ArgumentTypeError, OptionError, ShapeError, SupportError, UnsupportedError, ValueRangeError
from streamgp.likelihoods import Binomial, Gaussian
from streamgp.pools import Training
from streamgp.testing.tolerances import approximation, judgement, sampling


def start(learner, outcomes, members=range(0, 40, 5)):
    members = list(members)
    learner.tell(members, outcomes[members])
    return learner


@pytest.mark.slow
@pytest.mark.parametrize("acquisition", POOL_RULES)
def test_no_member_is_proposed_twice_until_none_is_left(country, surveyed, acquisition):
    learner, rule = surveyed, POOL_RULES[acquisition]()
    if isinstance(rule, AbstractThresholdRule):
        rule = rule.with_threshold(0.3)
    if isinstance(rule, AbstractGoalRule):
        rule = rule.with_goal(sg.LevelSet(0.3))
    learner._settings = replace(learner._settings, rule=rule)
    learner.ask(2)  # stays pending
    seen = learner.X.tolist() + learner.pending.tolist()
    for q in (1, 3):
        chosen = learner.ask(q)
        assert chosen.dtype == torch.long
        assert not set(chosen.tolist()) & set(seen)
        assert len(set(chosen.tolist())) == q
        learner.tell(chosen, country.counts[chosen])
        seen += chosen.tolist()
    assert sorted(learner.ask(26).tolist() + seen) == list(range(40))
    with pytest.raises(ValueRangeError, match="1 members were asked for, but 0 of 40 are left"):
        learner.ask()


def test_the_first_members_fill_the_pool_and_repeat_with_their_seed(country):
    first, same, other = (country.survey(seed=seed) for seed in (3, 3, 4))
    chosen = torch.cat([first.ask(2), first.ask(4)])
    assert torch.equal(chosen, same.ask(6))
    assert not torch.equal(chosen, other.ask(6))
    scaled = (country.X - country.X.mean(0)) / country.X.std(0)

    def reach(members):
        return torch.cdist(scaled, scaled[members]).amin(-1).square().mean()

    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([reach(torch.randperm(40, generator=generator)[:6]) for _ in range(200)])
    assert reach(chosen) < drawn.quantile(0.1)


@pytest.mark.slow
def test_predictions_are_prevalences_whose_intervals_hold_the_truth(country):
    learner = start(country.survey(threshold=0.3), country.counts, range(0, 40, 2))
    prediction, wider = learner.predict(level=0.8), learner.predict(level=0.99)
    truth = country.f.sigmoid()
    assert ((prediction.mean > 0) & (prediction.mean < 1)).all()
    assert float((prediction.mean - truth).square().mean()) < 0.4 * float(truth.var())
    assert float(((truth >= wider.lower) & (truth <= wider.upper)).double().mean()) > 0.9
    assert (wider.upper - wider.lower > prediction.upper - prediction.lower).all()
    samples = learner.gp.sample(learner_inputs(country), 4000, generator=torch.Generator().manual_seed(0)).sigmoid()
    assert_close(prediction.mean, samples.mean(0), **sampling(float(samples.std(0).max()) / 4000**0.5))
    assert_close(prediction.lower, samples.quantile(0.1, dim=0), **judgement(absolute=0.03))
    assert_close(prediction.exceedance, (samples > 0.3).double().mean(0), **sampling(0.5 / 4000**0.5))


def learner_inputs(country):
    return (country.X - country.X.mean(0)) / country.X.std(0, correction=0)


def test_the_result_predicts_in_the_users_units(country, surveyed):
    learner = surveyed
    prediction = learner.predict()
    assert_close(learner.fit_result.predict(country.X).mean, prediction.latent_mean)
    assert_close(learner.gp.predict(learner_inputs(country)).variance, prediction.latent_variance)


def test_every_observed_place_is_an_inducing_point_up_to_the_most(country, surveyed):
    assert surveyed.gp.num_inducing == 8
    surveyed.tell([1, 2], country.counts[[1, 2]])
    assert surveyed.gp.num_inducing == 10
    few = start(country.survey(num_inducing=5), country.counts)
    assert few.gp.num_inducing == 5
    few.tell([1, 2], country.counts[[1, 2]])
    assert few.gp.num_inducing == 5
    assert few.predict().exceedance is None


def test_between_fits_outcomes_are_conditioned_on_exactly(country):
    noise = torch.full((40,), 0.01, dtype=torch.float64)
    learner = country.survey(likelihood=Gaussian(noise))
    start(learner, country.y)
    X, before = learner_inputs(country), learner.gp
    learner.tell([1, 17], country.y[[1, 17]], noise_variance=[0.05, 0.2])
    expected = before.condition(
        X[[1, 17]], country.y[[1, 17]], noise_variance=torch.tensor([0.05, 0.2], dtype=torch.float64)
    )
    assert_close(learner.predict().latent_mean, expected.predict(X).mean, **approximation(1e-6, "jitter"))
    assert_close(learner.predict().latent_variance, expected.predict(X).variance, **approximation(1e-6, "jitter"))


def test_members_that_could_not_be_observed_and_totals_of_zero_teach_nothing(surveyed):
    learner = surveyed
    before = learner.predict()
    learner.ask(2)
    learner.tell([1, 2], [torch.nan, 0.0], total_count=[30, 0])
    after = learner.predict()
    assert torch.equal(before.latent_mean, after.latent_mean)
    assert {1, 2} <= set(learner.X.tolist())
    assert not {1, 2} & set(learner.available.tolist())
    assert learner.y.isnan().sum() == 1


def test_members_without_trials_are_not_proposed(country):
    totals = torch.full((40,), 30.0)
    totals[10:] = 0.0
    learner = country.survey(likelihood=Binomial(totals))
    assert sorted(learner.ask(10).tolist()) == list(range(10))
    with pytest.raises(ValueRangeError, match="0 of 40 are left"):
        learner.ask(1)


def test_totals_of_members_and_of_tells_count(country, surveyed):
    members = list(range(0, 40, 5))
    totals = torch.full((40,), 7.0)
    totals[:20] = 30.0
    learner = country.survey(likelihood=Binomial(totals), threshold=0.3)
    learner.tell(members[:4], country.counts[members[:4]])
    learner.tell(members[4:], country.counts[members[4:]], total_count=30)
    assert_close(learner.predict().mean, surveyed.predict().mean)


def test_pending_members_may_be_canceled(country):
    learner = country.survey()
    chosen = learner.ask(3)
    learner.cancel(chosen[:1])
    assert torch.equal(learner.pending, chosen[1:])
    learner.cancel()
    assert not len(learner.pending)
    assert len(learner.available) == 40


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ValueRangeError, "Each member is told once, but 5 was told before", lambda one: one.tell([6, 5], [1.0, 2.0])),
        (ValueRangeError, "must name each member once", lambda one: one.tell([6, 6], [1.0, 2.0])),
        (ValueRangeError, "indices must be indices from 0 to 39", lambda one: one.tell([40], [1.0])),
        (ShapeError, r"y must have shape \(2,\)", lambda one: one.tell([6, 7], [1.0])),
        (
            SupportError,
            "Outcomes of the objective 'response' cannot be used. .* Tell a failed",
            lambda one: one.tell([6], [31.0]),
        ),
        (
            ShapeError,
            "total_count must be a number or have shape",
            lambda one: one.tell([6], [1.0], total_count=[3, 4]),
        ),
        (ValueRangeError, "total_count must hold whole numbers", lambda one: one.tell([6], [1.0], total_count=2.5)),
        (OptionError, "noise_variance belongs to Gaussian", lambda one: one.tell([6], [1.0], noise_variance=1.0)),
        (ValueRangeError, "33 members were asked for, but 32 of 40", lambda one: one.ask(33)),
        (ValueRangeError, "level must be a probability", lambda one: one.predict(level=1)),
        (ValueRangeError, "q must be a whole number", lambda one: one.ask(0)),
    ],
)
def test_a_call_that_raises_changes_nothing(surveyed, error, match, call):
    learner = surveyed
    state = learner._state
    with pytest.raises(error, match=match):
        call(learner)
    assert learner._state is state


def test_noise_that_is_learned_cannot_be_told(country):
    learner = sg.PoolLearner(country.X)
    with pytest.raises(OptionError, match=r"Gaussian. Use likelihood=streamgp"):
        learner.tell([1], [0.5], noise_variance=0.1)
    with pytest.raises(OptionError, match="total_count belongs to Binomial outcomes"):
        learner.tell([1], [0.5], total_count=3)


def test_nothing_can_be_predicted_from_nothing(country):
    learner = country.survey()
    learner.tell([0], [torch.nan])
    with pytest.raises(ValueRangeError, match="Nothing is known yet"):
        learner.predict()


def test_chosen_members_leave_less_variance_than_random_ones(country):
    def left(acquisition):
        learner = country.survey(acquisition=acquisition, likelihood="gaussian")
        start(learner, country.y, range(6))
        assert learner.fit_result  # the same hyperparameters for both, which then stay
        for _ in range(3):
            chosen = learner.ask(3)
            learner.tell(chosen, country.y[chosen])
        return float(learner.predict().latent_variance.sum())

    assert left("integrated_variance") < left("random")


def test_the_map_shows_places_and_what_was_chosen(country, surveyed):
    learner = surveyed
    learner.ask(2)
    panels = learner.plot_map()
    titles = [panel.get_title() for panel in panels]
    assert titles == ["prediction", "width of the interval", "probability above the threshold"]
    for panel in panels:
        assert [len(drawn.get_offsets()) for drawn in panel.collections] == [40, 8, 2]
    with pytest.raises(ShapeError, match="The map has 3 panels, but 1 axes were given"):
        learner.plot_map(axes=panels[0])
    with pytest.raises(ShapeError, match=r"coordinates must have shape \(40, 2\)"):
        learner.plot_map(country.X[:3])
    narrow = sg.PoolLearner(country.X[:, :1], training=Training(max_iterations=2))
    narrow.tell(range(8), country.y[:8])
    with pytest.raises(ShapeError, match="A map needs two coordinates"):
        narrow.plot_map()


def test_a_learner_says_what_it_is(country):
    assert repr(country.survey()) == ("Learner(40 members with 2 inputs, by IntegratedVariance: 0 outcomes, 0 pending)")


def test_other_places_are_predicted_in_the_users_units(country, surveyed):
    prediction = surveyed.predict(country.X[3:7])
    assert_close(prediction.mean, surveyed.predict().mean[3:7])
    with pytest.raises(ShapeError, match=r"X must have shape \(n, 2\), one row for each place"):
        surveyed.predict([[1.0]])


def test_the_best_member_is_the_told_one_of_largest_mean(country, surveyed):
    best = surveyed.best()
    told = surveyed.X
    assert told[surveyed.predict().mean[told].argmax()] == best.X
    assert best.observed == float(country.counts[best.X])


def test_without_a_threshold_the_map_has_two_panels(country, surveyed):
    surveyed._settings = replace(surveyed._settings, threshold=None)
    assert len(surveyed.plot_map()) == 2


def test_members_go_by_their_names(country, tmp_path):
    names = [f"V{i:02d}" for i in range(40)]
    learner, numbers = country.survey(names=names), country.survey()
    chosen = learner.ask(3)
    assert chosen == [names[i] for i in numbers.ask(3).tolist()]
    assert learner.pending == chosen
    learner.tell(chosen[:2], [3.0, 4.0])
    learner.tell("V39" if "V39" not in chosen else "V38", 7.0)
    learner.cancel(chosen[2])
    assert learner.X[:2] == chosen[:2]
    assert len(learner.available) == 37
    assert learner.best().X in names
    with pytest.raises(ValueRangeError, match=f"Each member is told once, but {chosen[0]} was told before"):
        learner.tell(chosen[0], 3.0)
    with pytest.raises(ValueRangeError, match=r"There is no member 'V4' in the pool. Did you mean 'V\d\d'"):
        learner.tell(["V4"], [3.0])
    with pytest.raises(ArgumentTypeError, match="Members of this pool have numbers and no names"):
        numbers.tell(["V01"], [3.0])
    learner.save(tmp_path / "named.zip")
    again = sg.load(tmp_path / "named.zip")
    assert (again.X, again.available) == (learner.X, learner.available)


def test_one_member_may_be_a_number_of_any_kind(country):
    learner = country.survey()
    learner.tell(3, 1.0)
    learner.tell(np.int64(4), 2.0)
    learner.tell(torch.tensor(5), 3.0)
    assert learner.X.tolist() == [3, 4, 5]


def test_gains_are_weighed_by_what_a_visit_costs(country, surveyed):
    costs = torch.linspace(1.0, 20.0, 40, dtype=torch.float64)
    surveyed._settings = replace(
        surveyed._settings, space=replace(surveyed.inspect(refit=False).space, costs=costs), rule=IntegratedVariance()
    )
    left = surveyed.available
    # Gains over members that are not told yet are those of the learner.
    targets = integrated_variance(surveyed.gp, learner_inputs(country), targets=left, likelihood=Binomial(30))
    weighed = targets[left] / costs[left]
    assert surveyed.ask().tolist() == [int(left[weighed.argmax()])]


@pytest.mark.parametrize(
    ("error", "match", "options"),
    [
        (ShapeError, "names must have one for each of the 40 members, but has 2", {"names": ["a", "b"]}),
        (ValueRangeError, "names must be different, but 'a' comes more than once", {"names": ["a"] * 40}),
        (ShapeError, r"costs must have shape \(40,\)", {"costs": [1.0]}),
        (ValueRangeError, "costs must be positive, but the least is 0", {"costs": [0.0] * 40}),
        (UnsupportedError, "does not weigh costs", {"costs": [1.0] * 40, "acquisition": "random"}),
    ],
)
def test_names_and_costs_are_checked(country, error, match, options):
    with pytest.raises(error, match=match):
        sg.PoolLearner(country.X, **options)


@pytest.mark.parametrize(("unit", "of_inputs"), [(1e-12, 1.0), (1.0, 1e-15)])
def test_the_units_of_inputs_and_outcomes_do_not_matter(country, unit, of_inputs):
    usual, other = sg.PoolLearner(country.X, num_initial=6), sg.PoolLearner(of_inputs * country.X, num_initial=6)
    for q in (6, 4):
        members = usual.ask(q)
        assert torch.equal(other.ask(q), members)
        usual.tell(members, country.y[members])
        other.tell(members, unit * country.y[members])
    # Suggestions and predictions agree to what an optimizer of hyperparameters leaves.
    spread = float(country.y.std())
    difference = (other.predict().mean / unit - usual.predict().mean).abs().max()
    assert float(difference) < 1e-3 * spread


def test_columns_of_a_table_are_found_by_their_names(country, tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(country.X.numpy(), columns=["lng", "lat"])
    learner = sg.PoolLearner(table, num_initial=6)
    members = learner.ask(12)
    learner.tell(members, country.y[members])
    learner.save(tmp_path / "table.zip")
    expected = learner.predict().mean
    for one in (learner, sg.load(tmp_path / "table.zip")):
        assert torch.equal(one.predict(table[["lat", "lng"]].assign(note="none")).mean, expected)
        assert torch.equal(one.predict(table.to_numpy()).mean, expected)
        with pytest.raises(OptionError, match="inputs of the pool are lng, lat, but the table has no column 'lat'"):
            one.predict(table[["lng"]])
