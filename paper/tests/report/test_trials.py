from dataclasses import replace

from paper.report.trials import select_trials
from paper.schema.record import Records


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


def test_a_figure_that_compares_what_there_is_keeps_lines_of_different_length(figure, records):
    loose = replace(figure, needs_all=False)
    gone = [("cold", "bag", 1), *(("cold", "pot", seed) for seed in range(3)), ("warm", "bag", 0), ("warm", "bag", 1)]
    trials = select_trials(loose, without(records, *gone))
    assert trials.missing == ("cold, pot",)
    assert trials.shorter == (("warm, bag", 1), ("cold, bag", 2))
    assert len(trials.records.of("warm", "pot")) == trials.num_trials == 3
    assert len(trials.records.of("cold", "bag")) == 2
    # One trial has no error to be judged by, and is shown all the same.
    assert len(trials.records.of("warm", "bag")) == 1
    # Two trials may be alike by chance; a claim is judged by three.
    assert not trials.is_enough(loose)
    assert select_trials(loose, without(records, *gone[1:])).is_enough(loose)
    assert not select_trials(figure, without(records, *gone)).is_enough(figure)


def test_without_a_line_that_all_others_are_compared_with_nothing_is_shown(figure, records):
    loose = replace(figure, needs_all=False, needed_methods=("pot",))
    pots = [(problem, "pot", seed) for problem in ("warm", "cold") for seed in range(3)]
    assert select_trials(loose, records).num_trials == 3
    assert select_trials(loose, without(records, *pots[:3])).num_trials == 3  # of one problem there are some
    trials = select_trials(loose, without(records, *pots))
    assert trials.num_trials == 0
    assert trials.records.all == ()
    assert not trials.is_enough(loose)


def test_one_line_alone_is_not_enough_without_published_values(figure, records):
    loose = replace(figure, needs_all=False)
    alone = without(
        records,
        *((p, m, s) for p in ("warm", "cold") for m in ("pot", "bag") for s in range(3) if (p, m) != ("warm", "pot")),
    )
    assert not select_trials(loose, alone).is_enough(loose)
    assert select_trials(loose, alone).is_enough(replace(loose, has_published_values=True))
    assert not select_trials(loose, Records(())).is_enough(loose)
