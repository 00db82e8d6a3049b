import pytest
import torch

from streamgp.cli.survey.learner import choose_acquisition, expected_tests, is_predictable, make_learner
from streamgp.cli.survey.options import SurveyOptions
from streamgp.cli.survey.places import Measurement, SurveyPlace
from streamgp.cli.survey.pool import make_pool
from streamgp.errors import OptionError, ValueRangeError
from streamgp.likelihoods import Binomial, Gaussian, Poisson

TESTS = {"positives": "k", "tested": "n"}
NOISY = {"target": "y", "noise": "s"}


def options(**given):
    return SurveyOptions(**{"source": "v.csv", "coordinates": ("lng", "lat"), "number": 2, **given})


def pool_of(response, *outcomes, num_places=8):
    outcomes = [*outcomes, *[Measurement()] * (num_places - len(outcomes))]
    places = [SurveyPlace(i + 1, str(i + 1), (float(i), float(i % 3)), outcome) for i, outcome in enumerate(outcomes)]
    return make_pool(places, response)


@pytest.mark.parametrize(
    ("num_surveyed", "given", "acquisition"),
    [
        (5, {"threshold": 0.1}, "hotspot_entropy"),
        (4, {"threshold": 0.1}, "integrated_variance"),
        (5, {}, "response_variance"),
        (4, {}, "integrated_variance"),
        (4, {"threshold": 0.1, "acquisition": "hotspot_entropy"}, "hotspot_entropy"),
        (0, {"acquisition": "random"}, "random"),
    ],
)
def test_hotspots_are_looked_for_if_there_is_a_threshold_and_some_data(num_surveyed, given, acquisition):
    pool = pool_of("prevalence", *[Measurement(1.0, 20.0)] * num_surveyed)
    assert choose_acquisition(pool, options(**TESTS, **given)) == acquisition


@pytest.mark.parametrize(
    ("response", "columns", "acquisition"),
    [
        ("value", {"target": "y", "threshold": 0.5}, "uncertainty_reduction"),
        ("value", NOISY | {"threshold": 0.5}, "uncertainty_reduction"),
        ("value", NOISY, "integrated_variance"),
        ("rate", {"count": "c", "threshold": 0.5}, "response_variance"),
    ],
)
def test_values_are_chosen_for_the_level_if_there_is_one_and_others_for_variance(response, columns, acquisition):
    pool = pool_of(response, *[Measurement(1.0, 2.0)] * 6)
    assert choose_acquisition(pool, options(**columns)) == acquisition


@pytest.mark.parametrize(
    ("response", "columns", "outcomes", "expected"),
    [
        ("prevalence", TESTS, [], False),
        ("prevalence", TESTS, [Measurement(0.0, 9.0), Measurement(0.0, 4.0)], False),
        ("prevalence", TESTS, [Measurement(9.0, 9.0), Measurement(4.0, 4.0)], False),
        ("prevalence", TESTS, [Measurement(9.0, 9.0), Measurement(0.0, 4.0)], True),
        ("prevalence", TESTS, [Measurement(1.0, 9.0)], True),
        ("rate", {"count": "c"}, [Measurement(0.0)], False),
        ("rate", {"count": "c"}, [Measurement(0.0), Measurement(1.0)], True),
        ("value", {"target": "y"}, [], False),
        ("value", {"target": "y"}, [Measurement(0.0)], True),
    ],
)
def test_outcomes_of_one_kind_only_predict_nothing(response, columns, outcomes, expected):
    assert is_predictable(pool_of(response, *outcomes), options(**columns)) is expected


def test_the_median_number_of_tests_is_expected():
    pool = pool_of("prevalence", Measurement(1.0, 20.0), Measurement(1.0, 50.0), Measurement(1.0, 30.0))
    assert expected_tests(pool) == 30
    assert expected_tests(pool_of("prevalence")) == 1


@pytest.mark.slow
def test_the_learner_is_told_each_outcome_with_its_tests():
    pool = pool_of("prevalence", Measurement(), Measurement(2.0, 50.0), Measurement(1.0, 30.0))
    learner = make_learner(pool, options(**TESTS))
    assert learner.X.tolist() == [1, 2]
    assert learner.y.squeeze(-1).tolist() == [2.0, 1.0]
    likelihood = learner.fit_result.likelihood
    assert isinstance(likelihood, Binomial)
    assert likelihood.total_count.tolist() == [50.0, 30.0]


