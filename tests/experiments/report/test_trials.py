from dataclasses import replace

from streamgp.experiments.record import Records
from streamgp.experiments.report.trials import select_trials


def without(records: Records, *units: tuple[str, str, int]) -> Records:
    return Records(tuple(each for each in records.all if (each.problem, each.method, each.seed) not in units))


def test_all_results_are_kept_when_every_method_has_every_seed(figure, records):
    trials = select_trials(figure, records)
    assert set(map(id, trials.records.all)) == set(map(id, records.all))
    assert (trials.num_trials, trials.num_left_out, trials.missing) == (3, 0, ())


def test_a_seed_that_one_method_lacks_is_left_out_for_all(figure, records):
    trials = select_trials(figure, without(records, ("cold", "bag", 1)))
    assert {record.seed for record in trials.records.all} == {0, 2}
    assert len(trials.records.of("warm", "pot")) == len(trials.records.of("cold", "bag")) == 2
    assert (trials.num_trials, trials.num_left_out) == (2, 1)


def test_what_has_not_run_at_all_is_named(figure, records):
    trials = select_trials(figure, without(records, *(("cold", "bag", seed) for seed in range(3))))
    assert trials.missing == ("cold, bag",)
    assert (trials.num_trials, trials.num_left_out, trials.records.all) == (0, 3, ())


def test_results_that_a_figure_does_not_need_are_left_out(figure, records):
    trials = select_trials(replace(figure, problems=("warm",)), records)
    assert {record.problem for record in trials.records.all} == {"warm"}


def test_without_results_everything_is_missing(figure):
    trials = select_trials(figure, Records(()))
    assert len(trials.missing) == 4
    assert trials.num_trials == 0