@pytest.mark.slow
def test_counts_that_were_added_have_an_exposure():
    places = [SurveyPlace(1, "1", (0.0, 0.0), Measurement(7.0)), SurveyPlace(2, "2", (0.0, 0.0), Measurement(2.0))]
    others = [
        SurveyPlace(3, "3", (1.0, 0.0), Measurement(4.0)),
        *(SurveyPlace(i, str(i), (float(i), 1.0)) for i in range(4, 7)),
    ]
    learner = make_learner(make_pool([*places, *others], "rate"), options(count="c"))
    likelihood = learner.fit_result.likelihood
    assert isinstance(likelihood, Poisson)
    assert likelihood.exposure.tolist() == [2.0, 1.0]


@pytest.mark.slow
def test_known_noise_stays_and_its_median_is_expected_elsewhere():
    pool = pool_of("value", Measurement(1.0, 4.0), Measurement(2.0, 1.0), Measurement(0.0, 2.0), Measurement(None, 9.0))
    learner = make_learner(pool, options(**NOISY))
    likelihood = learner.fit_result.likelihood
    assert isinstance(likelihood, Gaussian)
    assert likelihood.noise_variance.tolist() == [4.0, 1.0, 2.0]
    assert not likelihood.is_learned


def test_the_first_places_are_spread():
    corners = [(0.0, 0.0), (0.0, 10.0), (10.0, 0.0), (10.0, 10.0)]
    inputs = [(x + 0.1 * i, y + 0.05 * i**2) for x, y in corners for i in range(5)]
    pool = make_pool([SurveyPlace(i + 1, str(i + 1), each) for i, each in enumerate(inputs)], "prevalence")
    chosen = make_learner(pool, options(**TESTS, number=4)).ask(4)
    assert sorted((chosen // 5).tolist()) == [0, 1, 2, 3]


def test_the_same_seed_gives_the_same_places():
    pool = pool_of("rate", num_places=20)
    first, again, other = (
        make_learner(pool, options(count="c", acquisition="random", number=5, seed=seed)).ask(5) for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("num_surveyed", "sentence"),
    [
        (7, "2 places were asked for, but 1 of 8 are left .* Pass --number 1, or add places"),
        (8, "but none of 8 are left"),
    ],
)
def test_more_places_than_are_left_are_refused(num_surveyed, sentence):
    with pytest.raises(OptionError, match=sentence):
        make_learner(pool_of("rate", *[Measurement(1.0)] * num_surveyed), options(count="c"))


def test_a_threshold_that_is_no_prevalence_is_refused():
    with pytest.raises(ValueRangeError, match="must be a prevalence between 0 and 1, but is 10"):
        make_learner(pool_of("prevalence", Measurement(1.0, 2.0)), options(**TESTS, threshold=10.0))


def test_weights_and_costs_reach_the_pool():
    places = [SurveyPlace(i, str(i), (float(i), 0.0), weight=float(i), cost=2.0 * i) for i in range(1, 5)]
    pool = make_pool(places, "value")
    space = make_learner(pool, options(target="y", weights="people", costs="hours")).to_parts()["settings"].space
    assert space.weights.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert space.costs.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert make_learner(pool, options(target="y")).to_parts()["settings"].space.costs is None
    assert make_learner(pool, options(target="y", identifier="id")).ask(2)[0] in {"1", "2", "3", "4"}
    alike = make_pool([place._replace(name="same") for place in places], "value")
    assert make_learner(alike, options(target="y", identifier="id")).to_parts()["settings"].space.names is None
    with pytest.raises(OptionError, match="random does not weigh --costs"):
        options(target="y", costs="hours", acquisition="random")


def test_a_learner_whose_places_are_numbered_knows_them_by_their_numbers():
    learner = make_learner(pool_of("value", Measurement(1.0), Measurement(2.0)), options(target="y", identifier="id"))
    learner.tell([5, 6], [3.0, 4.0])
    assert learner.X == ["1", "2", "5", "6"]
